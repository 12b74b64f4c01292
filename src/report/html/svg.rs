//! Writes SVG elements; every text and attribute value passes the escape module.

use crate::escape::markup;
use std::fmt::Write as _;

/// A drawing that grows downwards.
pub(super) struct Svg {
    body: String,
    width: f64,
}

impl Svg {
    /// An empty drawing, `width` user units wide.
    pub(super) fn new(width: f64) -> Self {
        Self { body: String::new(), width }
    }

    /// The finished element. `id` makes the references of title and description
    /// unique in the page.
    pub(super) fn finish(self, id: &str, height: f64, title: &str, description: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" class=\"plot\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{}</svg>",
            number(self.width),
            number(height),
            markup(title),
            markup(description),
            self.body
        )
    }

    /// A rectangle, with a description that browsers show on hover.
    pub(super) fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64, hover: &str) {
        let _ = write!(
            self.body,
            "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            markup(class),
            number(x),
            number(y),
            number(width),
            number(height)
        );
        if hover.is_empty() {
            self.body.push_str("/>");
        } else {
            let _ = write!(self.body, "><title>{}</title></rect>", markup(hover));
        }
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
        let _ = write!(
            self.body,
            "<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            markup(class),
            number(x1),
            number(y1),
            number(x2),
            number(y2)
        );
    }

    /// A line of text; `anchor` is `start`, `middle` or `end`.
    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, anchor: &str, text: &str) {
        let _ = write!(
            self.body,
            "<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
            markup(class),
            number(x),
            number(y),
            markup(anchor),
            markup(text)
        );
    }
}

/// Two decimals are enough for a screen, and give the same bytes everywhere.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        let mut svg = Svg::new(10.0);
        svg.text("a", 0.0, -0.001, "start", "</text><script>\u{202e}");
        svg.rect("b", 1.0, 2.5, 3.333, 4.0, "\"><image href=x>");
        let out = svg.finish("x", 10.0, "<t>", "&");
        assert!(!out.contains("<script") && !out.contains("<image") && !out.contains('\u{202e}'));
        assert!(out.contains("y=\"0\"") && out.contains("width=\"3.33\""));
    }
}
