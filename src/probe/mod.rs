//! Probes: paced observations that a plan adds by itself. Each has a file of its own, which says when a plan has it and
//! what it asks, and one line in the list below. Beside them, in `steady`, the conditions that a drill begins with.

pub mod lease;
pub mod ready;
pub mod spec;
pub mod steady;
pub mod truth;

use crate::client::context::ClientContext;
use crate::component::{ComponentId, Role};
use crate::drill::spec::Drill;
use crate::history::kind::ClientKind;
use std::time::Duration;

/// What a plan knows when it adds probes.
#[derive(Clone, Copy)]
pub struct Needs<'a> {
    /// The drill.
    pub drill: &'a Drill,
    /// The components of a role, in their order.
    pub of_role: &'a dyn Fn(Role) -> Vec<ComponentId>,
}

/// A probe that a plan adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Its name; it begins as the kind's own `NAME` says.
    pub name: String,
    /// Whom it asks.
    pub target: ComponentId,
    /// As whom.
    pub identity: Identity,
    /// Time between two questions.
    pub every: Duration,
}

/// As whom a probe asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// The harness's own observer.
    Observer,
    /// A user of its own, like a client's.
    Own,
}

macro_rules! probes {
    ($($module:ident => $kind:ident),+ $(,)?) => {
        /// What names of probes are, or begin with where they end with `-`: no client of a drill has such a one.
        pub const NAMES: &[&str] = &[$($module::NAME),+];

        /// The probes that a drill's plan has.
        #[must_use]
        pub fn planned(needs: Needs<'_>) -> Vec<(ClientKind, Probe)> {
            let mut all = Vec::new();
            $(all.extend($module::planned(needs).into_iter().map(|probe| (ClientKind::$kind, probe)));)+
            all
        }

        /// Runs the probe of the planned kind, as `runner::clients::spawn` runs clients.
        ///
        /// # Panics
        /// When a plan adds a client of another kind by itself, which is a bug.
        pub async fn run(ctx: ClientContext) {
            match ctx.setup.planned.kind {
                $(ClientKind::$kind => $module::run(ctx).await,)+
                kind => unreachable!("no probe is a {kind:?}"),
            }
        }
    };
}

probes! {
    truth => EtcdTruth,
    ready => ApiReady,
    lease => LeaderLease,
}
