//! Ed25519 keys as PEM, in the forms that OpenSSL reads and writes: PKCS#8 (RFC 8410, version 1;
//! version 2 is read as well) for the private key, SubjectPublicKeyInfo for the public one.

use crate::digest::sha256_hex;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Longest key file that is read, bytes.
const MAX_FILE: u64 = 64 << 10;

/// DER of an ed25519 private key in PKCS#8 version 1, up to its 32 bytes (RFC 8410, section 7).
const PKCS8_HEAD: [u8; 16] = *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// DER of an ed25519 SubjectPublicKeyInfo, up to its 32 bytes (RFC 8410, section 4).
const SPKI_HEAD: [u8; 12] = *b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";

/// Why there is no key.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file can't be read.
    #[error("key {}: {source}\n  hint: `quakeproof keygen` makes a pair of keys", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("key {}: {what}\n  hint: {hint}", path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// The machine gives no random numbers.
    #[error("no key can be made: the system gives no random numbers")]
    NoRandomness,
}

/// What identifies a key: the SHA-256 of its SubjectPublicKeyInfo (DER), hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyId(String);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl KeyId {
    /// As it stands in an envelope.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A key that signs. Its PEM is known so that the bundle can be searched for it.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    pem: String,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.verifying().id())
    }
}

impl SigningKey {
    /// A new key.
    ///
    /// # Errors
    /// [`KeyError::NoRandomness`].
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        SystemRandom::new().fill(&mut seed).map_err(|_| KeyError::NoRandomness)?;
        let der = [PKCS8_HEAD.as_slice(), &seed].concat();
        // OpenSSL before 3.6 refuses version 2, which is what `ring` itself writes.
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| KeyError::NoRandomness)?;
        Ok(Self { pair, pem: pem("PRIVATE KEY", &der) })
    }

    /// Reads a private key.
    ///
    /// # Errors
    /// When the file can't be read or holds no ed25519 private key without a password.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let pem = read_text(path)?;
        let refused = |what: String, hint| KeyError::NotAKey { path: path.to_owned(), what, hint };
        let hint = "a key must be ed25519 as unencrypted PKCS#8 in PEM: `quakeproof keygen`, or \
                    `openssl genpkey -algorithm ed25519`";
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| match label(&pem) {
            Some("PUBLIC KEY") => {
                let hint = "signing takes the private key; the public one is for `verify --key`";
                refused("it holds a public key".to_owned(), hint)
            }
            Some("ENCRYPTED PRIVATE KEY") => {
                let hint = "take the password off, into a file that only you can read: `openssl pkey -in KEY -out PLAIN`";
                refused("it is encrypted".to_owned(), hint)
            }
            Some(label) => refused(format!("it holds a PEM block `{}`", label.escape_debug()), hint),
            None => refused("it holds no PEM block".to_owned(), hint),
        })?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der())
            .map_err(|e| refused(format!("it holds no ed25519 key ({e})"), hint))?;
        Ok(Self { pair, pem })
    }

    /// PEM of the private key.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The public half.
    #[must_use]
    pub fn verifying(&self) -> VerifyingKey {
        let mut raw = [0; 32];
        raw.copy_from_slice(self.pair.public_key().as_ref());
        VerifyingKey(raw)
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }
}

/// A key that checks signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyingKey([u8; 32]);

impl VerifyingKey {
    /// Reads a public key.
    ///
    /// # Errors
    /// When the file can't be read or holds no ed25519 public key.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let pem = read_text(path)?;
        let refused = |what: String, hint| KeyError::NotAKey { path: path.to_owned(), what, hint };
        let hint = "a public key must be ed25519 in PEM: the `.pub` file of `quakeproof keygen`, or \
                    `openssl pkey -in KEY -pubout`";
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).map_err(|_| match label(&pem) {
            Some("PRIVATE KEY") => {
                let hint = "verifying takes the public key, the file ending in `.pub`; keep the private one to yourself";
                refused("it holds a private key".to_owned(), hint)
            }
            Some(label) => refused(format!("it holds a PEM block `{}`", label.escape_debug()), hint),
            None => refused("it holds no PEM block".to_owned(), hint),
        })?;
        let raw = der.strip_prefix(&SPKI_HEAD).and_then(|raw| raw.try_into().ok());
        raw.map(Self).ok_or_else(|| refused("it holds no ed25519 key".to_owned(), hint))
    }

    /// PEM of the public key.
    #[must_use]
    pub fn pem(&self) -> String {
        pem("PUBLIC KEY", &self.der())
    }

    /// What identifies the key.
    #[must_use]
    pub fn id(&self) -> KeyId {
        KeyId(sha256_hex(&self.der()))
    }

    fn der(&self) -> Vec<u8> {
        [SPKI_HEAD.as_slice(), &self.0].concat()
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }
}

fn read_text(path: &Path) -> Result<String, KeyError> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE).read_to_end(&mut bytes))
        .map_err(|source| KeyError::Io { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What the first PEM block says that it is.
fn label(pem: &str) -> Option<&str> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (label, _) = rest.split_once("-----")?;
    (label.len() <= 40).then_some(label)
}

/// A PEM block of one line: both kinds of key have fewer than 49 bytes.
fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 8410, section 10: the private key in both versions and its public key.
    const PRIVATE_V1: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, text).unwrap();
        (dir, path)
    }

    #[test]
    fn the_keys_of_the_rfc_belong_together() {
        let (_dir, path) = file(PRIVATE_V1);
        let key = SigningKey::read(&path).unwrap();
        assert_eq!(key.verifying().pem(), PUBLIC);
        let (_dir, path) = file(PUBLIC);
        let public = VerifyingKey::read(&path).unwrap();
        assert_eq!(public, key.verifying());
        // printf of the base64 above | base64 -d | sha256sum
        assert_eq!(public.id().as_str().len(), 64);
    }

    #[test]
    fn a_new_key_reads_back_and_signs_for_itself_only() {
        let key = SigningKey::generate().unwrap();
        let (_dir, path) = file(key.pem());
        let again = SigningKey::read(&path).unwrap();
        assert_eq!(again.verifying(), key.verifying());
        let signature = again.sign(b"message");
        assert!(key.verifying().verifies(b"message", &signature));
        assert!(!key.verifying().verifies(b"massage", &signature));
        assert!(!SigningKey::generate().unwrap().verifying().verifies(b"message", &signature));
        assert!(!format!("{key:?}").contains(key.pem().lines().nth(1).unwrap()));
    }

    #[test]
    fn what_is_no_key_is_named_with_a_way_out() {
        let ec = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg\n-----END PRIVATE KEY-----\n";
        for (text, said) in [
            (PUBLIC, "it holds a public key"),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
                "it is encrypted",
            ),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
                "`OPENSSH PRIVATE KEY`",
            ),
            (ec, "no ed25519 key"),
            ("", "no PEM block"),
            ("-----BEGIN PRIVATE KEY-----\n!!\n", "PRIVATE KEY"),
        ] {
            let (_dir, path) = file(text);
            let error = SigningKey::read(&path).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("hint: "), "{error}");
        }
        let (_dir, path) = file(PRIVATE_V1);
        assert!(VerifyingKey::read(&path).unwrap_err().to_string().contains("private key"));
        let error = SigningKey::read(Path::new("/nonexistent/key")).unwrap_err().to_string();
        assert!(error.contains("keygen"), "{error}");
    }
}
