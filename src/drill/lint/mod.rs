//! What can be read but makes no sense: a drill whose objectives its clients can't
//! measure, steps in an impossible order, values outside their range.

mod names;
mod needs;
mod ranges;
mod so_far;
mod timing;

pub use names::is_kebab;
pub(crate) use needs::WRITER;
pub(crate) use ranges::{PAGE, WAIT};
pub use so_far::SoFar;

use super::problem::Problem;
use super::source::SourceMap;
use super::spec::{Drill, SteadyState};
use super::values::Span;
use crate::client::under_test::Works;
use std::ops::Range;

/// Judges a drill that could be read. Errors keep it from being run, warnings don't.
#[must_use]
pub fn lint(drill: &Drill, source: &SourceMap) -> Vec<Problem> {
    let mut lint = Lint { drill, source, problems: Vec::new() };
    names::check(&mut lint);
    ranges::check(&mut lint);
    for (index, client) in drill.spec.clients.iter().enumerate() {
        let place = Place::of("clients", index, client.key());
        if let Works::Every(every) = client.kind().about().works {
            lint.span(&place.key("every"), every, ranges::EVERY);
        }
        client.kind().lint(&mut lint, &place);
    }
    so_far::check(&mut lint);
    for (index, objective) in drill.spec.objectives.iter().enumerate() {
        objective.kind().lint(&mut lint, &Place::of("objectives", index, objective.key()));
    }
    timing::check(&mut lint);
    lint.problems.sort_by_key(|p| p.span.as_ref().map_or(0, |s| s.start));
    lint.problems
}

/// A drill being judged.
pub struct Lint<'a> {
    pub(crate) drill: &'a Drill,
    source: &'a SourceMap,
    problems: Vec<Problem>,
}

impl Lint<'_> {
    fn at(&self, path: &str) -> Option<Range<usize>> {
        self.source.at(path)
    }

    /// Keeps the drill from being run.
    pub(crate) fn error(&mut self, path: &str, title: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::error(title, self.at(path)).help(help));
    }

    /// Only says so.
    pub(crate) fn warning(&mut self, path: &str, title: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::warning(title, self.at(path)).help(help));
    }

    /// A duration from `least` to `most`.
    pub(crate) fn span(&mut self, path: &str, value: Span, (least, most): (Span, Span)) {
        if value < least || value > most {
            let key = path.rsplit('.').next().unwrap_or(path);
            self.error(path, format!("`{key}: {value}` is out of range"), format!("write {least} to {most}"));
        }
    }

    /// A duration that travels as whole seconds.
    pub(crate) fn whole_seconds(&mut self, path: &str, value: Span, range: (Span, Span)) {
        if value.0.subsec_nanos() != 0 {
            let key = path.rsplit('.').next().unwrap_or(path);
            self.error(path, format!("`{key}: {value}` is not a whole number of seconds"), "round it");
        }
        self.span(path, value, range);
    }

    /// A number from 1 to `most`.
    pub(crate) fn count(&mut self, path: &str, key: &str, value: u32, most: u32) {
        if !(1..=most).contains(&value) {
            self.error(path, format!("`{key}: {value}` is out of range"), format!("write 1 to {most}"));
        }
    }
}

/// Where an entry of one of the lists stands in the file.
pub struct Place {
    /// Which entry, from 0.
    pub(crate) index: usize,
    path: String,
}

impl Place {
    /// Entry `index` of `spec.<list>`, under its `key`.
    pub(crate) fn of(list: &str, index: usize, key: &str) -> Self {
        Self { index, path: format!("spec.{list}[{index}].{key}") }
    }

    /// Its whole value.
    pub(crate) fn itself(&self) -> &str {
        &self.path
    }

    /// One of its keys, or a key of a key, as `restart.apiServers`.
    pub(crate) fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }
}

/// Key under which a condition of the steady state stands in the file.
fn condition_key(condition: &SteadyState) -> &'static str {
    match condition {
        SteadyState::ApiReady(_) => "apiReady",
        SteadyState::WriteSucceeds(_) => "writeSucceeds",
    }
}
