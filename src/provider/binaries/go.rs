//! Building the binaries with Go from the modules that are carried along.

use super::cache::Source;
use super::error::BinariesError;
use super::pins::{Product, Release};
use super::{ProvideOptions, io};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// A sign of life is given this often during a build.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Lines of a failed build that are shown.
const LAST_LINES: usize = 20;

/// Why nothing was built.
pub(super) enum Unbuildable {
    /// Go is missing, too old, or has no module for this version.
    Unavailable(String),
    /// It was tried and went wrong.
    Failed(BinariesError),
}

impl From<BinariesError> for Unbuildable {
    fn from(error: BinariesError) -> Self {
        Unbuildable::Failed(error)
    }
}

/// Everything that decides what a build gives, but for the Go version.
pub(super) struct Recipe {
    /// Binary and the package that it is built from.
    targets: Vec<(&'static str, String)>,
    flags: Vec<String>,
    /// SHA-256 over module files, packages, flags and platform.
    pub digest: String,
}

/// How `release` is built here; `None` when no module pins it.
pub(super) fn recipe(release: &Release) -> Option<Recipe> {
    let module = release.module()?;
    let targets: Vec<_> =
        release.product.binaries().iter().map(|b| (*b, package(release.product, b))).collect();
    let flags = ["-mod=readonly", "-trimpath", "-ldflags"].map(str::to_owned).into_iter();
    let flags: Vec<String> = flags.chain([linker_flags(release)]).collect();
    let mut hash = Sha256::new();
    for (name, text) in &module.files {
        hash.update(format!("{name} {}\n{text}", text.len()));
    }
    hash.update(format!("{targets:?} {flags:?} {:?}", platform()));
    Some(Recipe { targets, flags, digest: hex::encode(hash.finalize()) })
}

fn package(product: Product, binary: &str) -> String {
    match (product, binary) {
        (Product::Kubernetes, _) => format!("k8s.io/kubernetes/cmd/{binary}"),
        (Product::Etcd, "etcd") => "go.etcd.io/etcd/server/v3".to_owned(),
        (Product::Etcd, _) => format!("go.etcd.io/etcd/{binary}/v3"),
    }
}

/// Kubernetes reports the version that its linker was told; etcd has its own in the source.
fn linker_flags(release: &Release) -> String {
    let mut flags = "-s -w".to_owned();
    if release.product == Product::Kubernetes {
        let version = &release.version;
        let mut parts = version.trim_start_matches('v').split('.');
        let (major, minor) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
            flags.push_str(&format!(
                " -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor} -X {package}.gitTreeState=clean"
            ));
        }
    }
    flags
}

/// GOOS and GOARCH of this machine.
pub(super) fn platform() -> (&'static str, &'static str) {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    };
    (std::env::consts::OS, arch)
}

/// Least Go version that builds `release`, as `1.26.0`.
#[must_use]
pub fn required_go(release: &Release) -> Option<&'static str> {
    let (_, go_mod) = release.module()?.files[0];
    go_mod.lines().find_map(|line| line.strip_prefix("go ")).map(str::trim)
}

/// Builds every binary of `release` into `stage`.
pub(super) fn build(
    release: &Release,
    options: &ProvideOptions,
    stage: &Path,
    progress: &dyn Fn(&str),
) -> Result<Source, Unbuildable> {
    let (Some(recipe), Some(module)) = (recipe(release), release.module()) else {
        return Err(Unbuildable::Unavailable(format!("no module for {release} is carried along")));
    };
    let go_version = usable_go(release, options)?;
    let work = stage.join(".module");
    fs::create_dir_all(&work).map_err(io("create", &work))?;
    for (name, text) in &module.files {
        let path = work.join(name);
        fs::write(&path, text).map_err(io("write", &path))?;
    }
    let count = recipe.targets.len();
    progress(&format!("{release}: building with {go_version}; this takes minutes, once"));
    for (index, (binary, package)) in recipe.targets.iter().enumerate() {
        let what = format!("{binary} {} ({} of {count})", release.version, index + 1);
        progress(&format!("building {what}"));
        let child = Command::new(&options.go)
            .arg("build")
            .args(&recipe.flags)
            .arg("-o")
            .arg(stage.join(binary))
            .arg(package)
            .current_dir(&work)
            .envs(environment())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(io("run", Path::new(&options.go)))?;
        watch(child, &what, progress)?;
    }
    fs::remove_dir_all(&work).map_err(io("remove", &work))?;
    Ok(Source::Built { recipe: recipe.digest, go_version })
}

