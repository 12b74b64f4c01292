//! etcd's own state, the truth that clients' views are held against.

use super::{Identity, Needs, Probe};
use crate::client::context::{ClientContext, Setup};
use crate::client::etcd_range::range;
use crate::client::pace::Pace;
use crate::client::session::{Broken, Session, live};
use crate::component::{ComponentId, Role};
use crate::drill::spec::{Client, Drill, Objective, Step};
use crate::etcd::client::EtcdClient;
use crate::etcd::registry::ledger_prefix;
use crate::load::pacer::Account;
use std::time::Duration;

/// Its name.
pub const NAME: &str = "etcd-truth";
/// Time between two readings.
const EVERY: Duration = Duration::from_millis(500);

/// One, at the first member, when something in the drill is judged by, or done to, etcd itself.
#[must_use]
pub fn planned(needs: Needs<'_>) -> Vec<Probe> {
    let members = (needs.of_role)(Role::Etcd);
    let first = members.into_iter().take(usize::from(is_needed(needs.drill)));
    let probe = |target: ComponentId| Probe {
        name: NAME.to_owned(),
        target,
        identity: Identity::Observer,
        every: EVERY,
    };
    first.map(probe).collect()
}

fn is_needed(drill: &Drill) -> bool {
    let spec = &drill.spec;
    let step = |s: &Step| {
        let of_etcd = s.kind().fault().is_some_and(|fault| fault.role() == Role::Etcd);
        of_etcd || s.kind().is_about_etcd()
    };
    let objective = |o: &Objective| o.kind().rests_on_truth();
    spec.steps.iter().any(step)
        || spec.objectives.iter().any(objective)
        || spec.clients.iter().any(|c| matches!(c, Client::EtcdWatcher(_)))
}

/// Ranges over the ledger's keys until told to end.
pub async fn run(ctx: ClientContext) {
    live(ctx, observe).await;
}

async fn observe(session: &mut Session, setup: &Setup) -> Result<Account, Broken> {
    let mut etcd = EtcdClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?;
    let prefix = ledger_prefix(&setup.namespace);
    let mut pace = Pace::new(session, setup.every_ns()?);
    while let Some(slot) = pace.next().await {
        range(session, &mut etcd, &prefix, Some(slot.due)).await?;
    }
    Ok(pace.account())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::linearizable::Linearizable;
    use crate::check::lost_timeline::NoClientOnLostTimeline;
    use crate::check::rpo::Rpo;
    use crate::check::rto::{Rto, RtoFrom, RtoTo};
    use crate::check::two_leaders::NoTwoLeaders;
    use crate::drill::load;
    use crate::drill::values::Span;

    const DRILL: &str = include_str!("../../scenarios/etcd/restore-without-bump.yaml");

    #[test]
    fn etcd_is_read_for_every_objective_that_rests_on_its_state() {
        let mut drill = load("d.yaml", DRILL, &Default::default()).unwrap().drill;
        assert!(is_needed(&drill));
        drill.spec.steps.clear();
        drill.spec.clients.clear();
        let mut for_one = |objective: Objective| {
            drill.spec.objectives = vec![objective];
            is_needed(&drill)
        };
        assert!(for_one(Objective::Linearizable(Linearizable::default())));
        assert!(for_one(Objective::NoClientOnLostTimeline(NoClientOnLostTimeline::default())));
        let rpo = Rpo { name: "lost".to_owned(), within: None, at_most_writes: Some(0) };
        assert!(for_one(Objective::Rpo(rpo)));
        assert!(!for_one(Objective::NoTwoLeaders(NoTwoLeaders::default())));
        let mut until = |to| {
            let (name, from, within) = ("again".to_owned(), RtoFrom::Fault, Span::secs(1));
            for_one(Objective::Rto(Rto { name, from, to, within }))
        };
        assert!(until(RtoTo::EtcdServing) && until(RtoTo::FirstTrueList) && until(RtoTo::FirstGoodGet));
        assert!(!until(RtoTo::FirstGoodWrite) && !until(RtoTo::ApiReady));
    }
}
