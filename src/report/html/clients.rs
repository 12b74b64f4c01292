//! What each client saw, with the records that tell it.

use crate::check::restore_facts::{ClientFacts, EtcdRestoreFacts};
use crate::check::seen::ObservedView;
use crate::escape::visible;
use crate::history::kind::ClientKind;
use crate::report::build::word;
use crate::report::figure;
use crate::report::model::Report;
use crate::report::quote::{self, Quote};
use crate::timeline::EvidenceInput;

/// A client's section.
pub(in crate::report) struct ClientView {
    pub(in crate::report) name: String,
    pub(in crate::report) kind: String,
    pub(in crate::report) state: &'static str,
    pub(in crate::report) state_class: &'static str,
    pub(in crate::report) saw: String,
    pub(in crate::report) operations: String,
    pub(in crate::report) phantom: String,
    pub(in crate::report) absent: String,
    pub(in crate::report) missed: String,
    pub(in crate::report) silent: String,
    pub(in crate::report) gone: String,
    pub(in crate::report) stale: String,
    pub(in crate::report) regressions: String,
    pub(in crate::report) swaps: String,
    pub(in crate::report) errors: String,
    pub(in crate::report) note: String,
    pub(in crate::report) quotes: Vec<Quote>,
}

/// Most records quoted per client.
const MOST_QUOTES: usize = 8;

pub(super) fn views(
    report: &Report,
    facts: &EtcdRestoreFacts,
    input: &EvidenceInput,
    zero: u64,
) -> Vec<ClientView> {
    facts.clients.iter().map(|c| view(report, c, input, zero)).collect()
}

fn view(report: &Report, c: &ClientFacts, input: &EvidenceInput, zero: u64) -> ClientView {
    let number = |n: Option<u64>| n.map_or_else(|| "—".to_owned(), |n| n.to_string());
    let (state, state_class) = match c.view() {
        ObservedView::LostTimeline => ("on the lost timeline", "fail"),
        ObservedView::Stale => ("stale", "fail"),
        ObservedView::True => ("equals etcd’s state", "pass"),
        ObservedView::Unknown => ("unknown", "inconclusive"),
        ObservedView::NotApplicable => ("has no view", "none"),
    };
    let mut references: Vec<&String> = report.objectives.iter().flat_map(|o| &o.evidence).collect();
    let mut seen = std::collections::BTreeSet::new();
    references.retain(|r| seen.insert(r.as_str()));
    let mut quotes: Vec<Quote> =
        references.into_iter().filter_map(|r| quote::record(input, &c.name, r, zero)).map(clean).collect();
    quotes.truncate(MOST_QUOTES);
    quotes.sort_by_key(|q| q.at_ns);
    let errors: Vec<String> = c.errors.iter().map(|(class, n)| format!("{} × {n}", visible(class))).collect();
    ClientView {
        name: visible(&c.name).into_owned(),
        kind: word(&c.kind),
        state,
        state_class,
        saw: saw(c),
        operations: c.operations.to_string(),
        phantom: number(c.phantom_objects),
        absent: number(c.absent_objects),
        missed: number(c.events_missed),
        silent: c.silent_for_ns.map_or_else(|| "—".to_owned(), figure::duration),
        gone: c.gone410.to_string(),
        stale: number(c.stale_reads),
        regressions: number(c.rv_regressions),
        swaps: number(c.cas_on_lost_state),
        errors: if errors.is_empty() { "none".to_owned() } else { errors.join(", ") },
        note: c.reason.as_deref().map(visible).unwrap_or_default().into_owned(),
        quotes,
    }
}

fn clean(quote: Quote) -> Quote {
    let line = |text: String| visible(&text).into_owned();
    Quote {
        reference: line(quote.reference),
        at_ns: quote.at_ns,
        when: quote.when,
        what: line(quote.what),
        revision: line(quote.revision),
        answer: line(quote.answer),
    }
}

/// What a client saw, in words that follow from its figures alone.
fn saw(c: &ClientFacts) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut add = |n: Option<u64>, one: &str, many: &str| {
        if let Some(n) = n.filter(|n| *n > 0) {
            parts.push(format!("{n} {}", if n == 1 { one } else { many }));
        }
    };
    add(c.phantom_objects, "object shown that does not exist", "objects shown that do not exist");
    add(c.absent_objects, "object that exists not shown", "objects that exist not shown");
    add(c.events_missed, "acknowledged write never delivered", "acknowledged writes never delivered");
    add(c.stale_reads, "stale read", "stale reads");
    add(
        c.cas_on_lost_state,
        "update accepted on a state of the lost timeline",
        "updates accepted on a state of the lost timeline",
    );
    add(
        c.get_list_disagreements,
        "GET that contradicted the LISTs before and after it",
        "GETs that contradicted the LISTs before and after them",
    );
    let mut text = match (parts.is_empty(), c.view()) {
        (false, _) => parts.join("; "),
        (true, ObservedView::True) if c.kind == ClientKind::CasUpdater => {
            "No update was accepted that rested on the lost timeline".to_owned()
        }
        (true, ObservedView::True) => "Its view equalled etcd’s own state".to_owned(),
        (true, ObservedView::Stale) => "Its view lacked writes acknowledged long before".to_owned(),
        (true, ObservedView::LostTimeline) => "Its view was not etcd’s state".to_owned(),
        (true, ObservedView::Unknown) => "What it saw is unknown".to_owned(),
        (true, ObservedView::NotApplicable) => "It has no view of its own".to_owned(),
    };
    for phase in c.phases.iter().filter(|p| p.observed != ObservedView::True) {
        if let Some(reason) = &phase.reason {
            text.push_str(&format!("; {}: {}", phase.phase.words(), visible(reason)));
        }
    }
    if let Some(silent) = c.silent_for_ns.filter(|n| *n > 0) {
        text.push_str(&format!("; longest silence {}", figure::duration(silent)));
    }
    match c.rv_regressions {
        None | Some(0) => {}
        Some(1) => text.push_str("; the revision that it was told went back once"),
        Some(n) => text.push_str(&format!("; the revision that it was told went back {n} ×")),
    }
    match c.gone410 {
        0 if c.on_lost_timeline() == Some(true) => text.push_str("; no error told it so"),
        0 => {}
        n => text.push_str(&format!("; told by {n} × 410, listed again {} ×", c.relists)),
    }
    text.push('.');
    text
}
