//! `$(name)`: declared parameters, the values they get, and where they are filled in.

use super::problem::Problem;
use super::spec::Parameter;
use super::suggest;
use super::tree::{Node, Value};
use super::typed::Typed;
use serde::Deserialize as _;
use std::collections::BTreeMap;
use std::ops::Range;

/// What the caller says about parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParameterValues {
    /// Profile whose values replace the defaults.
    pub profile: Option<String>,
    /// Values of `--set`; they win over the profile's.
    pub set: BTreeMap<String, String>,
}

/// Values of all parameters: defaults, then the profile, then `--set`.
/// The problems name unknown parameters and profiles, and values that are not allowed.
pub(super) fn settle(root: &Node, values: &ParameterValues) -> (BTreeMap<String, String>, Vec<Problem>) {
    let mut problems = Vec::new();
    let declared = declared(root);
    let mut settled = BTreeMap::new();
    for (name, (parameter, span)) in &declared {
        let place = place(root, &["spec", "parameters", name, "default"]).or_else(|| Some(span.clone()));
        if well_named(name) {
            refuse_unlisted(name, &parameter.default, parameter, "the default", place, &mut problems);
        } else {
            let title = format!("parameter name `{name}` is not made of letters and digits only");
            problems
                .push(Problem::error(title, Some(span.clone())).help("write it in camelCase, as `holdTime`"));
        }
        settled.insert(name.clone(), parameter.default.clone());
    }
    apply_profiles(root, &declared, values, &mut settled, &mut problems);
    let names: Vec<&str> = declared.keys().map(String::as_str).collect();
    for (name, value) in &values.set {
        match declared.get(name) {
            Some((parameter, span)) => {
                refuse_unlisted(name, value, parameter, "--set", Some(span.clone()), &mut problems);
                settled.insert(name.clone(), value.clone());
            }
            None => problems.push(unknown(name, "--set", &names, None)),
        }
    }
    (settled, problems)
}

/// Fills `$(name)` into every scalar outside of `spec.parameters` and `spec.profiles`.
pub(super) fn fill(root: &mut Node, values: &BTreeMap<String, String>, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    fill_node(root, "", values, text, &mut problems);
    problems
}

fn declared(root: &Node) -> BTreeMap<String, (Parameter, Range<usize>)> {
    let mut declared = BTreeMap::new();
    let Some(Node { value: Value::Map(entries), .. }) = root.get("spec").and_then(|s| s.get("parameters"))
    else {
        return declared;
    };
    for (key, node) in entries {
        // What can't be read is reported when the whole drill is.
        if let Ok(parameter) = Parameter::deserialize(Typed::document(node, &key.span)) {
            declared.insert(key.text.clone(), (parameter, key.span.clone()));
        }
    }
    declared
}

fn apply_profiles(
    root: &Node,
    declared: &BTreeMap<String, (Parameter, Range<usize>)>,
    values: &ParameterValues,
    settled: &mut BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) {
    let names: Vec<&str> = declared.keys().map(String::as_str).collect();
    let mut profiles = Vec::new();
    if let Some(Node { value: Value::Map(entries), .. }) = root.get("spec").and_then(|s| s.get("profiles")) {
        for (profile, node) in entries {
            profiles.push(profile.text.as_str());
            let Value::Map(pairs) = &node.value else { continue };
            for (key, node) in pairs {
                let Value::Scalar { text: value, .. } = &node.value else { continue };
                let Some((parameter, _)) = declared.get(&key.text) else {
                    let whose = format!("profile `{}`", profile.text);
                    problems.push(unknown(&key.text, &whose, &names, Some(key.span.clone())));
                    continue;
                };
                let whose = format!("profile `{}`", profile.text);
                refuse_unlisted(&key.text, value, parameter, &whose, Some(node.span.clone()), problems);
                if values.profile.as_ref() == Some(&profile.text) {
                    settled.insert(key.text.clone(), value.clone());
                }
            }
        }
    }
    if let Some(asked) = &values.profile
        && !profiles.contains(&asked.as_str())
    {
        let help = suggest::hint(asked, "profiles of this drill", &profiles)
            .unwrap_or_else(|| "this drill declares no profiles; leave `--profile` out".to_owned());
        problems.push(Problem::error(format!("unknown profile `{asked}`"), None).help(help));
    }
}

