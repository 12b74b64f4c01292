//! The versions that a drill gets: those that it names, and for those that it leaves open the pinned ones.

use super::Versions;
use crate::provider::binaries::{known_kubernetes, newest_pair, pinned_pairs};

/// Why no pair of versions could be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// Kubernetes version that is not pinned.
    #[error("Kubernetes {asked} is not pinned; pinned are {}", known_kubernetes())]
    UnknownKubernetes {
        /// As asked for.
        asked: String,
    },
    /// etcd version that does not belong to the Kubernetes version.
    #[error("etcd {asked} is not pinned with Kubernetes {kubernetes}; leave `etcd` out, or write {pinned}")]
    WrongEtcd {
        /// As asked for.
        asked: String,
        /// The Kubernetes version.
        kubernetes: String,
        /// Its pair.
        pinned: String,
    },
}

/// The pinned pair for what the drill asks for; the newest when it asks for nothing.
///
/// # Errors
/// When what is asked for is not pinned, or not pinned together.
pub fn pinned_pair(kubernetes: Option<&str>, etcd: Option<&str>) -> Result<Versions, VersionError> {
    let (k, e) = match (kubernetes, etcd) {
        (Some(asked), _) => pinned_pairs()
            .iter()
            .copied()
            .find(|(k, _)| *k == asked)
            .ok_or_else(|| VersionError::UnknownKubernetes { asked: asked.to_owned() })?,
        (None, Some(asked)) => {
            pinned_pairs().iter().copied().find(|(_, e)| *e == asked).unwrap_or(newest_pair())
        }
        (None, None) => newest_pair(),
    };
    match etcd {
        Some(asked) if asked != e => Err(VersionError::WrongEtcd {
            asked: asked.to_owned(),
            kubernetes: k.to_owned(),
            pinned: e.to_owned(),
        }),
        _ => Ok(Versions { kubernetes: k.to_owned(), etcd: e.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drill_gets_the_pair_that_is_pinned_together() {
        assert_eq!(pinned_pair(None, None).unwrap().kubernetes, newest_pair().0);
        assert_eq!(pinned_pair(Some("v1.30.4"), None).unwrap().etcd, "v3.5.21");
        assert_eq!(pinned_pair(None, Some("v3.5.21")).unwrap().kubernetes, "v1.30.4");
        assert!(matches!(pinned_pair(Some("v1.30.4"), Some("v3.7.3")), Err(VersionError::WrongEtcd { .. })));
        assert!(matches!(pinned_pair(None, Some("v3.6.0")), Err(VersionError::WrongEtcd { .. })));
        assert!(matches!(pinned_pair(Some("v1.2.3"), None), Err(VersionError::UnknownKubernetes { .. })));
    }
}
