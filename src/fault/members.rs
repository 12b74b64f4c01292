//! What is looked at when members of etcd have been killed, and when they are back.

use super::{FaultContext, FaultError, expect_look};
use crate::component::{ComponentId, ComponentState};

/// All of them are stopped, as whoever controls them says.
///
/// # Errors
/// The first that is not, or that their states can't be had.
pub(super) async fn expect_stopped(
    context: FaultContext<'_>,
    members: &[ComponentId],
) -> Result<(), FaultError> {
    let all = context.control.list().await?;
    for member in members {
        let state = all.iter().find(|s| s.component == *member).map(|s| &s.state);
        if state != Some(&ComponentState::Stopped) {
            return Err(FaultError::NotSeen {
                expected: format!("{member} is stopped"),
                seen: format!("its state is {state:?}"),
            });
        }
    }
    Ok(())
}

/// Each answers a linearizable read, and what it said.
///
/// # Errors
/// The first that does not answer.
pub(super) async fn expect_answers(
    context: FaultContext<'_>,
    members: &[ComponentId],
) -> Result<String, FaultError> {
    let mut seen = Vec::new();
    for member in members {
        let look = context.view.etcd_healthy(member).await;
        seen.push(expect_look(look, true, &format!("{member} answers a linearizable read"))?);
    }
    Ok(seen.join("; "))
}
