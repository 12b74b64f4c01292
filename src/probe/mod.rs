//! Probes: paced observations that a plan adds by itself.

pub mod lease;
pub mod ready;
pub mod spec;
pub mod steady;
pub mod truth;

use crate::client::context::ClientContext;
use crate::history::record::ClientKind;

/// Runs the probe of the planned kind, as `runner::clients::spawn` runs clients.
///
/// # Panics
/// When a plan adds a client of another kind by itself, which is a bug.
pub async fn run(ctx: ClientContext) {
    match ctx.planned.kind {
        ClientKind::EtcdTruth => truth::run(ctx).await,
        ClientKind::ApiReady => ready::run(ctx).await,
        ClientKind::LeaderLease => lease::run(ctx).await,
        kind => unreachable!("no probe is a {kind:?}"),
    }
}
