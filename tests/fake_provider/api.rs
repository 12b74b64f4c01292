//! API servers that keep objects by path and answer nothing else.

use futures::future::BoxFuture;
use hyper::Method;
use quakeproof::agent::api::{ApiAccess, ApiAnswer};
use quakeproof::component::ComponentId;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Objects by path; a string is answered as it is. The same for every server, but for those that are down.
#[derive(Debug, Default)]
pub struct FakeApi {
    pub objects: Mutex<BTreeMap<String, Value>>,
    /// Servers that do not answer.
    pub down: Vec<ComponentId>,
    /// What was asked, in order.
    pub asked: Mutex<Vec<String>>,
}

impl ApiAccess for FakeApi {
    fn call<'a>(
        &'a self,
        server: &'a ComponentId,
        method: Method,
        path: &'a str,
        body: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<ApiAnswer, String>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(format!("{server} {method} {path}"));
            if self.down.contains(server) {
                return Err("refused".to_owned());
            }
            let mut objects = self.objects.lock().unwrap();
            let (status, answer) = match method {
                Method::DELETE => objects.remove(path).map_or((404, Value::Null), |object| (200, object)),
                Method::POST => {
                    let object = body.cloned().unwrap_or_default();
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    objects.insert(format!("{path}/{name}"), object.clone());
                    (201, object)
                }
                Method::PUT => {
                    let (there, new) = (objects.get(path), body.cloned().unwrap_or_default());
                    let uid = &new["metadata"]["uid"];
                    match there {
                        None => (404, Value::Null),
                        Some(there) if !uid.is_null() && there["metadata"]["uid"] != *uid => {
                            (409, Value::Null)
                        }
                        Some(_) => {
                            objects.insert(path.to_owned(), new.clone());
                            (200, new)
                        }
                    }
                }
                _ => objects.get(path).map_or((404, Value::Null), |object| (200, object.clone())),
            };
            let body = match answer {
                Value::String(text) => text,
                other => other.to_string(),
            };
            Ok(ApiAnswer { status, body: body.into_bytes() })
        })
    }
}
