//! The report as one self-contained HTML file: no script, no request, readable
//! on a screen in light or dark and on paper.

mod arrivals;
mod audit;
mod bars;
mod clients;
mod lanes;
mod queue;
mod svg;
mod timeline;
mod view;

pub(super) use view::{Page, page};

use super::prepared::Prepared;
use askama::Template;

/// The report as HTML, with records quoted and lanes drawn.
#[must_use]
pub fn render(prepared: &Prepared<'_>) -> String {
    let mut page = page(prepared)
        .render()
        .expect("writing to a string does not fail, and the templates call nothing else that may");
    page.push('\n');
    page
}

/// Differences first, then what is unknown, then what went as predicted.
pub(super) fn difference_rank(agrees: Option<bool>) -> u8 {
    match agrees {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    }
}

/// How a prediction fared, as a word.
pub(super) fn agreement(agrees: Option<bool>) -> &'static str {
    match agrees {
        Some(false) => "differs",
        None => "unknown",
        Some(true) => "as predicted",
    }
}
