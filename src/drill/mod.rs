//! Drill files: what may be written, how it is read, what is wrong with it.

pub mod file;
mod kinds;
pub mod levels;
pub mod lint;
pub mod parameters;
pub mod parse;
pub mod problem;
pub mod source;
pub mod spec;
pub(crate) mod suggest;
mod tree;
mod typed;
pub mod values;

use problem::{DrillErrors, Problem, Severity};
use source::SourceMap;
use spec::Drill;

/// A drill file without errors.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What it says, parameters filled in.
    pub drill: Drill,
    /// Where it says so.
    pub source: SourceMap,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Problem>,
}

/// Parses and lints a drill file.
///
/// # Errors
/// Everything that is wrong with it, with positions, in the order of the file.
pub fn load(name: &str, text: &str, values: &parameters::ParameterValues) -> Result<Loaded, DrillErrors> {
    let (drill, source) = parse::parse(name, text, values)?;
    let problems = lint::lint(&drill, &source);
    if problems.iter().any(|p| p.severity == Severity::Error) {
        return Err(DrillErrors::new(source.name(), source.text(), problems));
    }
    Ok(Loaded { drill, source, warnings: problems })
}
