//! Memory, disk, Go, protoc and cached toolchains.

use super::Check;
use crate::plan::Versions;
use crate::provider::binaries::{
    self, Product, ProvideOptions, Release, Scrutiny, at_least, installed_go, newest_pair, pinned_pairs,
    required_go,
};
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;
/// Three etcd members, two API servers, controller manager and scheduler take about 880 MB.
const MEMORY_GOOD: u64 = 1536 * MIB;
/// One of each takes about 500 MB.
const MEMORY_LEAST: u64 = 640 * MIB;
/// etcd data, a snapshot of it, the data put aside, logs.
const STATE_GOOD: u64 = 2048 * MIB;
const STATE_LEAST: u64 = 300 * MIB;
/// Go's build cache for one Kubernetes version, and the binaries.
const BUILD_SPACE: u64 = 6144 * MIB;

/// Memory that a cluster could take.
pub(super) fn memory() -> Check {
    let name = "memory";
    let Some(available) = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text))
    else {
        return Check::warn(name, "unknown", "a cluster takes 500 to 900 MB");
    };
    let found = format!("{} MiB available", available / MIB);
    match available {
        n if n >= MEMORY_GOOD => Check::ok(name, found),
        n if n >= MEMORY_LEAST => {
            Check::warn(name, found, "enough for one etcd and one API server, not for more")
        }
        _ => Check::fail(
            name,
            found,
            format!("free some: the smallest cluster takes {} MiB", MEMORY_LEAST / MIB),
        ),
    }
}

/// Bytes of `MemAvailable` in /proc/meminfo.
fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Whether the state directory, which may not exist yet, can be written to and has room.
pub(super) fn state_dir(dir: &Path) -> Vec<Check> {
    let there = nearest(dir);
    let writable = match access(&there, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) => Check::ok("state directory", dir.display().to_string()),
        Err(error) => Check::fail(
            "state directory",
            format!("{} can't be written to: {error}", there.display()),
            "set QUAKEPROOF_STATE to a directory that can",
        ),
    };
    let name = "disk for clusters";
    let space = match free(&there) {
        None => Check::warn(name, "unknown", "a drill needs about 1 GB"),
        Some(n) => {
            let found = format!("{} MiB free at {}", n / MIB, there.display());
            let hint = "free some, or set QUAKEPROOF_STATE to a directory on a larger disk";
            match n {
                n if n >= STATE_GOOD => Check::ok(name, found),
                n if n >= STATE_LEAST => Check::warn(name, found, hint),
                _ => Check::fail(name, found, hint),
            }
        }
    };
    vec![writable, space]
}

/// Whether binaries could be built here.
pub(super) fn cache_space(options: &ProvideOptions) -> Check {
    let name = "disk for builds";
    let there = nearest(&options.cache_dir);
    match free(&there) {
        Some(n) if n >= BUILD_SPACE => {
            Check::ok(name, format!("{} MiB free at {}", n / MIB, there.display()))
        }
        found => Check::warn(
            name,
            found.map_or("unknown".to_owned(), |n| format!("{} MiB free at {}", n / MIB, there.display())),
            format!(
                "building a Kubernetes version takes {} MiB; cached binaries work with less",
                BUILD_SPACE / MIB
            ),
        ),
    }
}

/// Which pinned pairs are here.
pub(super) fn toolchains(options: &ProvideOptions) -> Vec<Check> {
    let check = |(kubernetes, etcd): &(&str, &str)| {
        let name = "toolchain";
        let versions = Versions { kubernetes: (*kubernetes).to_owned(), etcd: (*etcd).to_owned() };
        let what = format!("kubernetes {} with etcd {}", versions.kubernetes, versions.etcd);
        let provide = format!("`quakeproof toolchain provide {kubernetes}` provides it; `run` does so too");
        let locate = |product, version: &str| {
            binaries::locate(&Release::new(product, version), options, Scrutiny::Quick)
        };
        let found = locate(Product::Kubernetes, kubernetes)
            .and_then(|k| Ok(k.is_some() && locate(Product::Etcd, etcd)?.is_some()));
        match found {
            Ok(true) => Check::ok(name, format!("{what}: here")),
            Ok(false) => Check::warn(name, format!("{what}: not here yet"), provide),
            Err(error) => Check::warn(name, format!("{what}: {error}"), provide),
        }
    };
    pinned_pairs().iter().map(check).collect()
}

