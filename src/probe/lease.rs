//! Who leads: the Lease of a leader-elected component.

use super::{Identity, Needs, Probe};
use crate::client::context::{ClientContext, Setup};
use crate::client::pace::Pace;
use crate::client::session::{Broken, Session, live};
use crate::component::Role;
use crate::history::record::{Answer, Op, Outcome};
use crate::load::pacer::Account;
use crate::wire::failure::FailureClass;
use crate::wire::http::{HttpAnswer, HttpClient, HttpFailure, failed_read, stopped};
use crate::wire::objects::Lease;
use hyper::Method;
use std::borrow::Cow;
use std::time::Duration;

/// Its name begins so; the Lease follows.
pub const NAME: &str = "leader-";
/// Time between two looks at a Lease, which is renewed every 2 s by default.
const EVERY: Duration = Duration::from_millis(500);
/// An answer later than this is none.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// One for each kind of component that elects a leader.
#[must_use]
pub fn planned(needs: Needs<'_>) -> Vec<Probe> {
    let Some(target) = (needs.of_role)(Role::KubeApiserver).into_iter().next() else { return Vec::new() };
    let runs = |role| !(needs.of_role)(role).is_empty();
    let led = [Role::KubeControllerManager, Role::KubeScheduler].into_iter().zip(LEASES);
    led.filter(|(role, _)| runs(*role))
        .map(|(_, lease)| Probe {
            name: format!("{NAME}{lease}"),
            target: target.clone(),
            identity: Identity::Own,
            every: EVERY,
        })
        .collect()
}

/// Asks until told to end.
pub async fn run(ctx: ClientContext) {
    live(ctx, observe).await;
}

async fn observe(session: &mut Session, setup: &Setup) -> Result<Account, Broken> {
    let mut http = HttpClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?;
    let name = lease_of(&setup.planned.name)
        .ok_or_else(|| Broken::NoLease(setup.planned.name.clone(), LEASES.join(" or ")))?;
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}");
    let mut pace = Pace::new(session, setup.every_ns()?);
    while let Some(slot) = pace.next().await {
        let (timing, result) =
            session.timed(Some(slot.due), http.send(Method::GET, &path, None, DEADLINE)).await;
        let outcome = result.map_or_else(stopped, |result| outcome_of(&result));
        session.op(timing, Op::Lease { name: name.to_owned() }, outcome)?;
    }
    Ok(pace.account())
}

/// Leases that controller managers and schedulers hold in `kube-system`.
pub const LEASES: [&str; 2] = ["kube-controller-manager", "kube-scheduler"];

/// The lease that a probe of this name reads: its name ends with the lease's,
/// as in `leader-kube-scheduler`.
#[must_use]
pub fn lease_of(probe: &str) -> Option<&'static str> {
    LEASES.into_iter().find(|lease| probe.ends_with(lease))
}

fn outcome_of(result: &Result<HttpAnswer, HttpFailure>) -> Outcome {
    let Ok(answer) = result else { return failed_read(result) };
    if !answer.is_success() {
        return failed_read(result);
    }
    match serde_json::from_slice::<Lease<'_>>(&answer.body) {
        Ok(lease) => Outcome::Ok(Answer {
            revision: lease.metadata.revision(),
            holder: lease.spec.holder_identity.map(Cow::into_owned),
            ..Answer::default()
        }),
        Err(_) => {
            Outcome::Failed { status: Some(answer.status), reason: FailureClass::Malformed.to_string() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_says_which_lease_it_reads() {
        assert_eq!(lease_of("leader-kube-scheduler"), Some("kube-scheduler"));
        assert_eq!(lease_of("leader-kube-controller-manager"), Some("kube-controller-manager"));
        assert_eq!(lease_of("leader"), None);
    }

    #[test]
    fn a_lease_gives_its_holder_and_revision_and_one_that_nobody_holds_gives_none() {
        let answer = |spec: &str| {
            let body = format!(r#"{{"metadata":{{"resourceVersion":"5"}},"spec":{spec}}}"#);
            outcome_of(&Ok(HttpAnswer { status: 200, body: body.into() }))
        };
        let holder = |outcome| match outcome {
            Outcome::Ok(Answer { holder, revision: Some(5), .. }) => holder,
            other => panic!("unexpected {other:?}"),
        };
        assert_eq!(holder(answer(r#"{"holderIdentity":"host_1"}"#)), Some("host_1".to_owned()));
        assert_eq!(holder(answer("{}")), None);
    }
}
