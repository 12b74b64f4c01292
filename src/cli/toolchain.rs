//! `quakeproof toolchain`: the upstream binaries that embedded clusters are made of.

use super::output::{Data, say};
use crate::exit::ExitCode;
use crate::plan::Versions;
use crate::provider::binaries::{
    self, BinariesError, Located, Origin, Product, ProvideOptions, Release, Scrutiny, Source, etcd_for,
    known_kubernetes, newest_pair, pinned_pairs,
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;
use tabled::settings::Style;
use thiserror::Error;

/// Kubernetes and etcd binaries
///
/// Exit codes: 0 done, 3 wrong usage, 5 the binaries are not to be had.
#[derive(Debug, Args)]
pub struct ToolchainArgs {
    #[command(subcommand)]
    command: ToolchainCommand,
}

#[derive(Debug, Subcommand)]
enum ToolchainCommand {
    /// Show the pinned versions and which of them are here
    List(ListArgs),
    /// Make binaries available: from a directory of yours, the cache, a download, or a build
    Provide(ProvideArgs),
    /// Print the directories of a version's binaries
    Path(PathArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Recompute the digest of every cached binary
    #[arg(long)]
    verify: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ProvideArgs {
    /// Kubernetes versions, as v1.37.2; the etcd that goes with each comes along [default: the newest pinned]
    versions: Vec<String>,
    /// Download nothing from the official release sites
    #[arg(long)]
    offline: bool,
    /// Leave the cached copy alone and replace it
    #[arg(long)]
    rebuild: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct PathArgs {
    /// Kubernetes version, as v1.37.2
    version: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Why a `toolchain` command failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ToolchainError {
    /// Binaries are not to be had.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// No etcd is known for this version.
    #[error("`{version}` is not a pinned Kubernetes version\n  hint: known are {}", known_kubernetes())]
    UnknownVersion {
        /// As asked for.
        version: String,
    },
    /// The binaries are not here yet.
    #[error("{release} is not here\n  hint: `quakeproof toolchain provide {kubernetes}` provides it")]
    NotProvided {
        /// What is missing.
        release: String,
        /// Version to provide.
        kubernetes: String,
    },
    /// Printing failed.
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
}

impl ToolchainError {
    /// Exit code of a command that ends with this error.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            ToolchainError::Binaries(error) => error.exit_code(),
            ToolchainError::UnknownVersion { .. } => ExitCode::Usage,
            ToolchainError::NotProvided { .. } => ExitCode::Refused,
            ToolchainError::Print(_) => ExitCode::Internal,
        }
    }
}

/// Ways to binaries as the environment opens them: `QUAKEPROOF_BIN_DIR`,
/// `QUAKEPROOF_CACHE`, `QUAKEPROOF_OFFLINE` (any value but empty and 0),
/// `QUAKEPROOF_KUBERNETES_SITE` and `QUAKEPROOF_ETCD_SITE` (mirrors of the release sites).
#[must_use]
pub fn options_from_env(offline: bool) -> ProvideOptions {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("QUAKEPROOF_CACHE")
        .map(PathBuf::from)
        .or_else(|| variable("XDG_CACHE_HOME").map(|dir| PathBuf::from(dir).join("quakeproof")))
        .or_else(|| variable("HOME").map(|dir| PathBuf::from(dir).join(".cache/quakeproof")))
        .unwrap_or_else(|| std::env::temp_dir().join("quakeproof-cache"));
    let mut options = ProvideOptions::new(cache);
    options.explicit_dir = variable("QUAKEPROOF_BIN_DIR").map(PathBuf::from);
    options.offline = offline || variable("QUAKEPROOF_OFFLINE").is_some_and(|value| value != "0");
    let site = |name| variable(name).map(|value| value.to_string_lossy().into_owned());
    if let Some(mirror) = site("QUAKEPROOF_KUBERNETES_SITE") {
        options.sites.kubernetes = mirror;
    }
    if let Some(mirror) = site("QUAKEPROOF_ETCD_SITE") {
        options.sites.etcd = mirror;
    }
    options
}

/// Runs `quakeproof toolchain …`. Blocks; data to stdout, progress to stderr.
///
/// # Errors
/// [`ToolchainError`]; its exit code says what kind.
pub fn run(args: &ToolchainArgs) -> Result<ExitCode, ToolchainError> {
    let offline = matches!(&args.command, ToolchainCommand::Provide(p) if p.offline);
    run_with(args, options_from_env(offline), &mut Data, &say)
}

/// [`run`] with everything that it takes from its surroundings given.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    args: &ToolchainArgs,
    mut options: ProvideOptions,
    out: &mut dyn Write,
    progress: &dyn Fn(&str),
) -> Result<ExitCode, ToolchainError> {
    match &args.command {
        ToolchainCommand::List(args) => list(args, &options, out),
        ToolchainCommand::Provide(args) => {
            options.rebuild = args.rebuild;
            provide(args, &options, out, progress)
        }
        ToolchainCommand::Path(args) => path(args, &options, out),
    }
}

/// A version as typed, with or without `v`, with the etcd that goes with it.
fn pair(version: &str) -> Result<Versions, ToolchainError> {
    let kubernetes = if version.starts_with('v') { version.to_owned() } else { format!("v{version}") };
    match etcd_for(&kubernetes) {
        Some(etcd) => Ok(Versions { kubernetes, etcd: etcd.to_owned() }),
        None => Err(ToolchainError::UnknownVersion { version: version.to_owned() }),
    }
}

fn releases(versions: &Versions) -> [Release; 2] {
    [Release::new(Product::Kubernetes, &versions.kubernetes), Release::new(Product::Etcd, &versions.etcd)]
}

fn list(args: &ListArgs, options: &ProvideOptions, out: &mut dyn Write) -> Result<ExitCode, ToolchainError> {
    let scrutiny = if args.verify { Scrutiny::Full } else { Scrutiny::Quick };
    let mut code = ExitCode::Ok;
    let mut rows = vec![["RELEASE", "STATE", "ORIGIN", "SIZE", "DIRECTORY"].map(str::to_owned)];
    let mut entries = Vec::new();
    for (kubernetes, etcd) in pinned_pairs() {
        let versions = Versions { kubernetes: (*kubernetes).to_owned(), etcd: (*etcd).to_owned() };
        for release in releases(&versions) {
            let (state, found, reason) = match binaries::locate(&release, options, scrutiny) {
                Ok(Some(found)) => ("ready", Some(found), None),
                Ok(None) => ("missing", None, None),
                Err(error) => {
                    code = ExitCode::Refused;
                    ("damaged", None, Some(error.to_string()))
                }
            };
            rows.push(row(&release, state, found.as_ref()));
            entries.push(json!({
                "product": release.product.name(),
                "version": release.version,
                "forKubernetes": kubernetes,
                "state": state,
                "reason": reason,
                "origin": found.as_ref().map(origin_json),
                "sizeBytes": found.as_ref().map(|f| f.size_bytes),
                "directory": found.as_ref().map(|f| f.dir.display().to_string()),
            }));
            if let (Some(reason), false) = (reason, args.json) {
                say(&reason);
            }
        }
    }
    if args.json {
        print_json(out, &json!({ "verified": args.verify, "releases": entries }))?;
    } else {
        writeln!(out, "{}", tabled::builder::Builder::from_iter(rows).build().with(Style::blank()))?;
    }
    Ok(code)
}

fn row(release: &Release, state: &str, found: Option<&Located>) -> [String; 5] {
    let size = found.map_or("-".to_owned(), |f| format!("{} MB", f.size_bytes / 1_000_000));
    let dir = found.map_or("-".to_owned(), |f| f.dir.display().to_string());
    [release.to_string(), state.to_owned(), found.map_or("-".to_owned(), origin_text), size, dir]
}

fn origin_text(found: &Located) -> String {
    match &found.origin {
        Origin::Explicit => "your directory".to_owned(),
        Origin::Cached(Source::Built { go_version, .. }) => format!("built with {go_version}"),
        Origin::Cached(Source::Released { .. }) => "official release".to_owned(),
    }
}

fn origin_json(found: &Located) -> Value {
    match &found.origin {
        Origin::Explicit => json!("explicit"),
        Origin::Cached(source) => json!(source),
    }
}

fn provide(
    args: &ProvideArgs,
    options: &ProvideOptions,
    out: &mut dyn Write,
    progress: &dyn Fn(&str),
) -> Result<ExitCode, ToolchainError> {
    let newest = || vec![newest_pair().0.to_owned()];
    let asked = if args.versions.is_empty() { newest() } else { args.versions.clone() };
    // A typo in the last version must not show after a build of the first.
    let wanted = asked.iter().map(|v| pair(v)).collect::<Result<Vec<_>, _>>()?;
    let mut provided = Vec::new();
    for versions in &wanted {
        let set = binaries::provide(versions, options, progress)?;
        let [kubernetes, etcd] = releases(versions);
        if args.json {
            provided.push(set_json(&kubernetes, &etcd, &set.dir_kubernetes, &set.dir_etcd));
        } else {
            writeln!(out, "{kubernetes}: {}", set.dir_kubernetes.display())?;
            writeln!(out, "{etcd}: {}", set.dir_etcd.display())?;
        }
    }
    if args.json {
        print_json(out, &json!({ "provided": provided }))?;
    }
    Ok(ExitCode::Ok)
}

fn path(args: &PathArgs, options: &ProvideOptions, out: &mut dyn Write) -> Result<ExitCode, ToolchainError> {
    let versions = pair(&args.version)?;
    let [kubernetes, etcd] = releases(&versions);
    let dir = |release: &Release| {
        binaries::locate(release, options, Scrutiny::Quick)?.map(|found| found.dir).ok_or_else(|| {
            ToolchainError::NotProvided {
                release: release.to_string(),
                kubernetes: versions.kubernetes.clone(),
            }
        })
    };
    let (dir_kubernetes, dir_etcd) = (dir(&kubernetes)?, dir(&etcd)?);
    if args.json {
        print_json(out, &set_json(&kubernetes, &etcd, &dir_kubernetes, &dir_etcd))?;
    } else {
        writeln!(out, "{}\n{}", dir_kubernetes.display(), dir_etcd.display())?;
    }
    Ok(ExitCode::Ok)
}

fn set_json(
    kubernetes: &Release,
    etcd: &Release,
    dir_kubernetes: &std::path::Path,
    dir_etcd: &std::path::Path,
) -> Value {
    json!({
        "kubernetes": { "version": kubernetes.version, "directory": dir_kubernetes.display().to_string() },
        "etcd": { "version": etcd.version, "directory": dir_etcd.display().to_string() },
    })
}

fn print_json(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{value:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_taken_with_and_without_its_v_and_an_unknown_one_is_a_usage_error() {
        assert_eq!(pair("1.30.4").expect("pinned").etcd, "v3.5.21");
        assert_eq!(pair("v1.30.4").expect("pinned").kubernetes, "v1.30.4");
        let error = pair("v1.29.0").expect_err("not pinned");
        assert_eq!(error.exit_code(), ExitCode::Usage);
        assert!(error.to_string().contains("v1.30.4"), "{error}");
    }
}