/// Whether Go can build the newest pair.
pub(super) fn go(options: &ProvideOptions) -> Check {
    let name = "go";
    let needed = required_go(&Release::new(Product::Kubernetes, newest_pair().0)).unwrap_or("0");
    let hint =
        format!("only building binaries needs it: install Go {needed} or newer, or allow the download");
    match installed_go(options) {
        Ok(version) if at_least(&version, needed) => Check::ok(name, version),
        Ok(version) => Check::warn(name, format!("{version} is too old"), hint),
        Err(why) => Check::warn(name, why, hint),
    }
}

/// Whether quakeproof itself could be built.
pub(super) fn protoc() -> Check {
    let command = std::env::var_os("PROTOC").unwrap_or_else(|| "protoc".into());
    protoc_as(&command, std::env::var_os("PROTOC_INCLUDE").as_deref())
}

/// Some distributions package the well-known types apart from the compiler, which is of no use without them.
fn protoc_as(command: &OsStr, include: Option<&OsStr>) -> Check {
    let said = |arguments: &[&OsStr]| {
        let output = Command::new(command).args(arguments).stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let include = include.map(|include| {
        let mut argument = OsString::from("--proto_path=");
        argument.push(include);
        argument
    });
    let well_known = ["--descriptor_set_out=/dev/null", "google/protobuf/descriptor.proto"].map(OsStr::new);
    let well_known: Vec<&OsStr> = include.iter().map(OsString::as_os_str).chain(well_known).collect();
    let missing = match said(&[OsStr::new("--version")]) {
        Some(version) if said(&well_known).is_some() => return Check::ok("protoc", version),
        Some(version) => format!("{version} without google/protobuf/descriptor.proto"),
        None => "not found".to_owned(),
    };
    let hint = "only building quakeproof from source needs it: install protobuf-compiler and, where it is packaged \
                apart, libprotobuf-dev or protobuf-devel";
    Check::warn("protoc", missing, hint)
}

/// The directory itself, or the nearest one above it that exists.
fn nearest(dir: &Path) -> PathBuf {
    dir.ancestors().find(|d| d.is_dir()).unwrap_or(Path::new(".")).to_owned()
}

/// Bytes that an unprivileged process may still write.
fn free(dir: &Path) -> Option<u64> {
    // The field types differ between platforms; all fit into 64 bits.
    #[allow(clippy::unnecessary_cast)]
    statvfs(dir).ok().map(|s| s.blocks_available() as u64 * s.fragment_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::Status;

    #[test]
    fn available_memory_is_read_in_bytes() {
        assert_eq!(mem_available("MemTotal:  24 kB\nMemAvailable:    2048 kB\n"), Some(2 * MIB));
        assert_eq!(mem_available("MemTotal: 24 kB\n"), None);
    }

    #[test]
    fn a_protoc_without_the_well_known_types_builds_nothing() {
        let found = |command: &str| {
            let check = protoc_as(OsStr::new(command), Some(OsStr::new("/")));
            (check.status, check.found)
        };
        assert_eq!(found("no-such-protoc"), (Status::Warn, "not found".to_owned()));
        // It tells its version and knows none of the other options.
        let (status, told) = found("git");
        assert_eq!(status, Status::Warn);
        assert!(
            told.starts_with("git version") && told.ends_with("without google/protobuf/descriptor.proto")
        );
        assert_eq!(found("true").0, Status::Ok);
    }

    #[test]
    fn a_state_directory_that_does_not_exist_yet_is_judged_by_what_is_above_it() {
        let root = tempfile::tempdir().expect("a directory");
        let checks = state_dir(&root.path().join("not/yet"));
        assert_eq!(checks[0].status, Status::Ok);
        let checks = state_dir(Path::new("/proc/nothing/here"));
        assert_ne!(checks[1].status, Status::Ok, "procfs has no free space");
    }

    #[test]
    fn missing_toolchains_warn_with_the_command_that_provides_them() {
        let root = tempfile::tempdir().expect("a directory");
        let checks = toolchains(&ProvideOptions::new(root.path().to_owned()));
        assert_eq!(checks.len(), pinned_pairs().len());
        for check in checks {
            assert_eq!(check.status, Status::Warn);
            assert!(check.hint.expect("a hint").contains("toolchain provide"));
        }
    }
}
