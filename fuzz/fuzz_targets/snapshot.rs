//! Any bytes as a snapshot file: an answer, or an error within the file; never a panic, never long.
//!
//! A mutated meta page nearly always has a wrong checksum, behind which nothing would be reached:
//! then the checksums are put right and the file is read again.
#![no_main]

#[allow(dead_code, unused_imports, reason = "the module is the command's, of which not everything is called here")]
#[path = "../../src/etcd/snapshot/mod.rs"]
mod snapshot;

use libfuzzer_sys::fuzz_target;
use snapshot::{Damage, ListingError, Selection, SnapshotError, diff, inspect_here, keys};

const PAGE_SIZES: [usize; 2] = [512, 4096];

fuzz_target!(|bytes: &[u8]| {
    if let Some(SnapshotError { damage: Damage::Metas(..) | Damage::Foreign, .. }) = read(bytes) {
        read(&with_checksums(bytes));
    }
});

fn read(bytes: &[u8]) -> Option<SnapshotError> {
    let inspected = inspect_here(bytes);
    let selection = Selection { prefix: b"/registry/".to_vec(), revision: Some(7), limit: Some(3) };
    let listed = keys(bytes, &selection);
    let compared = diff(bytes, bytes, 3);
    match inspected {
        Ok(inspection) => {
            assert!(serde_json::to_string(&inspection).is_ok());
            assert!(inspection.live_keys <= inspection.changes && inspection.tombstones <= inspection.changes);
            assert!(!matches!(listed, Err(ListingError::Damaged(_))), "inspection saw no damage: {listed:?}");
            assert_eq!(compared.map(|found| found.same), Ok(inspection.live_keys));
            None
        }
        Err(error) => {
            assert!(error.to_string().contains("page "));
            assert!(error.offset <= bytes.len() as u64 || matches!(error.damage, Damage::Structure(_)));
            Some(error)
        }
    }
}

fn with_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for page in PAGE_SIZES.into_iter().chain([0]) {
        let Some(meta) = bytes.get_mut(page + 16..page + 80) else { continue };
        let (covered, checksum) = meta.split_at_mut(56);
        if covered[..4] != 0xED0C_DAED_u32.to_le_bytes() {
            continue;
        }
        let hash = covered.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        checksum.copy_from_slice(&hash.to_le_bytes());
    }
    bytes
}
