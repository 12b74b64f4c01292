//! Single looks at a running cluster, with the harness's observer identity.
//! Each opens its own connection and never retries: who waits looks again.

use super::{Cluster, observer};
use crate::agent::view::{ClusterView, EtcdState, Look};
use crate::component::{ComponentId, Role};
use crate::etcd::client::EtcdClient;
use crate::etcd::registry::{CONFIG_MAPS, config_map_of};
use crate::wire::failure::FailureClass;
use crate::wire::http::HttpClient;
use crate::wire::objects::List;
use futures::future::BoxFuture;
use hyper::Method;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Limit of one request of a look.
pub const DEADLINE: Duration = Duration::from_secs(3);

/// `Ok(None)`: it is so. `Ok(Some(why))`: it was observed not to be so. `Err`:
/// the observer itself failed and nothing can be told.
type Told = Result<Option<String>, String>;

/// Looks at a cluster that runs.
pub struct LiveView {
    cluster: Arc<dyn Cluster>,
}

impl LiveView {
    /// A view of this cluster.
    #[must_use]
    pub fn new(cluster: Arc<dyn Cluster>) -> Self {
        Self { cluster }
    }

    async fn member_health(&self, member: &ComponentId) -> Told {
        let mut etcd = self.etcd(member)?;
        Ok(etcd.health(DEADLINE).await.err().map(|failure| format!("{member}: {failure}")))
    }

    async fn readyz(&self, server: &ComponentId) -> Told {
        let mut http = observer::http(self.cluster.as_ref(), server)?;
        let answer = http.send(Method::GET, "/readyz", None, DEADLINE).await;
        Ok(match answer {
            Ok(answer) if answer.is_success() => None,
            Ok(answer) => Some(format!("{server}: {}", answer.in_words())),
            Err(failure) => Some(format!("{server}: {}", failure.class())),
        })
    }

    /// LIST of every ConfigMap of all namespaces, through each API server, with
    /// resourceVersion unset and with `0`, equals etcd's range *at the revision
    /// that the LIST names* in names and revisions. A revision that etcd has not
    /// reached is of a timeline that exists no longer.
    async fn compare_lists(&self) -> Told {
        let components = self.cluster.control().list().await.map_err(|e| e.to_string())?;
        let mut of_role: BTreeMap<Role, Vec<ComponentId>> = BTreeMap::new();
        for status in components {
            of_role.entry(status.role).or_default().push(status.component);
        }
        let member = of_role.get(&Role::Etcd).and_then(|m| m.first()).ok_or("the cluster has no etcd")?;
        let mut etcd = self.etcd(member)?;
        for server in of_role.get(&Role::KubeApiserver).ok_or("the cluster has no API server")? {
            for query in ["", "?resourceVersion=0"] {
                let mut http = observer::http(self.cluster.as_ref(), server)?;
                if let Some(why) = compare(&mut http, &mut etcd, query).await {
                    return Ok(Some(format!("LIST {query} through {server}: {why}")));
                }
            }
        }
        Ok(None)
    }

    fn etcd(&self, member: &ComponentId) -> Result<EtcdClient, String> {
        let endpoint = self.cluster.endpoint(member).map_err(|e| e.to_string())?;
        let identity = self.cluster.etcd_identity().map_err(|e| e.to_string())?;
        EtcdClient::new(self.cluster.dialer(), &endpoint, &identity).map_err(|e| e.to_string())
    }
}

fn look(told: Told, holds: impl FnOnce() -> String) -> Look {
    match told {
        Ok(None) => Look::Holds(holds()),
        Ok(Some(why)) => Look::Fails(why),
        Err(why) => Look::Unknown(why),
    }
}

impl ClusterView for LiveView {
    fn etcd_healthy<'a>(&'a self, member: &'a ComponentId) -> BoxFuture<'a, Look> {
        Box::pin(async move { look(self.member_health(member).await, || format!("{member} answers")) })
    }

    fn etcd_state<'a>(&'a self, member: &'a ComponentId) -> BoxFuture<'a, Result<EtcdState, String>> {
        Box::pin(async move {
            let header = self.etcd(member)?.health(DEADLINE).await.map_err(|e| format!("{member}: {e}"))?;
            Ok(EtcdState { revision: header.revision, raft_term: header.raft_term })
        })
    }

