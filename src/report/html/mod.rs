//! The report as one self-contained HTML file: no script, no request, readable
//! on a screen in light or dark and on paper.

mod audit;
mod bars;
mod clients;
mod lanes;
mod svg;
mod timeline;
mod view;

use super::input::Judgement;
use super::model::Report;
use crate::timeline::EvidenceInput;
use askama::Template;

/// The report as HTML. `input` gives the records that are quoted.
#[must_use]
pub fn render(report: &Report, input: &EvidenceInput, judgement: &Judgement) -> String {
    let mut page = view::page(report, input, judgement)
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
