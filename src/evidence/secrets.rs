//! Looks for secrets in a bundle (invariant 13): known ones, and whatever looks like one.

use super::EvidenceError;
use super::layout::RunDir;
use super::patterns;
use memchr::memmem::Finder;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A secret in a bundle. What it is stays out of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// File below the run directory.
    pub file: String,
    /// Line, counted from 1; 0 when it is the file as a whole.
    pub line: u64,
    /// Kind of secret, in words.
    pub what: &'static str,
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}: {}", self.file, self.line, self.what)
    }
}

/// Shortest line of a PEM block that is looked for, bytes: shorter ones stand for nothing secret.
const SHORTEST_LINE: usize = 16;

/// Shortest word elsewhere that is taken for a key, bytes: 256 bits in base64 have 43, and no name is that long.
const SHORTEST_WORD: usize = 40;

/// Secrets of a cluster, learned while it exists and looked for when the bundle is sealed, by when it may be
/// gone. Clones share them. Never printed.
#[derive(Clone, Default)]
pub struct KnownSecrets(Arc<Mutex<Vec<String>>>);

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KnownSecrets({})", self.texts().len())
    }
}

impl KnownSecrets {
    /// Learns what in a text is secret: every line of a PEM block, and elsewhere every word that may be a key.
    pub fn learn(&self, text: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut learn = |secret: &str| {
            if !known.iter().any(|old| old == secret) {
                known.push(secret.to_owned());
            }
        };
        let mut within = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with("-----") {
                within = line.starts_with("-----BEGIN ");
            } else if within && line.len() >= SHORTEST_LINE {
                learn(line);
            } else if !within {
                let apart = |c: char| !(c.is_ascii_alphanumeric() || "+/=-_".contains(c));
                line.split(apart).filter(|word| word.len() >= SHORTEST_WORD).for_each(&mut learn);
            }
        }
    }

    /// Learns what a file holds. One that can't be read has nothing to give away here either.
    pub fn learn_file(&self, path: &Path) {
        if let Ok(bytes) = std::fs::read(path) {
            self.learn(&String::from_utf8_lossy(&bytes));
        }
    }

    /// What is known.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Looks through every file, the manifest included. `canaries` are secrets known to the
/// caller; they are found as they are and in base64.
///
/// # Errors
/// When a file can't be read.
pub fn scan(dir: &RunDir, canaries: &[&str]) -> Result<Vec<Leak>, EvidenceError> {
    let spelled: Vec<Vec<u8>> = canaries.iter().flat_map(|canary| spellings(canary)).collect();
    let wanted: Vec<Finder<'_>> = spelled.iter().map(Finder::new).collect();
    let mut files = dir.files()?;
    if dir.manifest().is_file() {
        files.push("manifest.json".to_owned());
    }
    let mut leaks = Vec::new();
    for file in files {
        let path = dir.path().join(&file);
        let bytes = std::fs::read(&path).map_err(EvidenceError::io(path))?;
        scan_bytes(&file, &bytes, &wanted, &mut leaks);
    }
    Ok(leaks)
}

/// Whatever looks like a secret in one text. `name` stands for it in what is found.
#[must_use]
pub fn scan_text(name: &str, text: &[u8]) -> Vec<Leak> {
    let mut leaks = Vec::new();
    scan_bytes(name, text, &[], &mut leaks);
    leaks
}

