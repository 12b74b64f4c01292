//! The evidence bundle: manifest, digests, verification.
