//! `quakeproof doctor`: whether embedded clusters can run here, and what to do when not.

mod machine;
#[cfg(target_os = "linux")]
pub mod namespaces;

use super::environment;
use super::toolchain::options_from_env;
use crate::exit::ExitCode;
use clap::Args;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

/// Say what this machine can and can't do, and what to do about it
///
/// Exit codes: 0 embedded clusters can run here, 5 they can't.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    name: &'static str,
    status: Status,
    /// What was found.
    found: String,
    /// What to do about it.
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Status {
    /// As it should be.
    Ok,
    /// Something will be slower or not available.
    Warn,
    /// Embedded clusters can't run.
    Fail,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, found: found.into(), hint: None }
    }

    fn warn(name: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, status: Status::Warn, found: found.into(), hint: Some(hint.into()) }
    }

    fn fail(name: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, status: Status::Fail, found: found.into(), hint: Some(hint.into()) }
    }
}

/// Looks at this machine and prints a line per check. Changes nothing: what has
/// to be tried is tried in namespaces of a child process.
///
/// # Errors
/// When printing fails.
pub fn run(args: &DoctorArgs, out: &mut dyn Write) -> io::Result<ExitCode> {
    let options = options_from_env(false);
    let mut checks = namespace_checks();
    checks.push(machine::memory());
    checks.extend(machine::state_dir(&state_dir_from_env()));
    checks.push(machine::cache_space(&options));
    checks.extend(machine::toolchains(&options));
    checks.push(machine::go(&options));
    checks.push(machine::protoc());
    print(&checks, args.json, out)
}

#[cfg(target_os = "linux")]
fn namespace_checks() -> Vec<Check> {
    namespaces::checks()
}

#[cfg(not(target_os = "linux"))]
fn namespace_checks() -> Vec<Check> {
    let found = format!("this is {}", std::env::consts::OS);
    vec![Check::fail(
        "namespaces",
        found,
        "embedded clusters need Linux; `check`, `plan`, `report` and `verify` work here",
    )]
}

fn state_dir_from_env() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("QUAKEPROOF_STATE")
        .or_else(|| variable("XDG_STATE_HOME").map(|dir| dir.join("quakeproof")))
        .or_else(|| variable("HOME").map(|dir| dir.join(".local/state/quakeproof")))
        .unwrap_or_else(|| std::env::temp_dir().join("quakeproof-state"))
}

fn print(checks: &[Check], json: bool, out: &mut dyn Write) -> io::Result<ExitCode> {
    let failed = checks.iter().filter(|c| c.status == Status::Fail).count();
    if json {
        let value = serde_json::json!({ "ok": failed == 0, "checks": checks });
        writeln!(out, "{value:#}")?;
    } else {
        let color = environment::colour();
        let width = checks.iter().map(|c| c.name.len()).max().unwrap_or(0);
        for check in checks {
            writeln!(out, "{} {:width$}  {}", mark(check.status, color), check.name, check.found)?;
            for line in check.hint.iter().flat_map(|hint| hint.lines()) {
                writeln!(out, "     {:width$}  → {line}", "")?;
            }
        }
        let end = match failed {
            0 => "embedded clusters can run here".to_owned(),
            n => format!("embedded clusters can't run here: {n} of {} checks failed", checks.len()),
        };
        writeln!(out, "{end}")?;
    }
    Ok(if failed == 0 { ExitCode::Ok } else { ExitCode::Refused })
}

fn mark(status: Status, color: bool) -> String {
    match (status, color) {
        (Status::Ok, false) => "ok  ".to_owned(),
        (Status::Warn, false) => "warn".to_owned(),
        (Status::Fail, false) => "FAIL".to_owned(),
        (Status::Ok, true) => "ok  ".green().to_string(),
        (Status::Warn, true) => "warn".yellow().to_string(),
        (Status::Fail, true) => "FAIL".red().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_refuses_and_a_warning_does_not() {
        let warned = [Check::ok("a", "fine"), Check::warn("b", "slow", "do this")];
        let mut out = Vec::new();
        assert_eq!(print(&warned, false, &mut out).expect("prints"), ExitCode::Ok);
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("→ do this") && text.contains("can run here"), "{text}");

        let failed = [Check::fail("a", "broken", "do that")];
        let mut out = Vec::new();
        assert_eq!(print(&failed, true, &mut out).expect("prints"), ExitCode::Refused);
        let value: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(value["ok"], false);
        assert_eq!(value["checks"][0]["status"], "fail");
        assert_eq!(value["checks"][0]["hint"], "do that");
    }
}
