//! What `--set`, `--kubernetes` and `--profile` may change, and how.

use super::resolve::PlanError;
use crate::drill::parameters::ParameterValues;
use crate::drill::spec::{Drill, ProviderKind};
use std::collections::BTreeMap;

/// Keys of `--set` beside the drill's own parameters.
const CLUSTER_KEYS: [&str; 7] = [
    "cluster.provider",
    "cluster.kubernetes",
    "cluster.name",
    "cluster.topology.etcd",
    "cluster.topology.apiServers",
    "cluster.topology.controllerManagers",
    "cluster.topology.schedulers",
];

/// Overrides, sorted by what they change.
pub(super) struct Overrides {
    /// For the parameters of the drill.
    pub parameters: ParameterValues,
    /// For the cluster, by key.
    cluster: BTreeMap<String, String>,
}

impl Overrides {
    /// Sorts what was given; `kubernetes` is short for `cluster.kubernetes`.
    pub fn sort(
        set: &BTreeMap<String, String>,
        kubernetes: Option<&str>,
        profile: Option<&str>,
    ) -> Result<Self, PlanError> {
        let mut parameters = ParameterValues { profile: profile.map(str::to_owned), set: BTreeMap::new() };
        let mut cluster = BTreeMap::new();
        for (key, value) in set {
            if CLUSTER_KEYS.contains(&key.as_str()) {
                cluster.insert(key.clone(), value.clone());
            } else if key.contains('.') {
                let reason = format!(
                    "`{key}` can't be set; beside the drill's parameters there are {}. Objectives and limits \
                     are never overridden: edit the drill",
                    CLUSTER_KEYS.join(", ")
                );
                return Err(PlanError::Override { key: key.clone(), reason });
            } else {
                parameters.set.insert(key.clone(), value.clone());
            }
        }
        if let Some(version) = kubernetes {
            match cluster.insert("cluster.kubernetes".to_owned(), version.to_owned()) {
                Some(other) if other != version => {
                    let reason =
                        format!("`--kubernetes {version}` and `--set cluster.kubernetes={other}` differ");
                    return Err(PlanError::Override { key: "cluster.kubernetes".to_owned(), reason });
                }
                _ => {}
            }
        }
        Ok(Self { parameters, cluster })
    }

    /// Everything that was changed, for the plan.
    pub fn listed(&self) -> BTreeMap<String, String> {
        let mut all = self.cluster.clone();
        all.extend(self.parameters.set.clone());
        if let Some(profile) = &self.parameters.profile {
            all.insert("profile".to_owned(), profile.clone());
        }
        all
    }

    /// Changes the cluster as asked.
    pub fn apply(&self, drill: &mut Drill) -> Result<(), PlanError> {
        let cluster = &mut drill.spec.cluster;
        for (key, value) in &self.cluster {
            let bad = |reason: String| PlanError::Override { key: key.clone(), reason };
            let count =
                || value.parse::<u8>().map_err(|_| bad(format!("`{value}` is not a small whole number")));
            match key.as_str() {
                "cluster.provider" => {
                    let named = ProviderKind::BY_WORD.iter().find(|(word, _)| word == value);
                    let words = ProviderKind::BY_WORD.map(|(word, _)| format!("`{word}`")).join(", ");
                    let unknown = || bad(format!("unknown provider `{value}`; there is {words}"));
                    cluster.provider = named.ok_or_else(unknown)?.1;
                }
                "cluster.kubernetes" => {
                    // A drill's own etcd belongs to the version that it named itself.
                    cluster.kubernetes = Some(value.clone());
                    cluster.etcd = None;
                }
                "cluster.name" => cluster.name = Some(value.clone()),
                "cluster.topology.etcd" => cluster.topology.etcd = count()?,
                "cluster.topology.apiServers" => cluster.topology.api_servers = count()?,
                "cluster.topology.controllerManagers" => cluster.topology.controller_managers = count()?,
                _ => cluster.topology.schedulers = count()?,
            }
        }
        Ok(())
    }
}