    fn api_ready<'a>(&'a self, server: &'a ComponentId) -> BoxFuture<'a, Look> {
        Box::pin(async move { look(self.readyz(server).await, || format!("{server} is ready")) })
    }

    fn list_equals_etcd(&self) -> BoxFuture<'_, Look> {
        Box::pin(async move {
            look(self.compare_lists().await, || "every LIST equals etcd's state at its revision".to_owned())
        })
    }
}

/// Why a LIST differs from etcd, or can't be had.
async fn compare(http: &mut HttpClient, etcd: &mut EtcdClient, query: &str) -> Option<String> {
    let path = format!("/api/v1/configmaps{query}");
    let answer = match http.send(Method::GET, &path, None, DEADLINE).await {
        Ok(answer) if answer.is_success() => answer,
        Ok(answer) => return Some(answer.in_words()),
        Err(failure) => return Some(failure.class().to_string()),
    };
    let list = match serde_json::from_slice::<List<'_>>(&answer.body) {
        Ok(list) => list,
        Err(error) => return Some(format!("the list can't be read: {error}")),
    };
    let Some(revision) = list.metadata.revision() else {
        return Some("the list has no resourceVersion".to_owned());
    };
    let listed = list.items.iter().map(|item| {
        let meta = &item.metadata;
        (format!("{}/{}", meta.namespace, meta.name), meta.revision().unwrap_or(0))
    });
    let range = match etcd.range(CONFIG_MAPS, Some(revision), DEADLINE).await {
        Ok(range) => range,
        Err(failure) if failure.class == FailureClass::FutureRevision => {
            return Some(format!("its resourceVersion {revision} is one that etcd has not reached"));
        }
        Err(failure) => return Some(format!("etcd at revision {revision}: {failure}")),
    };
    let stored =
        range.keys.iter().filter_map(|key| Some((config_map_of(&key.key)?.to_owned(), key.mod_revision)));
    first_difference(&listed.collect(), &stored.collect()).map(|why| format!("at revision {revision}, {why}"))
}

/// The first name, in order, on which a list and etcd disagree.
fn first_difference(listed: &BTreeMap<String, u64>, stored: &BTreeMap<String, u64>) -> Option<String> {
    let names = listed.keys().chain(stored.keys());
    let name = names.filter(|name| listed.get(*name) != stored.get(*name)).min()?;
    let shown = name.escape_debug();
    Some(match (listed.get(name), stored.get(name)) {
        (Some(listed), Some(stored)) => {
            format!("`{shown}` is listed with revision {listed} and stored with {stored}")
        }
        (Some(_), None) => format!("`{shown}` is listed but not stored"),
        _ => format!("`{shown}` is stored but not listed"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn objects(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs.iter().map(|(name, revision)| ((*name).to_owned(), *revision)).collect()
    }

    #[test]
    fn phantom_absent_and_changed_objects_are_each_named() {
        let stored = objects(&[("n/a", 1), ("n/b", 2)]);
        let why = |listed: &[(&str, u64)]| first_difference(&objects(listed), &stored);
        assert_eq!(why(&[("n/a", 1), ("n/b", 2)]), None);
        assert_eq!(why(&[("n/a", 1)]).unwrap(), "`n/b` is stored but not listed");
        assert_eq!(why(&[("n/a", 1), ("n/b", 2), ("n/c", 3)]).unwrap(), "`n/c` is listed but not stored");
        let changed = why(&[("n/a", 7), ("n/b", 2)]).unwrap();
        assert_eq!(changed, "`n/a` is listed with revision 7 and stored with 1");
    }

    proptest! {
        #[test]
        fn no_difference_is_reported_exactly_when_both_are_equal(
            listed in proptest::collection::btree_map("[ab]{1,2}", 0u64..3, 0..4),
            stored in proptest::collection::btree_map("[ab]{1,2}", 0u64..3, 0..4),
        ) {
            prop_assert_eq!(first_difference(&listed, &stored).is_none(), listed == stored);
        }
    }
}