/// No toolchain download behind our back, no workspace around the cache, this machine's platform.
fn environment() -> [(&'static str, &'static str); 5] {
    let (os, arch) = platform();
    [("CGO_ENABLED", "0"), ("GOTOOLCHAIN", "local"), ("GOWORK", "off"), ("GOOS", os), ("GOARCH", arch)]
}

fn usable_go(release: &Release, options: &ProvideOptions) -> Result<String, Unbuildable> {
    let name = options.go.to_string_lossy();
    let found = installed_go(options).map_err(Unbuildable::Unavailable)?;
    match required_go(release) {
        Some(needed) if !at_least(&found, needed) => Err(Unbuildable::Unavailable(format!(
            "`{name}` is {found}, but building {release} needs go{needed} or newer"
        ))),
        _ => Ok(found),
    }
}

/// Version of the Go command, as `go1.26.8`; or why there is none.
pub(crate) fn installed_go(options: &ProvideOptions) -> Result<String, String> {
    let name = options.go.to_string_lossy();
    let output = Command::new(&options.go)
        .args(["env", "GOVERSION"])
        .env("GOTOOLCHAIN", "local")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{name}` does not run: {error}"))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && version.starts_with("go") {
        Ok(version)
    } else {
        Err(format!("`{name} env GOVERSION` gave no version ({})", output.status))
    }
}

/// Whether `found` (`go1.26.8`, `go1.27rc1`) is at least `needed` (`1.26.0`).
/// What can't be read as a version, such as a development build, is taken as new enough.
pub(crate) fn at_least(found: &str, needed: &str) -> bool {
    let numbers = |text: &str| -> Vec<u32> {
        let text = text.trim_start_matches("go");
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        text[..end].split('.').filter_map(|part| part.parse().ok()).collect()
    };
    let (mut found, mut needed) = (numbers(found), numbers(needed));
    if found.is_empty() {
        return true;
    }
    found.resize(3, 0);
    needed.resize(3, 0);
    found >= needed
}

/// Awaits a build, with a sign of life now and then.
fn watch(mut child: Child, what: &str, progress: &dyn Fn(&str)) -> Result<(), BinariesError> {
    let mut last = VecDeque::with_capacity(LAST_LINES);
    if let Some(stderr) = child.stderr.take() {
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let mut silent = 0;
        loop {
            match lines.recv_timeout(HEARTBEAT) {
                Ok(line) => {
                    if last.len() == LAST_LINES {
                        last.pop_front();
                    }
                    last.push_back(line);
                }
                Err(RecvTimeoutError::Timeout) => {
                    silent += HEARTBEAT.as_secs();
                    progress(&format!("still building {what}, {silent} s"));
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }
    let status = child
        .wait()
        .map_err(|source| BinariesError::Io { what: format!("cannot await the build of {what}"), source })?;
    if status.success() {
        return Ok(());
    }
    let output: Vec<String> = last.into_iter().map(|line| format!("    {line}")).collect();
    Err(BinariesError::Build { what: what.to_owned(), output: output.join("\n") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_compare_by_number_and_development_builds_pass() {
        assert!(at_least("go1.26.8", "1.26.0"));
        assert!(at_least("go1.26", "1.26.0"));
        assert!(at_least("go1.100.0", "1.26.0"));
        assert!(at_least("go1.27rc1", "1.26.0"));
        assert!(at_least("devel +abc", "1.26.0"));
        assert!(!at_least("go1.9.9", "1.26.0"));
        assert!(!at_least("go1.25.9", "1.26.0"));
    }

    #[test]
    fn a_recipe_differs_between_versions_and_tells_kubernetes_its_own() {
        let old = recipe(&Release::new(Product::Kubernetes, "v1.30.4")).expect("pinned");
        let new = recipe(&Release::new(Product::Kubernetes, "v1.37.2")).expect("pinned");
        assert_ne!(old.digest, new.digest);
        assert!(old.flags[3].contains("k8s.io/component-base/version.gitVersion=v1.30.4"));
        assert!(old.flags[3].contains("gitMinor=30"));
        assert!(recipe(&Release::new(Product::Kubernetes, "v1.30.5")).is_none());
    }

    #[test]
    fn the_go_version_needed_is_the_modules_own() {
        assert_eq!(required_go(&Release::new(Product::Kubernetes, "v1.37.2")), Some("1.26.0"));
        assert_eq!(required_go(&Release::new(Product::Etcd, "v3.5.21")), Some("1.23.0"));
    }
}
