//! A level that was there before: read, changed, and seen to be as it was.

use super::{LEVELS, SCHEMAS, ask};
use crate::agent::api::ApiAccess;
use crate::agent::objects::{RUN_LABEL, as_written};
use crate::component::ComponentId;
use crate::fault::{FaultError, Injection};
use hyper::Method;
use serde_json::Value;

/// While it is `true`, API servers bring the object back to what they ship with, once a minute
/// (`pkg/registry/flowcontrol/ensurer`, 1.23 and later).
const AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// Reads the level, through the first API server that answers.
pub(super) async fn read(
    api: &dyn ApiAccess,
    servers: &[ComponentId],
    level: &str,
) -> Result<Value, FaultError> {
    let path = format!("{LEVELS}/{level}");
    let expected = can_be_changed(&path);
    let object = ask::any(api, servers, (Method::GET, &path, None), &expected).await?.json();
    if object["spec"]["type"] != "Limited" {
        let seen = format!("its type is {}", object["spec"]["type"]);
        return Err(FaultError::NotSeen { expected, seen });
    }
    if let Some(run) = object["metadata"]["labels"][RUN_LABEL].as_str() {
        let seen = format!("run {run} has changed it and not put it back: `quakeproof recover` does");
        return Err(FaultError::NotSeen { expected, seen });
    }
    Ok(object)
}

/// Gives the level at `path` its new spec and the run's label, unless somebody has changed it since it was read.
pub(super) async fn change(
    api: &dyn ApiAccess,
    injection: Injection<'_>,
    path: &str,
    before: &Value,
    spec: Value,
) -> Result<(), FaultError> {
    let mut object = before.clone();
    object["spec"] = spec;
    object["metadata"]["labels"][RUN_LABEL] = injection.run.into();
    if object["metadata"]["annotations"][AUTOUPDATE] == "true" {
        object["metadata"]["annotations"][AUTOUPDATE] = "false".into();
    }
    let put = (Method::PUT, path, Some(&object));
    ask::any(api, injection.targets, put, &can_be_changed(path)).await?;
    Ok(())
}

fn can_be_changed(path: &str) -> String {
    format!("{path} can be changed")
}

/// Whom the change hits: the schemas that lead to a level.
pub(super) async fn led_there(
    api: &dyn ApiAccess,
    servers: &[ComponentId],
    level: &str,
) -> Result<String, FaultError> {
    let expected = format!("it can be told who is led to {level}");
    let listed = ask::any(api, servers, (Method::GET, SCHEMAS, None), &expected).await?.json();
    let schemas = listed["items"].as_array().into_iter().flatten();
    let leading = schemas.filter(|schema| schema["spec"]["priorityLevelConfiguration"]["name"] == level);
    let names: Vec<&str> = leading.filter_map(|schema| schema["metadata"]["name"].as_str()).collect();
    Ok(match names.as_slice() {
        [] => format!("no schema leads to {level}"),
        names => format!("led to {level} by these schemas: {}", names.join(", ")),
    })
}

/// Whether the level is the same object with the same spec, annotations and labels on every API server.
pub(super) async fn as_before(
    api: &dyn ApiAccess,
    injection: Injection<'_>,
    path: &str,
    before: &Value,
) -> Result<String, FaultError> {
    for server in injection.targets {
        let expected = || format!("{path} is on {server} as it was before");
        match api.call(server, Method::GET, path, None).await {
            Ok(answer) if as_written(&answer.json()) == as_written(before) => {}
            Ok(answer) if answer.is_success() => {
                let seen = format!("it is {}", as_written(&answer.json()));
                return Err(FaultError::NotSeen { expected: expected(), seen });
            }
            Ok(answer) => return Err(FaultError::NotSeen { expected: expected(), seen: answer.refusal() }),
            Err(why) => return Err(FaultError::Untold { expected: expected(), why }),
        }
    }
    Ok(format!("{path} is as it was before"))
}
