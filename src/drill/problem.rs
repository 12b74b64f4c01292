//! What is wrong with a drill file, and how it is shown.

use crate::escape;
use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::ops::Range;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The drill can't be run.
    Error,
    /// Allowed, but probably not meant.
    Warning,
}

/// One thing that is wrong with a drill file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, lowercase.
    pub title: String,
    /// Bytes of the file that it is about; absent when it is about no place in the file.
    pub span: Option<Range<usize>>,
    /// What to do.
    pub help: Option<String>,
}

impl Problem {
    /// An error at `span`.
    pub fn error(title: impl Into<String>, span: Option<Range<usize>>) -> Self {
        Self { severity: Severity::Error, title: title.into(), span, help: None }
    }

    /// A warning at `span`.
    pub fn warning(title: impl Into<String>, span: Option<Range<usize>>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(title, span) }
    }

    /// The same with a hint.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The problem as people read it: what, where, the line itself, what to do.
    #[must_use]
    pub fn render(&self, name: &str, text: &str) -> String {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut out = format!("{severity}: {}\n", escape::terminal(&shortened(&self.title)));
        let name = escape::terminal(name);
        let Some(span) = &self.span else {
            let _ = writeln!(out, " --> {name}");
            if let Some(help) = &self.help {
                let _ = writeln!(out, "  = help: {}", escape::terminal(help));
            }
            return out;
        };
        let place = Place::of(text, span);
        let gutter = " ".repeat(place.line.to_string().len());
        let _ = writeln!(out, "{gutter}--> {name}:{}:{}", place.line, place.column);
        let _ = writeln!(out, "{gutter} |");
        let _ = writeln!(out, "{} | {}", place.line, place.shown);
        let _ = writeln!(out, "{gutter} | {}{}", " ".repeat(place.indent), "^".repeat(place.carets));
        if let Some(help) = &self.help {
            let _ = writeln!(out, "{gutter} = help: {}", escape::terminal(help));
        }
        out
    }
}

/// A title quotes the file, which may hold a megabyte in one word.
fn shortened(title: &str) -> Cow<'_, str> {
    const LONGEST: usize = 400;
    match title.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &title[..end]).into(),
        None => title.into(),
    }
}

/// A span as line, column and the line's text made printable.
struct Place {
    line: usize,
    column: usize,
    shown: String,
    indent: usize,
    carets: usize,
}

impl Place {
    /// Longest stretch of a line that is shown, in characters.
    const MAX_SHOWN: usize = 160;

    fn of(text: &str, span: &Range<usize>) -> Self {
        let start = floor_char_boundary(text, span.start);
        let end = floor_char_boundary(text, span.end.max(start));
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let before = &text[line_start..start];
        let marked = &text[start..end.min(line_end)];
        let after = text[end.min(line_end)..line_end].trim_end_matches('\r');
        let width = |t: &str| escape::terminal(t).chars().count();
        let before_shown = clip_left(&escape::terminal(before), Self::MAX_SHOWN / 2);
        let room = Self::MAX_SHOWN.saturating_sub(before_shown.chars().count());
        let rest: String = escape::terminal(marked).chars().chain(escape::terminal(after).chars()).collect();
        let rest_shown: String = rest.chars().take(room).collect();
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: before.chars().count() + 1,
            indent: before_shown.chars().count(),
            carets: width(marked).clamp(1, room.max(1)),
            shown: format!("{before_shown}{rest_shown}").trim_end().to_owned(),
        }
    }
}

/// The last `max` characters.
fn clip_left(text: &str, max: usize) -> String {
    let count = text.chars().count();
    text.chars().skip(count.saturating_sub(max)).collect()
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Everything that is wrong with one drill file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrillErrors {
    name: String,
    text: String,
    problems: Vec<Problem>,
}

impl DrillErrors {
    /// Problems of the file `name` with contents `text`, brought into the order of the file.
    #[must_use]
    pub fn new(name: &str, text: &str, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|p| p.span.as_ref().map_or(0, |s| s.start));
        Self { name: name.to_owned(), text: text.to_owned(), problems }
    }

    /// The problems, in the order of the file.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for DrillErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_char('\n')?;
            }
            f.write_str(&problem.render(&self.name, &self.text))?;
        }
        Ok(())
    }
}

impl std::error::Error for DrillErrors {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_its_line_with_carets_under_the_text() {
        let text = "a: 1\nname: wrong\n";
        let problem = Problem::error("no such thing", Some(11..16)).help("write `right`");
        assert_eq!(
            problem.render("x.yaml", text),
            "error: no such thing\n --> x.yaml:2:7\n  |\n2 | name: wrong\n  |       ^^^^^\n  = help: write `right`\n"
        );
    }

    #[test]
    fn hostile_text_is_written_out_and_carets_still_fit() {
        let text = "é\u{1b}[31m: bad\n";
        let at = text.find("bad").unwrap();
        let shown = Problem::error("\u{1b}]0;x\u{7}", Some(at..at + 3)).render("a\nb", text);
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown:?}");
        let lines: Vec<_> = shown.lines().collect();
        let column = |l: &str, needle: &str| l[..l.find(needle).unwrap()].chars().count();
        assert_eq!(column(lines[3], "bad"), column(lines[4], "^^^"));
    }

    #[test]
    fn a_span_beyond_the_text_or_inside_a_character_does_not_panic() {
        let _ = Problem::error("x", Some(90..95)).render("f", "short");
        let _ = Problem::error("x", Some(1..2)).render("f", "é");
        let _ = Problem::error("x", Some(0..0)).render("f", "");
    }
}
