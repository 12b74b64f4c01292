//! The one place where text that came from a cluster, a drill file or a tool is
//! made harmless for the place where it is shown.
//!
//! Everything starts with [`visible`]: characters that act instead of being
//! read (control characters, terminal escapes, bidirectional overrides,
//! zero-width characters, code points that XML 1.0 forbids) are written out as
//! `\u{…}`. What is left is then escaped for the markup at hand.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character does something other than being seen.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}'
            | '\u{061C}'
            | '\u{180E}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{FFFE}'..='\u{FFFF}'
            | '\u{E0000}'..='\u{E0FFF}')
}

/// Writes out every character that acts: newline as `\n`, tab as `\t`, the rest
/// as `\u{1b}`. The result is one line, legal in XML 1.0 once markup is escaped,
/// and safe to print on a terminal.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if acts(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Text or a quoted attribute value of HTML, SVG and XML 1.0.
#[must_use]
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Text for a writer that escapes markup itself (the JUnit writer): only the
/// characters that XML 1.0 forbids, or that mislead, are written out.
#[must_use]
pub fn xml_text(text: &str) -> Cow<'_, str> {
    visible(text)
}

/// Text on a terminal.
#[must_use]
pub fn terminal(text: &str) -> Cow<'_, str> {
    visible(text)
}

/// Inline text of Markdown, in a table cell too: no emphasis, link, image, HTML
/// or bare address comes of it.
#[must_use]
pub fn markdown(text: &str) -> String {
    let clean = visible(text);
    let mut out = String::with_capacity(clean.len() + 16);
    let mut rest = clean.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            ':' if rest.peek() == Some(&'/') => out.push_str("\\:"),
            '.' if out.ends_with("www") => out.push_str("\\."),
            c => out.push(c),
        }
    }
    out
}

/// A literal in Markdown: a code span whose fence is longer than any run of
/// backticks within.
#[must_use]
pub fn markdown_code(text: &str) -> String {
    let clean = visible(text).replace('|', "\\|");
    let longest = clean.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    if longest == 0 { format!("{fence}{clean}{fence}") } else { format!("{fence} {clean} {fence}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOSTILE: &str =
        "</text><script>alert('x')</script>\u{1b}[31m\u{202e}\u{0}\u{FFFE}\"&|`*[a](http://b)\n![c](d)";

    #[test]
    fn characters_that_act_are_written_out() {
        assert_eq!(visible("a\u{1b}[2Jb\u{202e}c\nd"), "a\\u{1b}[2Jb\\u{202e}c\\nd");
        assert!(matches!(visible("quiet text, ü and 漢"), Cow::Borrowed(_)));
    }

    #[test]
    fn markup_never_opens_a_tag_or_leaves_a_quoted_attribute() {
        let out = markup(HOSTILE);
        assert!(!out.contains(['<', '>', '"', '\'']), "{out}");
    }

    #[test]
    fn markdown_keeps_links_images_and_cells_from_forming() {
        let out = markdown(HOSTILE);
        let unescaped: String = {
            let mut chars = out.chars();
            let mut kept = String::new();
            while let Some(c) = chars.next() {
                if c == '\\' {
                    chars.next();
                } else {
                    kept.push(c);
                }
            }
            kept
        };
        assert!(!unescaped.contains(['<', '[', ']', '|', '`', '*', '!', '#']), "{out}");
        assert!(!out.contains("http://"), "{out}");
    }

    #[test]
    fn a_markdown_literal_survives_its_own_fence() {
        assert_eq!(markdown_code("a``b"), "``` a``b ```");
        assert_eq!(markdown_code("x"), "`x`");
    }

    proptest! {
        #[test]
        fn nothing_that_acts_is_left_in_any_format(text in "\\PC*|.*") {
            for out in [markup(&text), markdown(&text), markdown_code(&text), terminal(&text).into_owned()] {
                prop_assert!(!out.chars().any(acts));
            }
        }
    }
}