fn scan_bytes(file: &str, bytes: &[u8], wanted: &[Finder<'_>], leaks: &mut Vec<Leak>) {
    if is_bbolt(bytes) {
        leaks.push(Leak { file: file.to_owned(), line: 0, what: "etcd database" });
    }
    for (index, line) in bytes.split(|b| *b == b'\n').enumerate() {
        let mut leak = |what| leaks.push(Leak { file: file.to_owned(), line: index as u64 + 1, what });
        if wanted.iter().any(|canary| canary.find(line).is_some()) {
            leak("known secret");
        }
        for (_, pattern) in patterns::find(&String::from_utf8_lossy(line)) {
            leak(pattern.words());
        }
    }
}

/// A snapshot of etcd is a bbolt file; its first page has this magic number at offset 16.
fn is_bbolt(bytes: &[u8]) -> bool {
    bytes.get(16..20) == Some(&0xED0C_DAED_u32.to_le_bytes())
}

/// A canary as it is, and the parts of its base64 form that don't depend on what surrounds it.
/// A canary of several lines is looked for by its longest line.
fn spellings(canary: &str) -> Vec<Vec<u8>> {
    let longest = canary.lines().max_by_key(|line| line.len()).unwrap_or_default();
    if longest.is_empty() {
        return Vec::new();
    }
    let mut all = vec![longest.as_bytes().to_vec()];
    for shift in 0..3 {
        let padded = [&b"\0\0"[..shift], canary.as_bytes()].concat();
        let whole = base64(&padded[..padded.len() / 3 * 3]);
        let inner = whole.get(if shift == 0 { 0 } else { 4 }..).unwrap_or_default();
        if inner.len() >= 8 {
            all.push(inner.to_vec());
        }
    }
    all
}

/// base64 of whole groups of three bytes.
fn base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |n: u32| DIGITS[(n & 63) as usize];
    let groups = bytes.chunks_exact(3).map(|b| u32::from_be_bytes([0, b[0], b[1], b[2]]));
    groups.flat_map(|n| [digit(n >> 18), digit(n >> 12), digit(n >> 6), digit(n)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaks(text: &str, canaries: &[&str]) -> Vec<&'static str> {
        let spelled: Vec<_> = canaries.iter().flat_map(|c| spellings(c)).collect();
        let wanted: Vec<_> = spelled.iter().map(Finder::new).collect();
        let mut found = Vec::new();
        scan_bytes("f", text.as_bytes(), &wanted, &mut found);
        found.into_iter().map(|leak| leak.what).collect()
    }

    #[test]
    fn a_planted_canary_is_found_plain_and_in_base64_at_any_offset() {
        let canary = "s3cr3t-canary-0451";
        assert_eq!(leaks("x s3cr3t-canary-0451 y", &[canary]), ["known secret"]);
        for prefix in ["", "a", "ab", "abc"] {
            let mut bytes = [prefix.as_bytes(), canary.as_bytes()].concat();
            bytes.resize(bytes.len().next_multiple_of(3), b'!');
            let encoded = String::from_utf8(base64(&bytes)).unwrap();
            assert_eq!(leaks(&encoded, &[canary]), ["known secret"], "after {prefix:?}");
        }
        assert!(leaks("nothing here", &[canary]).is_empty());
    }

    #[test]
    fn every_line_of_a_key_is_learned_and_none_of_its_frame() {
        let known = KnownSecrets::default();
        let key = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\nsecretsecretsecret+/\nend=\n-----END PRIVATE KEY-----\n";
        known.clone().learn(key);
        known.learn(key);
        assert_eq!(known.texts(), ["MIGHAgEAMBMGByqGSM49", "secretsecretsecret+/"]);
        assert_eq!(format!("{known:?}"), "KnownSecrets(2)");
        let aes = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U=";
        known.learn(&format!(
            r#"{{"kind":"EncryptionConfiguration","keys":[{{"name":"key1","secret":"{aes}"}}]}}"#
        ));
        assert_eq!(known.texts()[2..], [aes]);
        let texts = known.texts();
        let canaries: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(leaks("key secretsecretsecret+/ in a log", &canaries), ["known secret"]);
    }

    #[test]
    fn what_looks_like_a_secret_is_found_without_being_known() {
        let pem = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----";
        assert_eq!(leaks(pem, &[]), ["private key"]);
        assert_eq!(
            leaks("client-key-data: LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0tCk1I", &[]),
            ["secret value"]
        );
        assert_eq!(
            leaks("data LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0tCk1I", &[]),
            ["private key in base64"]
        );
        assert_eq!(leaks("got eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln", &[]), ["JSON Web Token"]);
        assert_eq!(leaks("Authorization: Bearer abcdef0123456789", &[]), ["bearer token"]);
        assert_eq!(leaks(r#"{"token":"abcdef0123456789"}"#, &[]), ["secret value"]);
        assert_eq!(leaks("join --token=abcdef.0123456789abcdef", &[]), ["secret value"]);
        let mut bolt = vec![0u8; 64];
        bolt[16..20].copy_from_slice(&0xED0C_DAED_u32.to_le_bytes());
        assert_eq!(leaks(&String::from_utf8_lossy(b""), &[]), Vec::<&str>::new());
        let mut found = Vec::new();
        scan_bytes("snap.db", &bolt, &[], &mut found);
        assert_eq!(found[0].what, "etcd database");
    }

    #[test]
    fn certificates_and_ordinary_words_are_not_secrets() {
        let innocent = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n\
            --service-account-key-file=/pki/sa.pub token: none revision tokens=12 \
            certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1J \
            the bearer of bad news";
        assert!(leaks(innocent, &[]).is_empty(), "{:?}", leaks(innocent, &[]));
    }
}
