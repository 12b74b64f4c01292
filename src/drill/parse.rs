//! Reads a drill file. The only file that knows the YAML library.
//!
//! YAML is first read into a tree that knows positions, then parameters are filled
//! in, then the typed drill is read from the tree. So a wrong value that came from
//! a parameter is reported where `$(name)` stands.

use super::parameters::{self, ParameterValues};
use super::problem::{DrillErrors, Problem};
use super::source::SourceMap;
use super::spec::Drill;
use super::tree::{Key, Node, Value};
use super::typed::{Mistake, Typed, TypedError};
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Location, MergeKeyPolicy, Spanned};
use std::fmt;
use std::ops::Range;

/// Largest drill file that is read.
pub const MAX_BYTES: usize = 1 << 20;

/// Deepest nesting of a drill file.
const MAX_DEPTH: usize = 32;

/// Most values in a drill file, aliases followed.
const MAX_NODES: usize = 20_000;

/// Most anchors, and most aliases, in a drill file.
const MAX_ALIASES: usize = 100;

/// Most problems that are collected before reading on is given up.
const MAX_PROBLEMS: usize = 20;

/// Reads a drill: YAML, then parameters, then types. `name` stands for the file in messages.
///
/// # Errors
/// Everything that keeps the drill from being read, with positions. What can be
/// read but makes no sense is for [`super::lint::lint`].
pub fn parse(name: &str, text: &str, values: &ParameterValues) -> Result<(Drill, SourceMap), DrillErrors> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let refuse = |problems| DrillErrors::new(name, text, problems);
    let mut root = read_yaml(text).map_err(|p| refuse(vec![p]))?;
    let (settled, mut problems) = parameters::settle(&root, values);
    problems.extend(parameters::fill(&mut root, &settled, text));
    let places = root.places();
    match read_types(root, &mut problems) {
        Some(drill) if problems.is_empty() => Ok((drill, SourceMap::new(name, text, places))),
        _ => Err(refuse(problems)),
    }
}

/// Reads another document that people write, with the same positions and the same kind of messages; it has
/// no parameters. `begin` is what an empty file is told to begin with.
///
/// # Errors
/// Everything that keeps it from being read, with positions.
pub fn document<T: DeserializeOwned>(
    name: &str,
    text: &str,
    begin: &str,
) -> Result<(T, SourceMap), DrillErrors> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut problems = Vec::new();
    let root = read_yaml_of(text, begin).map_err(|p| DrillErrors::new(name, text, vec![p]))?;
    let places = root.places();
    match read_types(root, &mut problems) {
        Some(document) if problems.is_empty() => Ok((document, SourceMap::new(name, text, places))),
        _ => Err(DrillErrors::new(name, text, problems)),
    }
}

/// Values that the parameters of a drill get: defaults, then the profile, then `--set`.
///
/// # Errors
/// When the file is not YAML, or a parameter, profile or value is not allowed.
pub fn settled_parameters(
    name: &str,
    text: &str,
    values: &ParameterValues,
) -> Result<std::collections::BTreeMap<String, String>, DrillErrors> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let root = read_yaml(text).map_err(|p| DrillErrors::new(name, text, vec![p]))?;
    let (settled, problems) = parameters::settle(&root, values);
    if problems.is_empty() { Ok(settled) } else { Err(DrillErrors::new(name, text, problems)) }
}

/// Reads the typed document. After a mistake the smallest part around it is left out
/// and reading starts again, so that several mistakes are reported at once.
fn read_types<T: DeserializeOwned>(mut root: Node, problems: &mut Vec<Problem>) -> Option<T> {
    let start = 0..0;
    let mut meant_keys = Vec::new();
    while problems.len() < MAX_PROBLEMS {
        let error = match T::deserialize(Typed::document(&root, &start)) {
            Ok(drill) => return Some(drill),
            Err(error) => error,
        };
        let span = error.span.clone();
        // `nmae` was reported as a misspelt `name`; that `name` is missing is the same mistake.
        let follows = matches!(&error.kind, Mistake::MissingKey(key) if meant_keys.contains(key));
        let mut go_on = false;
        if let Some(span) = &span {
            go_on = root.prune(span);
            if let (false, Mistake::UnknownKey { meant }) = (go_on, &error.kind) {
                go_on = root.remove_key(span);
                meant_keys.extend(meant.clone());
            }
        }
        if !follows && !problems.iter().any(|p| overlap(p.span.as_ref(), span.as_ref())) {
            problems.push(problem_of(error));
        }
        if !go_on {
            return None;
        }
    }
    None
}

