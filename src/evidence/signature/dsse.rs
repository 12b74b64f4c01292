//! Dead Simple Signing Envelope, version 1: <https://github.com/secure-systems-lab/dsse>.

use super::key::{SigningKey, VerifyingKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Payload type of an in-toto statement.
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// A signed payload. A bundle's envelope has exactly one signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Envelope {
    payload_type: String,
    payload: String,
    signatures: Vec<Signature>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signature {
    keyid: String,
    sig: String,
}

/// Why an envelope is not to be relied on.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// It is no envelope, or not in the one form that a bundle has it in.
    #[error("not a DSSE envelope as this tool writes it: {0}")]
    Malformed(String),
    /// It carries something else than a statement.
    #[error("its payload is of type {0:?}, not an in-toto statement")]
    PayloadType(String),
    /// Another key signed it, as it says itself.
    #[error("signed by key {found}, not by the given key {wanted}")]
    OtherKey {
        /// As the envelope says.
        found: String,
        /// The key that was asked for.
        wanted: String,
    },
    /// The signature is not one of the given key over this payload.
    #[error("the signature is not one of key {0} over this payload")]
    BadSignature(String),
}

impl Envelope {
    /// Signs a statement.
    #[must_use]
    pub fn sign(payload: &[u8], key: &SigningKey) -> Self {
        let sig = key.sign(&pre_authentication(IN_TOTO, payload));
        Self {
            payload_type: IN_TOTO.to_owned(),
            payload: STANDARD.encode(payload),
            signatures: vec![Signature {
                keyid: key.verifying().id().to_string(),
                sig: STANDARD.encode(sig),
            }],
        }
    }

    /// The bytes of the file.
    ///
    /// # Panics
    /// Never: an envelope is JSON.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("an envelope is JSON");
        bytes.push(b'\n');
        bytes
    }

    /// Reads an envelope. Only the one form that [`to_bytes`](Self::to_bytes) writes is taken, so that
    /// nothing can be added to the file that the signature does not cover.
    ///
    /// # Errors
    /// [`EnvelopeError::Malformed`], [`EnvelopeError::PayloadType`].
    pub fn read(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        let malformed = |what: &str| EnvelopeError::Malformed(what.to_owned());
        let envelope: Self =
            serde_json::from_slice(bytes).map_err(|e| EnvelopeError::Malformed(e.to_string()))?;
        if envelope.payload_type != IN_TOTO {
            return Err(EnvelopeError::PayloadType(envelope.payload_type));
        }
        if envelope.signatures.len() != 1 {
            return Err(EnvelopeError::Malformed(format!(
                "it has {} signatures instead of one",
                envelope.signatures.len()
            )));
        }
        if envelope.to_bytes() != bytes {
            return Err(malformed("it was written in another form"));
        }
        if envelope.payload().is_none() || envelope.signature().is_none() {
            return Err(malformed("payload and signature must be base64"));
        }
        Ok(envelope)
    }

    /// The statement's bytes; what they say is unproven until a key has checked them.
    pub(in crate::evidence) fn payload(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.payload).ok()
    }

    fn signature(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.signatures.first()?.sig).ok()
    }

    /// Which key signed it, as it says itself.
    #[must_use]
    pub fn key_id(&self) -> &str {
        self.signatures.first().map_or("", |s| &s.keyid)
    }

    /// Whether `key` signed it.
    ///
    /// # Errors
    /// [`EnvelopeError::OtherKey`], [`EnvelopeError::BadSignature`].
    pub fn check(&self, key: &VerifyingKey) -> Result<(), EnvelopeError> {
        let wanted = key.id().to_string();
        if self.key_id() != wanted {
            return Err(EnvelopeError::OtherKey { found: self.key_id().to_owned(), wanted });
        }
        let signed = self.payload().zip(self.signature()).is_some_and(|(payload, signature)| {
            key.verifies(&pre_authentication(&self.payload_type, &payload), &signature)
        });
        if signed { Ok(()) } else { Err(EnvelopeError::BadSignature(wanted)) }
    }
}

/// What is signed, so that a payload of one type can't pass for one of another: the PAE of the
/// protocol's version 1.
fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pre_authentication_encoding_is_that_of_the_specification() {
        assert_eq!(
            pre_authentication("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
        assert_eq!(pre_authentication("", b""), b"DSSEv1 0  0 ");
    }

    #[test]
    fn an_envelope_is_signed_by_its_key_alone() {
        let (key, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
        let envelope = Envelope::read(&Envelope::sign(b"{}", &key).to_bytes()).unwrap();
        assert_eq!(envelope.check(&key.verifying()), Ok(()));
        assert!(matches!(envelope.check(&other.verifying()), Err(EnvelopeError::OtherKey { .. })));
        let mut claimed = envelope.clone();
        claimed.signatures[0].keyid = other.verifying().id().to_string();
        assert!(matches!(claimed.check(&other.verifying()), Err(EnvelopeError::BadSignature(_))));
        assert!(matches!(claimed.check(&key.verifying()), Err(EnvelopeError::OtherKey { .. })));
    }

    #[test]
    fn only_the_written_form_is_read() {
        let envelope = Envelope::sign(b"{}", &SigningKey::generate().unwrap());
        let text = String::from_utf8(envelope.to_bytes()).unwrap();
        let two = {
            let mut two = envelope.clone();
            two.signatures.push(two.signatures[0].clone());
            two.to_bytes()
        };
        let mut of_type = envelope.clone();
        of_type.payload_type = "text/plain".to_owned();
        assert!(matches!(Envelope::read(&of_type.to_bytes()), Err(EnvelopeError::PayloadType(_))));
        for bytes in [
            text.replacen("  ", "\t", 1).into_bytes(),
            text.replacen('{', "{\"more\": 1,", 1).into_bytes(),
            text.replacen("\"e30=\"", "\"e31=\"", 1).into_bytes(),
            text.trim_end().as_bytes().to_vec(),
            two,
            b"[]".to_vec(),
        ] {
            let read = Envelope::read(&bytes);
            assert!(matches!(read, Err(EnvelopeError::Malformed(_))), "{}", String::from_utf8_lossy(&bytes));
        }
    }
}
