//! Encryption of Secrets in etcd: the API servers' EncryptionConfiguration.
//!
//! It is what an API server keeps on its own disk, so it lies in its data slot. Beside it two
//! others are held ready, each in a slot of its own: one without the key and one with another
//! key, for drills in which the key is lost. All are made with the cluster and never change.

use super::layout::{ClusterDir, ComponentSpec};
use super::pki::write_secret;
use crate::component::{DataSlot, Role};
use crate::drill::spec::EncryptionKey;
use crate::drill::spec::{EncryptionAtRest, EncryptionProvider};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Bytes of a key, for each of the providers.
const KEY_BYTES: usize = 32;

/// The configuration in an API server's data slot.
#[must_use]
pub fn file(slot: &Path) -> PathBuf {
    slot.join("encryption.json")
}

/// Writes every API server's configuration, all with the same key.
///
/// # Errors
/// When a file can't be written, or the system has no randomness.
pub fn write(dir: &ClusterDir, components: &[ComponentSpec], how: EncryptionAtRest) -> io::Result<()> {
    let (key, other) = (random_key()?, random_key()?);
    let slots = [
        (DataSlot::InUse, configuration(how.provider, Some(&key))),
        (aside(EncryptionKey::Missing), configuration(how.provider, None)),
        (aside(EncryptionKey::Wrong), configuration(how.provider, Some(&other))),
    ];
    for server in components.iter().filter(|c| c.role == Role::KubeApiserver) {
        for (slot, configuration) in &slots {
            let path = dir.data(&server.host, slot);
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
            write_secret(&file(&path), &configuration.to_string())?;
        }
    }
    Ok(())
}

/// Every configuration that [`write()`] may have made: they hold keys.
pub fn files<'a>(dir: &'a ClusterDir, components: &'a [ComponentSpec]) -> impl Iterator<Item = PathBuf> + 'a {
    let servers = components.iter().filter(|c| c.role == Role::KubeApiserver);
    servers.flat_map(move |server| {
        let slots = [DataSlot::InUse, aside(EncryptionKey::Missing), aside(EncryptionKey::Wrong)];
        slots.map(|slot| file(&dir.data(&server.host, &slot)))
    })
}

fn aside(key: EncryptionKey) -> DataSlot {
    DataSlot::Aside(key.slot().unwrap_or_default().to_owned())
}

/// The first provider writes; `identity` last reads what was written before there was a key.
fn configuration(provider: EncryptionProvider, key: Option<&str>) -> Value {
    let name = match provider {
        EncryptionProvider::Secretbox => "secretbox",
        EncryptionProvider::Aescbc => "aescbc",
        EncryptionProvider::Aesgcm => "aesgcm",
    };
    let keyed = key.map(|key| json!({ name: { "keys": [{ "name": "key1", "secret": key }] } }));
    let providers: Vec<Value> = keyed.into_iter().chain([json!({ "identity": {} })]).collect();
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{ "resources": ["secrets"], "providers": providers }],
    })
}

fn random_key() -> io::Result<String> {
    let mut bytes = [0; KEY_BYTES];
    io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_encrypts_first_and_without_one_nothing_is_encrypted() {
        let with = configuration(EncryptionProvider::Aescbc, Some("a2V5"));
        let providers = |c: &Value| c["resources"][0]["providers"].as_array().unwrap().clone();
        assert_eq!(providers(&with)[0]["aescbc"]["keys"][0]["secret"], "a2V5");
        assert!(providers(&with)[1].get("identity").is_some());
        let without = providers(&configuration(EncryptionProvider::Aescbc, None));
        assert_eq!(without, [json!({ "identity": {} })]);
    }

    #[test]
    fn keys_are_32_bytes_and_differ() {
        let (one, two) = (random_key().unwrap(), random_key().unwrap());
        assert_eq!(STANDARD.decode(&one).unwrap().len(), KEY_BYTES);
        assert_ne!(one, two);
    }
}
