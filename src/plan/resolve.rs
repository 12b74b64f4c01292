//! From a drill file and what the caller overrides to a plan. Pure: no clock, no
//! network, no environment; the same input gives the same plan.

use super::overrides::Overrides;
use super::versions::{VersionError, pinned_pair};
use super::{FORMAT_VERSION, Plan, PlannedCluster, capability, expand, predict, steps};
use crate::apf::version::{ZeroShares, zero_shares};
use crate::component::capability::Capability;
use crate::digest::sha256_hex;
use crate::drill::parameters::ParameterValues;
use crate::drill::problem::DrillErrors;
use crate::drill::spec::EncryptionKey;
use crate::drill::spec::{KeyBackup, Step};
use crate::drill::{self, lint, parse};
use crate::exit::ExitCode;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Everything that a plan is made of.
#[derive(Debug, Clone)]
pub struct ResolveInput<'a> {
    /// Name of the drill file, for messages.
    pub name: &'a str,
    /// Its contents.
    pub text: &'a str,
    /// `--set key=value`: a declared parameter, or one of `cluster.provider`,
    /// `cluster.kubernetes`, `cluster.name`, `cluster.topology.*`.
    pub set: BTreeMap<String, String>,
    /// `--kubernetes`, short for `--set cluster.kubernetes=…`.
    pub kubernetes: Option<String>,
    /// `--seed`; absent: derived from the drill file.
    pub seed: Option<u64>,
    /// `--profile`.
    pub profile: Option<String>,
    /// What the provider's clusters can do; absent: what its kind is known to offer.
    pub capabilities: Option<BTreeSet<Capability>>,
}

impl<'a> ResolveInput<'a> {
    /// A drill without any override.
    #[must_use]
    pub fn plain(name: &'a str, text: &'a str) -> Self {
        Self {
            name,
            text,
            set: BTreeMap::new(),
            kubernetes: None,
            seed: None,
            profile: None,
            capabilities: None,
        }
    }
}

/// Why there is no plan.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The drill file is wrong.
    #[error("{0}")]
    Drill(#[from] DrillErrors),
    /// An override can't be applied.
    #[error("--set {key}: {reason}")]
    Override {
        /// What was to be changed.
        key: String,
        /// Why not, and what can be.
        reason: String,
    },
    /// The versions asked for are not available together.
    #[error("{0}; `quakeproof toolchain list` shows every pair")]
    Versions(#[from] VersionError),
    /// A restore would leave Secrets that nobody can read, and the drill does not say so.
    #[error(
        "step {step} restores a cluster whose encryption key is in no backup: its Secrets could be read by nobody\n  \
         hint: keep the key apart from the API servers and set `cluster.encryptionAtRest.keyBackup: present`, or \
         declare the loss as the drill's fault with `restoreSnapshot.encryptionKey: missing`"
    )]
    NoKeyBackup {
        /// 1, 2, ….
        step: usize,
    },
    /// The version makes something else of a level of no shares.
    #[error(
        "step {step} asks for a priority level of 0 shares, and Kubernetes {version} {what}\n  hint: 0 is accepted from \
         v1.30 on; use `shares: 1` for the smallest level before that"
    )]
    ZeroShares {
        /// 0, 1, 2, ….
        step: usize,
        /// The version.
        version: String,
        /// What it would do.
        what: &'static str,
    },
    /// The provider can't do what the drill needs.
    #[error("this drill can't run with provider `{provider}`: {}", missing.join("; "))]
    Capability {
        /// The provider.
        provider: String,
        /// What needs what, in words.
        missing: Vec<String>,
    },
}

impl PlanError {
    /// Exit code of a command that ends with this error.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            PlanError::Drill(_) | PlanError::Override { .. } | PlanError::Versions(_) => ExitCode::Usage,
            PlanError::Capability { .. } | PlanError::NoKeyBackup { .. } | PlanError::ZeroShares { .. } => {
                ExitCode::Refused
            }
        }
    }
}

