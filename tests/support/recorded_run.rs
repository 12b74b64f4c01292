//! Runs that were recorded on a real cluster: plan, journal and histories, as they were.

use quakeproof::evidence::load::load;
use quakeproof::timeline::EvidenceInput;
use std::path::Path;

/// `tests/data/<area>/<name>.tar.gz`.
pub fn recorded_run(area: &str, name: &str) -> EvidenceInput {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{area}/{name}.tar.gz"));
    let dir = tempfile::tempdir().unwrap();
    let unzipped = flate2::read::GzDecoder::new(std::fs::File::open(file).unwrap());
    tar::Archive::new(unzipped).unpack(dir.path()).unwrap();
    load(dir.path()).unwrap()
}
