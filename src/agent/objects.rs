//! Objects of the API that a run has made, and how an undo removes them.

use super::api::ApiAccess;
use super::view::Look;
use crate::provider::component::ComponentId;
use hyper::Method;

/// Label with the run's id on everything that a run makes and an undo removes.
pub const RUN_LABEL: &str = "quakeproof.dev/run";

/// Removes the objects at `paths`, in order, through the first API server that answers. `Holds` once none is
/// left that carries the run's label; what carries none, or another run's, is somebody else's and stays.
pub async fn remove(api: &dyn ApiAccess, servers: &[ComponentId], run: &str, paths: &[String]) -> Look {
    let mut last = "there is no API server to ask".to_owned();
    for server in servers {
        match remove_through(api, server, run, paths).await {
            Ok(()) => return Look::Holds(format!("{} is gone", paths.join(", "))),
            Err(why) => last = format!("{server}: {why}"),
        }
    }
    Look::Fails(last)
}

async fn remove_through(
    api: &dyn ApiAccess,
    server: &ComponentId,
    run: &str,
    paths: &[String],
) -> Result<(), String> {
    for path in paths {
        let there = api.call(server, Method::GET, path, None).await?;
        if there.status == 404 {
            continue;
        }
        if !there.is_success() {
            return Err(format!("GET {path}: {}", there.refusal()));
        }
        if there.json()["metadata"]["labels"][RUN_LABEL] != run {
            continue;
        }
        let deleted = api.call(server, Method::DELETE, path, None).await?;
        if !deleted.is_success() && deleted.status != 404 {
            return Err(format!("DELETE {path}: {}", deleted.refusal()));
        }
    }
    Ok(())
}