/// Whether two places share text: what is wrong there has been said already.
fn overlap(a: Option<&Range<usize>>, b: Option<&Range<usize>>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a == b || (a.start < b.end && b.start < a.end))
}

fn problem_of(error: TypedError) -> Problem {
    let problem = Problem::error(error.title, error.span);
    match error.help {
        Some(help) => problem.help(help),
        None => problem,
    }
}

fn read_yaml(text: &str) -> Result<Node, Problem> {
    read_yaml_of(text, "begin with `apiVersion: quakeproof.dev/v1alpha1`; scenarios/ has examples")
}

fn read_yaml_of(text: &str, begin: &str) -> Result<Node, Problem> {
    if text.len() > MAX_BYTES {
        return Err(Problem::error(format!("the file is larger than {MAX_BYTES} bytes"), None));
    }
    let options = serde_saphyr::options! {
        budget: Some(budget()),
        merge_keys: MergeKeyPolicy::Error,
        with_snippet: false,
    };
    let raw: Spanned<Raw> =
        serde_saphyr::from_str_with_options(text, options).map_err(|e| yaml_problem(&e, text))?;
    let root = Place { text }.node(raw);
    match root.value {
        Value::Null => Err(Problem::error("there is nothing in this file", Some(0..0)).help(begin)),
        _ => Ok(root),
    }
}

/// A drill is small; what needs more than this is an attack or an accident.
fn budget() -> serde_saphyr::Budget {
    let mut budget = serde_saphyr::Budget::default();
    budget.max_reader_input_bytes = Some(MAX_BYTES);
    budget.max_depth = MAX_DEPTH;
    budget.max_documents = 1;
    budget.max_nodes = MAX_NODES;
    budget.max_events = 3 * MAX_NODES;
    budget.max_aliases = MAX_ALIASES;
    budget.max_anchors = MAX_ALIASES;
    budget
}

fn yaml_problem(error: &serde_saphyr::Error, text: &str) -> Problem {
    let span = error.location().map(|l| Place { text }.range(l));
    let mut options = serde_saphyr::RenderOptions::new(&serde_saphyr::UserMessageFormatter);
    options.snippets = serde_saphyr::SnippetMode::Off;
    match error.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("this key");
            Problem::error(format!("key `{key}` is given twice"), span).help("remove one of the two")
        }
        serde_saphyr::Error::MultipleDocuments { .. }
        | serde_saphyr::Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            Problem::error("a second YAML document begins here", span)
                .help("put each document into its own file")
        }
        serde_saphyr::Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            Problem::error(format!("nested more than {MAX_DEPTH} levels deep"), span)
        }
        serde_saphyr::Error::Budget { .. } => {
            Problem::error(format!("more than {MAX_NODES} values, or {MAX_ALIASES} anchors or aliases"), span)
                .help("such a file is small: split it, and write values out instead of repeating aliases")
        }
        other => {
            let message = other.render_with_options(options);
            // The position is shown apart.
            let message = message.split(" at line ").next().unwrap_or_default().trim();
            let problem = Problem::error(format!("not valid YAML: {message}"), span);
            match yaml_help(message) {
                Some(help) => problem.help(help),
                None => problem,
            }
        }
    }
}

/// What usually causes one of the library's messages.
fn yaml_help(message: &str) -> Option<&'static str> {
    let causes = [
        ("found a tab", "indent with spaces; a line near here begins with a tab"),
        ("flow", "a `}`, `]` or `,` is missing, here or in a line above"),
        ("block", "keys and list items of one level begin in the same column"),
        ("quote", "a closing quote is missing, here or in a line above"),
    ];
    causes.into_iter().find(|(part, _)| message.contains(part)).map(|(_, help)| help)
}

/// Translates the library's locations into byte ranges of the text.
struct Place<'a> {
    text: &'a str,
}