/// Fixes everything that a drill leaves open.
///
/// # Errors
/// When the drill or an override is wrong, versions are not pinned together, or
/// the provider lacks a capability.
pub fn resolve(input: ResolveInput<'_>) -> Result<Plan, PlanError> {
    let overrides = Overrides::sort(&input.set, input.kubernetes.as_deref(), input.profile.as_deref())?;
    let (drill, source, parameters) = read(&input, &overrides.parameters)?;
    let mut drill = drill;
    overrides.apply(&mut drill)?;
    let problems = lint::lint(&drill, &source);
    if problems.iter().any(|p| p.severity == drill::problem::Severity::Error) {
        return Err(DrillErrors::new(source.name(), source.text(), problems).into());
    }
    let versions = {
        let cluster = &drill.spec.cluster;
        pinned_pair(cluster.kubernetes.as_deref(), cluster.etcd.as_deref())?
    };
    drill.spec.cluster.kubernetes = Some(versions.kubernetes.clone());
    drill.spec.cluster.etcd = Some(versions.etcd.clone());
    let provider = drill.spec.cluster.provider;
    let offered = input.capabilities.clone().unwrap_or_else(|| capability::offered_by(provider));
    let missing = capability::missing(&drill, &offered);
    if !missing.is_empty() {
        return Err(PlanError::Capability { provider: provider.word().to_owned(), missing });
    }
    key_survives(&drill)?;
    zero_is_taken(&drill, &versions.kubernetes)?;
    let drill_digest = sha256_hex(input.text.as_bytes());
    let components = expand::components(drill.spec.cluster.topology);
    let clients = expand::clients(&drill, &components);
    let predictions = predict::predictions(&drill, &versions, &clients);
    let consumers = predict::consumers::predictions(&drill, &versions, &clients);
    let seed = input.seed.unwrap_or_else(|| derived_seed(&drill_digest));
    let flow = predict::fates::predictions(&drill, &versions, seed);
    Ok(Plan {
        format_version: FORMAT_VERSION.to_owned(),
        seed,
        drill_digest,
        parameters,
        overrides: overrides.listed(),
        profile: input.profile.clone(),
        clients,
        steps: steps::resolve(&drill, &components),
        steady_state: drill.spec.steady_state.clone(),
        objectives: predict::objectives(&drill, &predictions, &flow),
        predictions,
        consumers,
        flow,
        limits: drill.spec.limits.clone(),
        cluster: PlannedCluster {
            name: "main".to_owned(),
            provider,
            standing: drill.spec.cluster.name.clone(),
            versions,
            topology: drill.spec.cluster.topology,
            components,
            encryption_at_rest: drill.spec.cluster.encryption_at_rest,
        },
        drill,
    })
}

/// Found before the disaster: no restore of Secrets that nobody could read, unless that is the drill.
fn key_survives(drill: &drill::spec::Drill) -> Result<(), PlanError> {
    let lost = drill.spec.cluster.encryption_at_rest.is_some_and(|e| e.key_backup == KeyBackup::Missing);
    let undeclared =
        |step: &Step| matches!(step, Step::RestoreSnapshot(r) if r.encryption_key == EncryptionKey::Present);
    match drill.spec.steps.iter().position(undeclared) {
        Some(index) if lost => Err(PlanError::NoKeyBackup { step: index + 1 }),
        _ => Ok(()),
    }
}

/// Found before the drill: a version that would make 30 shares of none, or refuse the level.
fn zero_is_taken(drill: &drill::spec::Drill, kubernetes: &str) -> Result<(), PlanError> {
    let what = match zero_shares(kubernetes) {
        ZeroShares::Accepted => return Ok(()),
        ZeroShares::Refused => "refuses to make such a level (kubernetes/kubernetes#121089)",
        ZeroShares::Absent => "reads 0 as not given and makes it 30: the level would be no jail at all",
    };
    let none = |step: &Step| match step {
        Step::ApfLevel(level) => level.shares == 0,
        Step::ApfShares(shares) => shares.shares == 0,
        _ => false,
    };
    match drill.spec.steps.iter().position(none) {
        Some(step) => Err(PlanError::ZeroShares { step, version: kubernetes.to_owned(), what }),
        None => Ok(()),
    }
}

type Read = (drill::spec::Drill, drill::source::SourceMap, BTreeMap<String, String>);

fn read(input: &ResolveInput<'_>, values: &ParameterValues) -> Result<Read, DrillErrors> {
    let (drill, source) = parse::parse(input.name, input.text, values)?;
    let parameters = parse::settled_parameters(input.name, input.text, values)?;
    Ok((drill, source, parameters))
}

/// A seed that every reader of the JSON can hold exactly: 53 bits of the drill's digest.
fn derived_seed(drill_digest: &str) -> u64 {
    u64::from_str_radix(&drill_digest[..16], 16).unwrap_or_default() >> 11
}

#[cfg(test)]
mod tests;
