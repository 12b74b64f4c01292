//! The rules of the OpenMetrics text format (version 1.0.0) that a report must keep, read strictly:
//! whatever this does not know is refused.

use std::collections::{BTreeMap, BTreeSet};

/// One sample.
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// Reads an exposition, or says which line breaks which rule.
pub fn read(text: &str) -> Result<Vec<Sample>, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("it must end with `# EOF` and one line feed")?;
    if text.contains('\r') {
        return Err("lines end with a line feed alone".to_owned());
    }
    let mut families: BTreeSet<String> = BTreeSet::new();
    let mut current: Option<Family> = None;
    let mut samples = Vec::new();
    for (index, line) in body.split_terminator('\n').enumerate() {
        let at = |what: String| format!("line {}: {what}: {line}", index + 1);
        if let Some(meta) = line.strip_prefix("# ") {
            let mut parts = meta.splitn(3, ' ');
            let (word, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let rest = parts.next().unwrap_or_default();
            if !is_metric_name(name) {
                return Err(at("not a metric name".to_owned()));
            }
            if current.as_ref().is_none_or(|family| family.name != name) {
                if !families.insert(name.to_owned()) {
                    return Err(at("a family must not be interleaved or stand twice".to_owned()));
                }
                current = Some(Family::new(name));
            }
            let family = current.as_mut().expect("set above");
            family.meta(word, rest).map_err(at)?;
        } else {
            let sample = sample(line).map_err(at)?;
            let family = current.as_mut().ok_or_else(|| at("a sample before its family".to_owned()))?;
            family.sample(&sample).map_err(at)?;
            samples.push(sample);
        }
    }
    for name in &families {
        for suffix in ["_info", "_total", "_created", "_count", "_sum", "_bucket"] {
            if families.contains(&format!("{name}{suffix}")) {
                return Err(format!("family {name} clashes with {name}{suffix}"));
            }
        }
    }
    Ok(samples)
}

struct Family {
    name: String,
    kind: Option<String>,
    seen: BTreeSet<&'static str>,
    sets: BTreeSet<BTreeMap<String, String>>,
}

impl Family {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), kind: None, seen: BTreeSet::new(), sets: BTreeSet::new() }
    }

    fn meta(&mut self, word: &str, rest: &str) -> Result<(), String> {
        if !self.sets.is_empty() {
            return Err("metadata stands before samples".to_owned());
        }
        let known = ["TYPE", "UNIT", "HELP"].into_iter().find(|known| *known == word);
        let known = known.ok_or("only TYPE, UNIT, HELP and EOF are allowed")?;
        if !self.seen.insert(known) {
            return Err(format!("{word} stands twice"));
        }
        match word {
            "TYPE" if !["gauge", "info", "stateset"].contains(&rest) => {
                return Err(format!("type `{rest}` is not expected in a report"));
            }
            "TYPE" => self.kind = Some(rest.to_owned()),
            "UNIT" if !self.name.ends_with(&format!("_{rest}")) || rest.is_empty() => {
                return Err("a unit must be the end of the name".to_owned());
            }
            "UNIT" if self.kind.as_deref() != Some("gauge") => {
                return Err("info and stateset have no unit".to_owned());
            }
            "HELP" => {
                unescape(rest)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), String> {
        let kind = self.kind.as_deref().ok_or("no TYPE")?;
        let expected = if kind == "info" { format!("{}_info", self.name) } else { self.name.clone() };
        if sample.name != expected {
            return Err(format!("a sample of {} is called {expected}", self.name));
        }
        match kind {
            "info" if sample.value != 1.0 => return Err("an info is 1".to_owned()),
            "stateset" if sample.value != 0.0 && sample.value != 1.0 => {
                return Err("a state is 0 or 1".to_owned());
            }
            "stateset" if !sample.labels.contains_key(&self.name) => {
                return Err("a state is a label with the name of its family".to_owned());
            }
            "gauge" if sample.labels.contains_key(&self.name) => {
                return Err("only a stateset has a label with the name of its family".to_owned());
            }
            _ => {}
        }
        if self.sets.insert(sample.labels.clone()) { Ok(()) } else { Err("the same labels twice".to_owned()) }
    }
}

fn is_metric_name(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

fn is_label_name(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

fn sample(line: &str) -> Result<Sample, String> {
    let open = line.find('{').ok_or("every sample names its run")?;
    let name = &line[..open];
    if !is_metric_name(name) {
        return Err("not a metric name".to_owned());
    }
    let mut labels = BTreeMap::new();
    let mut rest = &line[open + 1..];
    loop {
        let (key, after) = rest.split_once("=\"").ok_or("a label is name=\"value\"")?;
        if !is_label_name(key) || key.starts_with("__") {
            return Err(format!("`{key}` is not a label name"));
        }
        let end = closing_quote(after).ok_or("a label's value is not closed")?;
        if labels.insert(key.to_owned(), unescape(&after[..end])?).is_some() {
            return Err(format!("label `{key}` stands twice"));
        }
        rest = &after[end + 1..];
        match rest.as_bytes().first() {
            Some(b',') => rest = &rest[1..],
            Some(b'}') => break,
            _ => return Err("labels are separated by a comma".to_owned()),
        }
    }
    let value = rest[1..].strip_prefix(' ').ok_or("one space stands before the value")?;
    let plain = !value.is_empty()
        && value.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'))
        && !value.ends_with('.');
    let value =
        plain.then(|| value.parse().ok()).flatten().ok_or("not a plain number, or a timestamp follows")?;
    Ok(Sample { name: name.to_owned(), labels, value })
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at),
            _ => {}
        }
    }
    None
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some(c @ ('\\' | '"')) => out.push(c),
                other => return Err(format!("`\\{other:?}` is no escape")),
            },
            '"' => return Err("a quote is escaped".to_owned()),
            c => out.push(c),
        }
    }
    Ok(out)
}
