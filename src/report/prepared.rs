//! Evidence, judged and brought into the shape that every format is made from.

use super::build;
use super::model::Report;
use crate::check::{self, Judgement};
use crate::timeline::boundaries::Boundaries;
use crate::timeline::lanes::Lane;
use crate::timeline::marks::Marks;
use crate::timeline::{EvidenceInput, Timeline};

/// What reports are written from.
#[derive(Debug, Clone)]
pub struct Prepared<'a> {
    /// What `report.json` holds.
    pub report: Report,
    /// The evidence, whose records reports quote.
    pub input: &'a EvidenceInput,
    /// Each client's observations, for drawing.
    pub lanes: Vec<Lane>,
    /// What the journal fixes in time.
    pub boundaries: Boundaries,
}

/// Judges the evidence and prepares its report. `journal_head` is the hash of the
/// journal's last line as the reader of the journal computed it from the bytes.
#[must_use]
pub fn prepare<'a>(input: &'a EvidenceInput, journal_head: &str) -> Prepared<'a> {
    let (judgement, timeline) = check::judge_over_time(input);
    Prepared::of(input, &judgement, timeline, journal_head)
}

impl<'a> Prepared<'a> {
    /// The report of a judgement that has been reached already. Without a timeline
    /// there is neither mark nor lane; the judgement then says why.
    #[must_use]
    pub fn of(
        input: &'a EvidenceInput,
        judgement: &Judgement,
        timeline: Option<Timeline>,
        journal_head: &str,
    ) -> Self {
        let (boundaries, marks, lanes) = match timeline {
            Some(timeline) => (timeline.boundaries, timeline.marks, timeline.lanes),
            None => (Boundaries::of(input), Marks::default(), Vec::new()),
        };
        let report = build::build(input, judgement, (&boundaries, &marks), journal_head);
        Self { report, input, lanes, boundaries }
    }
}
