//! Reads snapshot files: a reader of its own for the bbolt database that etcd keeps, and for what
//! etcd keeps in it. Read-only, from bytes in memory, whoever made them.
//!
//! Whatever the bytes are, it ends with an answer or with a [`SnapshotError`] that names page and
//! offset. A walk sees each page once and elements can't overlap, so the work is bounded by the
//! file's size; of keys only where they are is kept, so memory is bounded by a fraction of it.
//!
//! Formats: bbolt's `internal/common` and etcd's `server/storage/{schema,mvcc}`, etcd 3.4 to 3.7.

mod bucket;
mod contents;
mod diff;
pub mod error;
pub mod facts;
mod inspect;
mod keys;
mod keyset;
mod keyspace;
pub mod kubernetes;
pub mod map;
mod meta;
pub mod name;
mod page;
mod proto;
#[cfg(test)]
mod sample;
mod structure;
#[cfg(test)]
mod tests;
mod text;
mod trailer;
mod tree;
mod verify;
mod view;

pub use diff::{Change, Difference, DifferentKey, Which, diff};
pub use error::{Damage, SnapshotError};
pub use inspect::{Inspection, Kind, NEWEST_KNOWN, inspect, inspect_here, is_newer};
pub use keys::{KeyRow, Listing, ListingError, Selection, keys};
pub use meta::MAX_BYTES;
pub use text::Bytes;
pub use verify::{Check, Raw, Verification, verify};
pub use view::KubernetesView;
