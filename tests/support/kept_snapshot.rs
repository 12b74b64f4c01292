//! Snapshots that real etcds made, kept in the repository.

use flate2::read::GzDecoder;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The bytes of `tests/data/snapshot/<name>.gz`.
pub fn unpacked(name: &str) -> Vec<u8> {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/snapshot").join(format!("{name}.gz"));
    let mut bytes = Vec::new();
    let packed = File::open(packed).expect("the file is in the repository");
    GzDecoder::new(packed).read_to_end(&mut bytes).expect("it is a gzip file");
    bytes
}