impl Place<'_> {
    fn range(&self, location: Location) -> Range<usize> {
        let span = location.span();
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let start = span.byte_offset().map_or_else(|| self.offset(location), number).min(self.text.len());
        let length = span.byte_len().map_or(0, number);
        start..start.saturating_add(length).min(self.text.len())
    }

    /// Byte offset of a line and column.
    fn offset(&self, location: Location) -> usize {
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let line_start: usize = self
            .text
            .split_inclusive('\n')
            .take(number(location.line().saturating_sub(1)))
            .map(str::len)
            .sum();
        let line = self.text[line_start..].chars().take(number(location.column().saturating_sub(1)));
        line_start + line.map(char::len_utf8).sum::<usize>()
    }

    fn node(&self, raw: Spanned<Raw>) -> Node {
        let own = self.range(raw.referenced);
        match raw.value {
            Raw::Null => Node { span: own, value: Value::Null },
            Raw::Text(text) => Node { span: self.trimmed(own), value: Value::Scalar { text, string: true } },
            Raw::Plain(fallback) => {
                let defined = self.trimmed(self.range(raw.defined));
                let written = self.text.get(defined).filter(|t| !t.is_empty()).map(str::to_owned);
                let text = written.unwrap_or(fallback);
                Node { span: self.trimmed(own), value: Value::Scalar { text, string: false } }
            }
            Raw::Seq(items) => {
                let items: Vec<Node> = items.into_iter().map(|i| self.node(i)).collect();
                let span = around(own, items.iter().map(|i| &i.span));
                Node { span, value: Value::Seq(items) }
            }
            Raw::Map(entries) => {
                let entries: Vec<(Key, Node)> = entries
                    .into_iter()
                    .map(|(key, value)| {
                        let span = self.trimmed(self.range(key.referenced));
                        (Key { text: key.value, span }, self.node(value))
                    })
                    .collect();
                let span = around(own, entries.iter().flat_map(|(k, n)| [&k.span, &n.span]));
                Node { span, value: Value::Map(entries) }
            }
        }
    }

    /// Without white space at its end.
    fn trimmed(&self, range: Range<usize>) -> Range<usize> {
        let length = self.text.get(range.clone()).map_or(range.len(), |t| t.trim_end().len());
        range.start..range.start + length
    }
}

/// The smallest range around all parts; `own` when there are none.
fn around<'a>(own: Range<usize>, parts: impl Iterator<Item = &'a Range<usize>>) -> Range<usize> {
    parts
        .fold(None, |all: Option<Range<usize>>, part| {
            Some(all.map_or(part.clone(), |a| a.start.min(part.start)..a.end.max(part.end)))
        })
        .unwrap_or(own)
}

/// What the YAML library hands over, before positions are brought in.
enum Raw {
    Null,
    Text(String),
    /// A boolean or number; the text is used only where the file's own can't be had.
    Plain(String),
    Seq(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct RawVisitor;
        impl<'de> Visitor<'de> for RawVisitor {
            type Value = Raw;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a YAML value")
            }

            fn visit_unit<E: de::Error>(self) -> Result<Raw, E> {
                Ok(Raw::Null)
            }

            fn visit_none<E: de::Error>(self) -> Result<Raw, E> {
                Ok(Raw::Null)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Raw, E> {
                Ok(Raw::Text(text.to_owned()))
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Raw, E> {
                Ok(Raw::Plain(value.to_string()))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Raw, E> {
                Ok(Raw::Plain(value.to_string()))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Raw, E> {
                Ok(Raw::Plain(value.to_string()))
            }

            fn visit_u128<E: de::Error>(self, value: u128) -> Result<Raw, E> {
                Ok(Raw::Plain(value.to_string()))
            }

            fn visit_i128<E: de::Error>(self, value: i128) -> Result<Raw, E> {
                Ok(Raw::Plain(value.to_string()))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Raw, E> {
                Ok(Raw::Plain(value.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Raw::Seq(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Raw::Map(entries))
            }
        }
        d.deserialize_any(RawVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_text() {
        let text = "# é\na: {b: 5, c: \"x y\", d: 0x10}\nlist:\n  - one\n  - k: true # c\nnull-ish:\n";
        let root = read_yaml(text).unwrap();
        let at = |path: &str| {
            let places = root.places();
            let stand = &places[path];
            text[stand.value.clone()].to_owned()
        };
        assert_eq!(at("a.b"), "5");
        assert_eq!(at("a.c"), "\"x y\"");
        assert_eq!(at("a.d"), "0x10");
        assert_eq!(at("list[0]"), "one");
        assert_eq!(at("list[1].k"), "true");
        assert_eq!(at("list[1]"), "k: true");
        let Value::Map(entries) = &root.value else { panic!("a mapping") };
        assert_eq!(&text[entries[1].0.span.clone()], "list");
    }
}
