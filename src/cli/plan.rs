//! `quakeproof plan`: resolves a drill and shows what would be done; changes nothing.

use super::environment;
use crate::drill::{self, parameters::ParameterValues};
use crate::escape;
use crate::exit::ExitCode;
use crate::findings::{self, Past};
use crate::plan::digest::canonical_bytes;
use crate::plan::render::render;
use crate::plan::resolve::{PlanError, ResolveInput, resolve};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

/// What may be overridden when a drill is resolved; the same for `plan` and `run`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Overrides {
    /// Sets a parameter of the drill, or cluster.provider, cluster.kubernetes,
    /// cluster.name, cluster.topology.*; never an objective or a limit.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Kubernetes version, as v1.37.2; short for --set cluster.kubernetes=…
    #[arg(long, value_name = "VERSION")]
    pub kubernetes: Option<String>,
    /// Seed of every random choice; default: derived from the drill file.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Profile of the drill whose parameter values are used.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
}

impl Overrides {
    /// Input of [`resolve`] for the drill file `name` with contents `text`.
    ///
    /// # Errors
    /// When a key is set twice to different values.
    pub fn input<'a>(&self, name: &'a str, text: &'a str) -> Result<ResolveInput<'a>, PlanError> {
        let mut set = BTreeMap::new();
        for (key, value) in &self.set {
            if let Some(other) = set.insert(key.clone(), value.clone())
                && other != *value
            {
                let reason = format!("set twice, to `{other}` and to `{value}`");
                return Err(PlanError::Override { key: key.clone(), reason });
            }
        }
        Ok(ResolveInput {
            set,
            kubernetes: self.kubernetes.clone(),
            seed: self.seed,
            profile: self.profile.clone(),
            ..ResolveInput::plain(name, text)
        })
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE".to_owned()),
    }
}

/// Resolve a drill into a plan; changes nothing
///
/// Exit codes: 0 here is the plan, 3 the drill or an override is wrong, 5 what it needs is not available.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The drill file.
    pub drill: PathBuf,
    /// What is changed against the file.
    #[command(flatten)]
    pub overrides: Overrides,
    /// Prints plan.json, byte for byte as a run would write it.
    #[arg(long)]
    pub json: bool,
}

/// Prints the plan to `out` and, unless that is for programs, findings of `past` runs that are open for the
/// same versions; warnings and errors to `err`.
///
/// # Errors
/// When `out` or `err` can't be written to.
pub fn run(args: &Args, past: &[Past], out: &mut dyn Write, err: &mut dyn Write) -> io::Result<ExitCode> {
    let name = args.drill.to_string_lossy();
    let text = match drill::file::read(&args.drill) {
        Ok(text) => text,
        Err(e) => {
            writeln!(err, "error: {}: {e}", escape::terminal(&name))?;
            return Ok(ExitCode::Usage);
        }
    };
    let plan = match args.overrides.input(&name, &text).and_then(resolve) {
        Ok(plan) => plan,
        Err(error) => {
            show_error(&error, err)?;
            return Ok(error.exit_code());
        }
    };
    let values = ParameterValues { profile: plan.profile.clone(), ..ParameterValues::default() };
    if let Ok(loaded) = drill::load(&name, &text, &values) {
        for warning in &loaded.warnings {
            writeln!(err, "{}", warning.render(&name, &text))?;
        }
    }
    let versions = &plan.cluster.versions;
    let open = findings::open_for(past, versions);
    let known = format!(
        "\nOpen findings of past runs on Kubernetes {} and etcd {}\n{}",
        escape::terminal(&versions.kubernetes),
        escape::terminal(&versions.etcd),
        if open.is_empty() { "  none are known here\n".to_owned() } else { findings::table(&open) }
    );
    if args.json {
        out.write_all(&canonical_bytes(&plan))?;
        if !open.is_empty() {
            err.write_all(known.as_bytes())?;
        }
    } else {
        out.write_all(render(&plan, environment::columns()).as_bytes())?;
        out.write_all(known.as_bytes())?;
    }
    Ok(ExitCode::Ok)
}

/// Shows why there is no plan. Errors of the drill file come with their own layout.
///
/// # Errors
/// When `err` can't be written to.
pub fn show_error(error: &PlanError, err: &mut dyn Write) -> io::Result<()> {
    match error {
        PlanError::Drill(errors) => write!(err, "{errors}"),
        other => writeln!(err, "error: {}", escape::terminal(&other.to_string())),
    }
}
