//! Where Kubernetes keeps its objects in etcd.
//!
//! Keys are `/registry/<resource>/<namespace>/<name>` for the core group
//! (`--etcd-prefix` at its default).

use crate::ledger::OBJECT_PREFIX;

/// Prefix of every ConfigMap's key.
pub const CONFIG_MAPS: &str = "/registry/configmaps/";

/// Prefix of the keys of the ledger's objects in `namespace`.
#[must_use]
pub fn ledger_prefix(namespace: &str) -> String {
    format!("{CONFIG_MAPS}{namespace}/{OBJECT_PREFIX}")
}

/// Ledger id of a key below [`ledger_prefix`]; `None` for other keys.
#[must_use]
pub fn ledger_id(key: &[u8]) -> Option<u64> {
    let (_, name) = std::str::from_utf8(key).ok()?.rsplit_once('/')?;
    crate::ledger::id_of(name)
}

/// `<namespace>/<name>` of a ConfigMap's key.
#[must_use]
pub fn config_map_of(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key).ok()?.strip_prefix(CONFIG_MAPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_give_back_what_they_were_made_of() {
        let key = format!("{}17", ledger_prefix("drill"));
        assert_eq!(key, "/registry/configmaps/drill/ledger-17");
        assert_eq!(ledger_id(key.as_bytes()), Some(17));
        assert_eq!(config_map_of(key.as_bytes()), Some("drill/ledger-17"));
        assert_eq!(ledger_id(b"/registry/configmaps/drill/ledger-x"), None);
        assert_eq!(ledger_id(b"\xff"), None);
    }
}
