//! Where things are in a run directory.

use super::EvidenceError;
use crate::regular_file;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The envelope that vouches for a bundle.
pub const ATTESTATION: &str = "attestation.dsse.json";

/// What people make of the run, attached after it was sealed.
pub const FINDINGS: &str = "findings.yaml";

/// Files of a run directory that its manifest does not list.
const OUTSIDE: [&str; 3] = ["manifest.json", ATTESTATION, FINDINGS];

/// Whether a manifest leaves out the file at this relative path, or what a crash leaves of it
/// (`.<name>.new`) while it is being written.
fn is_outside(path: &str) -> bool {
    let name = path.strip_prefix('.').and_then(|rest| rest.strip_suffix(".new")).unwrap_or(path);
    OUTSIDE.contains(&name)
}

/// A run directory; design: one run, one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir(PathBuf);

impl RunDir {
    /// Makes an empty run directory.
    ///
    /// # Errors
    /// When `path` exists and holds anything, or can't be made.
    pub fn create(path: &Path) -> Result<Self, EvidenceError> {
        fs::create_dir_all(path).map_err(EvidenceError::io(path))?;
        if fs::read_dir(path).map_err(EvidenceError::io(path))?.next().is_some() {
            return Err(EvidenceError::Malformed {
                path: path.to_owned(),
                what: "the directory is not empty\n  hint: one directory holds one run; choose another with `--out`"
                    .to_owned(),
            });
        }
        let dir = Self(path.to_owned());
        for below in [dir.agent(), dir.histories(), dir.logs()] {
            fs::create_dir(&below).map_err(EvidenceError::io(below))?;
        }
        Ok(dir)
    }

    /// An existing run directory.
    ///
    /// # Errors
    /// [`EvidenceError::NotARun`] when it has neither manifest nor journal, [`EvidenceError::Foreign`] when
    /// neither is of this tool.
    pub fn open(path: &Path) -> Result<Self, EvidenceError> {
        let dir = Self(path.to_owned());
        if !dir.journal().is_file() && !dir.manifest().is_file() {
            return Err(EvidenceError::NotARun { path: path.to_owned() });
        }
        if dir.is_foreign() {
            return Err(EvidenceError::Foreign { path: path.to_owned() });
        }
        Ok(dir)
    }

    /// Neither manifest nor journal looks like one of this tool, damaged or not.
    fn is_foreign(&self) -> bool {
        const ENOUGH: u64 = 64 << 10;
        const ENTRY: &str = "{\"prev\":\"";
        // What can't be read can't be told to be another tool's.
        let looks_like = |path: PathBuf, own: &dyn Fn(&str) -> bool| {
            let mut start = Vec::new();
            let read = regular_file::open(&path).and_then(|file| file.take(ENOUGH).read_to_end(&mut start));
            read.is_err() && path.exists() || read.is_ok() && own(&String::from_utf8_lossy(&start))
        };
        let manifest =
            |start: &str| ["\"formatVersion\"", "\"journal\""].iter().all(|word| start.contains(word));
        // The first entry may be torn, or not be written yet.
        let journal = |start: &str| {
            let torn = !start.contains('\n') && (start.starts_with(ENTRY) || ENTRY.starts_with(start));
            torn || start.contains("\"runOpened\"")
        };
        !looks_like(self.manifest(), &manifest) && !looks_like(self.journal(), &journal)
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Digests of everything else; written last.
    #[must_use]
    pub fn manifest(&self) -> PathBuf {
        self.0.join("manifest.json")
    }

    /// Who vouches for the bundle; absent when it is not signed.
    #[must_use]
    pub fn attestation(&self) -> PathBuf {
        self.0.join(ATTESTATION)
    }

    /// What people make of the run; absent unless somebody attached it. No evidence.
    #[must_use]
    pub fn findings(&self) -> PathBuf {
        self.0.join(FINDINGS)
    }

    /// The drill as written.
    #[must_use]
    pub fn drill(&self) -> PathBuf {
        self.0.join("drill.yaml")
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> PathBuf {
        self.0.join("plan.json")
    }

    /// The binding; absent when the run ended before it.
    #[must_use]
    pub fn binding(&self) -> PathBuf {
        self.0.join("binding.json")
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.0.join("journal.jsonl")
    }

    /// Logs of dead-man agents, each with its own chain.
    #[must_use]
    pub fn agent(&self) -> PathBuf {
        self.0.join("agent")
    }

    /// One history per client.
    #[must_use]
    pub fn histories(&self) -> PathBuf {
        self.0.join("histories")
    }

    /// The components' logs, redacted.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// Findings for programs.
    #[must_use]
    pub fn report_json(&self) -> PathBuf {
        self.0.join("report.json")
    }

    /// Findings for people.
    #[must_use]
    pub fn report_html(&self) -> PathBuf {
        self.0.join("report.html")
    }

    /// Findings for CI systems.
    #[must_use]
    pub fn junit(&self) -> PathBuf {
        self.0.join("junit.xml")
    }

    /// Every regular file below the directory that the manifest is to list, as sorted relative paths with
    /// `/`: all but the manifest itself, the attestation over it, and findings, which are attached later.
    ///
    /// # Errors
    /// When a directory can't be read, or something is neither a file nor a directory: a
    /// symbolic link in a bundle could make its verification read anything.
    pub fn files(&self) -> Result<Vec<String>, EvidenceError> {
        let mut files = Vec::new();
        self.walk(Path::new(""), &mut files)?;
        files.retain(|f| !is_outside(f));
        files.sort();
        Ok(files)
    }

    fn walk(&self, below: &Path, files: &mut Vec<String>) -> Result<(), EvidenceError> {
        let dir = self.0.join(below);
        for entry in fs::read_dir(&dir).map_err(EvidenceError::io(&dir))? {
            let entry = entry.map_err(EvidenceError::io(&dir))?;
            let relative = below.join(entry.file_name());
            let malformed =
                |what: &str| EvidenceError::Malformed { path: entry.path(), what: what.to_owned() };
            let kind = entry.file_type().map_err(EvidenceError::io(entry.path()))?;
            if kind.is_dir() {
                self.walk(&relative, files)?;
            } else if kind.is_file() {
                files.push(relative.to_str().ok_or_else(|| malformed("its name is not UTF-8"))?.to_owned());
            } else {
                return Err(malformed("it is neither a file nor a directory"));
            }
        }
        Ok(())
    }
}
