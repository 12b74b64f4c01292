//! Names: what kind of file it is, kebab-case, unique, not taken by the plan's own probes.

use super::super::spec::API_VERSION;
use super::super::suggest::or;
use super::{Lint, Place};
use crate::probe;
use std::collections::BTreeSet;

/// Longest name; it becomes part of file and user names.
const MAX_LENGTH: usize = 63;

pub(super) fn check(lint: &mut Lint<'_>) {
    kind(lint);
    metadata(lint);
    versions(lint);
    clients(lint);
    objectives(lint);
    parameters(lint);
}

fn kind(lint: &mut Lint<'_>) {
    let drill = lint.drill;
    if drill.api_version != API_VERSION {
        let title = format!("apiVersion `{}` is not one that this build reads", drill.api_version);
        lint.error("apiVersion", title, format!("write `{API_VERSION}`"));
    }
    if drill.kind != "Drill" {
        lint.error("kind", format!("kind `{}` is not a drill", drill.kind), "write `Drill`");
    }
}

fn metadata(lint: &mut Lint<'_>) {
    let metadata = &lint.drill.metadata;
    kebab(lint, "metadata.name", &metadata.name);
    for (key, value) in [("title", &metadata.title), ("owner", &metadata.owner), ("reason", &metadata.reason)]
    {
        if value.trim().is_empty() {
            lint.error(
                &format!("metadata.{key}"),
                format!("`{key}` is empty"),
                "whoever reads the report in two years needs it",
            );
        }
    }
    if let Some(name) = &lint.drill.spec.cluster.name {
        kebab(lint, "spec.cluster.name", name);
    }
}

fn versions(lint: &mut Lint<'_>) {
    let cluster = &lint.drill.spec.cluster;
    for (key, version) in [("kubernetes", &cluster.kubernetes), ("etcd", &cluster.etcd)] {
        if let Some(version) = version
            && !is_version(version)
        {
            let help = match version.strip_prefix('v') {
                None if is_version(&format!("v{version}")) => format!("write `v{version}`"),
                _ => "write all three numbers, as `v1.37.2`".to_owned(),
            };
            lint.error(&format!("spec.cluster.{key}"), format!("`{version}` is not an exact version"), help);
        }
    }
}

/// `v1.2.3`, each a number without leading zeros.
fn is_version(text: &str) -> bool {
    let number = |t: &str| {
        !t.is_empty()
            && t.len() <= 4
            && t.bytes().all(|b| b.is_ascii_digit())
            && (t == "0" || !t.starts_with('0'))
    };
    let parts: Vec<&str> = text.strip_prefix('v').map_or(Vec::new(), |t| t.split('.').collect());
    parts.len() == 3 && parts.into_iter().all(number)
}

fn clients(lint: &mut Lint<'_>) {
    let mut seen = BTreeSet::new();
    for (i, client) in lint.drill.spec.clients.iter().enumerate() {
        let (path, name) = (Place::of("clients", i, client.key()).key("name"), client.name());
        kebab(lint, &path, name);
        if !seen.insert(name) {
            lint.error(&path, format!("a client named `{name}` stands above"), "names are unique in a drill");
        }
        if probe::NAMES.iter().any(|p| name == *p || (p.ends_with('-') && name.starts_with(p))) {
            let title = format!("client name `{name}` is taken by a probe that every plan adds");
            lint.error(&path, title, format!("choose a name without {} in front", or(probe::NAMES)));
        }
    }
}

fn objectives(lint: &mut Lint<'_>) {
    let mut seen = BTreeSet::new();
    for (i, objective) in lint.drill.spec.objectives.iter().enumerate() {
        let path = Place::of("objectives", i, objective.key()).key("name");
        let name = objective.kind().name();
        kebab(lint, &path, name);
        if !seen.insert(name) {
            let title = format!("an objective named `{name}` stands above");
            lint.error(&path, title, "names are unique in a drill");
        }
    }
}

fn parameters(lint: &mut Lint<'_>) {
    for name in lint.drill.spec.parameters.keys() {
        if !lint.source.text().contains(&format!("$({name})")) {
            let title = format!("parameter `{name}` is used nowhere");
            lint.warning(
                &format!("spec.parameters.{name}"),
                title,
                format!("use it as `$({name})`, or remove it"),
            );
        }
    }
}

fn kebab(lint: &mut Lint<'_>, path: &str, name: &str) {
    if is_kebab(name) {
        return;
    }
    let title = format!("`{name}` is not a kebab-case name of at most {MAX_LENGTH} characters");
    let fixed = fix(name);
    let help = if is_kebab(&fixed) {
        format!("write `{fixed}`")
    } else {
        "lower-case letters, digits and single dashes, beginning with a letter".to_owned()
    };
    lint.error(path, title, help);
}

/// Whether it is what drills, clusters and clients are called: at most 63 lower-case letters, digits and
/// single dashes, beginning with a letter.
#[must_use]
pub fn is_kebab(name: &str) -> bool {
    name.len() <= MAX_LENGTH
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.split('-').all(|part| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

/// The kebab-case name that was probably meant.
fn fix(name: &str) -> String {
    let mut fixed = String::new();
    let mut after_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && after_lower {
            fixed.push('-');
        }
        after_lower = c.is_ascii_lowercase();
        fixed.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    }
    fixed.split('-').filter(|p| !p.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suggested_name_is_the_kebab_case_of_the_one_given() {
        assert_eq!(fix("myReader_2"), "my-reader-2");
        assert_eq!(fix("Bad Name"), "bad-name");
        assert!(is_kebab("etcd-watch-1") && !is_kebab("1st") && !is_kebab("a--b") && !is_kebab(""));
    }

    #[test]
    fn only_exact_versions_are_versions() {
        assert!(is_version("v1.37.2"));
        for bad in ["1.37.2", "v1.37", "v1.37.x", "latest", "v01.2.3", "v1.2.3-rc.1"] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
