//! When an operation was due, called and returned.

use crate::clock::{Clock, MonoNs};
use std::future::Future;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long an operation that is out may still return once the client was told to end.
pub const STOP_GRACE: Duration = Duration::from_millis(500);

/// When an operation was due, called and returned.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// When the pacer wanted it sent.
    pub due: Option<MonoNs>,
    /// Just before it was begun.
    pub call: MonoNs,
    /// When it returned or was given up.
    pub returned: MonoNs,
}

/// Runs an operation and takes its times; `None` when the client was told to end
/// and the operation did not return within [`STOP_GRACE`].
pub async fn timed<T>(
    clock: &dyn Clock,
    stop: &CancellationToken,
    due: Option<MonoNs>,
    operation: impl Future<Output = T>,
) -> (Timing, Option<T>) {
    let call = clock.mono();
    let output = tokio::select! {
        biased;
        output = operation => Some(output),
        () = async { stop.cancelled().await; tokio::time::sleep(STOP_GRACE).await } => None,
    };
    (Timing { due, call, returned: clock.mono() }, output)
}