fn unknown(name: &str, whose: &str, names: &[&str], span: Option<Range<usize>>) -> Problem {
    let help = suggest::hint(name, "parameters of this drill", names)
        .unwrap_or_else(|| "this drill declares no parameters".to_owned());
    Problem::error(format!("unknown parameter `{name}` in {whose}"), span).help(help)
}

fn refuse_unlisted(
    name: &str,
    value: &str,
    parameter: &Parameter,
    whose: &str,
    span: Option<Range<usize>>,
    problems: &mut Vec<Problem>,
) {
    if parameter.values.is_empty() || parameter.values.iter().any(|v| v == value) {
        return;
    }
    let allowed: Vec<String> = parameter.values.iter().map(|v| format!("`{v}`")).collect();
    let title = format!("`{value}` ({whose}) is not an allowed value of `{name}`");
    problems.push(Problem::error(title, span).help(format!("allowed are: {}", allowed.join(", "))));
}

fn place(root: &Node, path: &[&str]) -> Option<Range<usize>> {
    let node = path.iter().try_fold(root, |node, key| node.get(key))?;
    matches!(node.value, Value::Scalar { .. }).then(|| node.span.clone())
}

fn well_named(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(|c| c.is_ascii_alphanumeric())
}

fn fill_node(
    node: &mut Node,
    path: &str,
    values: &BTreeMap<String, String>,
    source: &str,
    problems: &mut Vec<Problem>,
) {
    if path == "spec.parameters" || path == "spec.profiles" {
        return;
    }
    match &mut node.value {
        Value::Null => {}
        Value::Seq(items) => {
            for item in items {
                fill_node(item, &format!("{path}[]"), values, source, problems);
            }
        }
        Value::Map(entries) => {
            for (key, child) in entries {
                let dot = if path.is_empty() { "" } else { "." };
                fill_node(child, &format!("{path}{dot}{}", key.text), values, source, problems);
            }
        }
        Value::Scalar { text, string } => {
            if text.contains("$(") {
                match fill_text(text, values) {
                    Ok(filled) => {
                        *text = filled;
                        *string = false;
                    }
                    Err(problem) => problems.push(problem.into_problem(&node.span, source)),
                }
            }
        }
    }
}

/// Why a reference can't be filled in; `reference` is its text as written.
struct BadReference {
    reference: String,
    title: String,
    help: String,
}

impl BadReference {
    /// Points at the reference itself where it stands unescaped in the scalar.
    fn into_problem(self, scalar: &Range<usize>, source: &str) -> Problem {
        let found = source.get(scalar.clone()).and_then(|t| t.find(&self.reference));
        let span = found.map_or(scalar.clone(), |at| {
            let start = scalar.start + at;
            start..start + self.reference.len()
        });
        Problem::error(self.title, Some(span)).help(self.help)
    }
}

fn fill_text(text: &str, values: &BTreeMap<String, String>) -> Result<String, BadReference> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("$(") {
        filled.push_str(&rest[..start]);
        let after = &rest[start + 2..];
        let Some((name, tail)) = after.split_once(')').filter(|(name, _)| well_named(name)) else {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len());
            return Err(BadReference {
                reference: rest[start..start + 2 + end].to_owned(),
                title: "`$(` does not begin a parameter reference".to_owned(),
                help: "write `$(name)` with a name of letters and digits".to_owned(),
            });
        };
        let Some(value) = values.get(name) else {
            let names: Vec<&str> = values.keys().map(String::as_str).collect();
            return Err(BadReference {
                reference: format!("$({name})"),
                title: format!("`$({name})` refers to a parameter that is not declared"),
                help: suggest::hint(name, "declared are", &names)
                    .unwrap_or_else(|| format!("declare `{name}: {{default: …}}` under `spec.parameters`")),
            });
        };
        filled.push_str(value);
        rest = tail;
    }
    filled.push_str(rest);
    Ok(filled)
}
