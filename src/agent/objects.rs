//! Objects of the API that a run has made or changed, and how an undo removes them or puts them back.

use super::api::ApiAccess;
use super::view::Look;
use crate::component::ComponentId;
use hyper::Method;
use serde_json::{Map, Value};

/// Label with the run's id on everything that a run makes or changes, until the undo.
pub const RUN_LABEL: &str = "quakeproof.dev/run";

/// Removes the objects at `paths`, in order, through the first API server that answers. `Holds` once none is
/// left that carries the run's label; what carries none, or another run's, is somebody else's and stays.
pub async fn remove(api: &dyn ApiAccess, servers: &[ComponentId], run: &str, paths: &[String]) -> Look {
    let done = format!("{} is gone", paths.join(", "));
    through_any(servers, &done, |server| remove_through(api, server, run, paths)).await
}

/// Brings the object at `path` back to what it was in `before`, through the first API server that answers. `Holds`
/// once it does not carry the run's label any more; what never did, or is gone, is somebody else's and stays.
pub async fn put_back(
    api: &dyn ApiAccess,
    servers: &[ComponentId],
    run: &str,
    path: &str,
    before: &Value,
) -> Look {
    let done = format!("{path} is as it was");
    through_any(servers, &done, |server| put_back_through(api, server, run, path, before)).await
}

async fn through_any<'a, Fut>(
    servers: &'a [ComponentId],
    done: &str,
    attempt: impl Fn(&'a ComponentId) -> Fut,
) -> Look
where
    Fut: Future<Output = Result<(), String>>,
{
    let mut last = "there is no API server to ask".to_owned();
    for server in servers {
        match attempt(server).await {
            Ok(()) => return Look::Holds(done.to_owned()),
            Err(why) => last = format!("{server}: {why}"),
        }
    }
    Look::Fails(last)
}

async fn put_back_through(
    api: &dyn ApiAccess,
    server: &ComponentId,
    run: &str,
    path: &str,
    before: &Value,
) -> Result<(), String> {
    if !is_of_run(api, server, run, path).await? {
        return Ok(());
    }
    let put = api.call(server, Method::PUT, path, Some(&as_written(before))).await?;
    if put.is_success() { Ok(()) } else { Err(format!("PUT {path}: {}", put.refusal())) }
}

/// What somebody has written of an object, and its UID: everything but what API servers add. A PUT of it is refused
/// where another object has taken the name.
#[must_use]
pub fn as_written(object: &Value) -> Value {
    let pick = |from: &Value, keys: &[&str]| {
        let found = keys.iter().filter(|key| !from[**key].is_null());
        Value::Object(found.map(|key| ((*key).to_owned(), from[*key].clone())).collect::<Map<_, _>>())
    };
    let mut written = pick(object, &["apiVersion", "kind", "spec"]);
    let metadata = ["name", "uid", "labels", "annotations", "ownerReferences", "finalizers"];
    written["metadata"] = pick(&object["metadata"], &metadata);
    written
}

async fn is_of_run(api: &dyn ApiAccess, server: &ComponentId, run: &str, path: &str) -> Result<bool, String> {
    let there = api.call(server, Method::GET, path, None).await?;
    match there.status {
        404 => Ok(false),
        _ if there.is_success() => Ok(there.json()["metadata"]["labels"][RUN_LABEL] == run),
        _ => Err(format!("GET {path}: {}", there.refusal())),
    }
}

async fn remove_through(
    api: &dyn ApiAccess,
    server: &ComponentId,
    run: &str,
    paths: &[String],
) -> Result<(), String> {
    for path in paths {
        if !is_of_run(api, server, run, path).await? {
            continue;
        }
        let deleted = api.call(server, Method::DELETE, path, None).await?;
        if !deleted.is_success() && deleted.status != 404 {
            return Err(format!("DELETE {path}: {}", deleted.refusal()));
        }
    }
    Ok(())
}
