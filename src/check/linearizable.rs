//! The objective `linearizable`: what clients were answered fits one order of writes,
//! on either side of a restore.

use super::consistency::Consistency;
use super::consistency::violation::Violation;
use super::coverage::{cut_short, is_about_ledger, too_little};
use super::{Finding, Judge, Verdict};
use crate::check::objective::{Foreseen, ObjectiveKind};
use crate::check::unit::Unit;
use crate::drill::lint::{Lint, Place};
use crate::plan::{PlannedObjective, predict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What clients were answered fits one order of writes, on either side of a restore.
///
/// Writes and quorum reads are linearizable, and their revisions agree with the order in real time. A list or
/// range is the state at its revision; the outcome of a conditional write fits the state that it met. After a
/// restore the same holds from the snapshot's state on, so a value that the restore lost is not read again. No
/// client is shown a revision that goes back. A watch delivers every event once and in order, also when it lives
/// through a restore.
///
/// Writes that a restore loses don't count against it, see `rpo`. What caches show
/// in LISTs after a restore is judged by `noClientOnLostTimeline`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Linearizable {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Most states that are explored for objects whose order revisions leave open,
    /// 1 to 100,000,000. When it is used up, the objective is inconclusive.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub budget: u64,
}

impl Default for Linearizable {
    fn default() -> Self {
        Self { name: "linearizable".to_owned(), budget: 1_000_000 }
    }
}

/// States that a search explores: the most takes minutes.
const STATES: (u64, u64) = (1, 100_000_000);

impl ObjectiveKind for Linearizable {
    fn name(&self) -> &str {
        &self.name
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        let (least, most) = STATES;
        if !(least..=most).contains(&self.budget) {
            let title = format!("`budget: {}` is out of range", self.budget);
            lint.error(&at.key("budget"), title, format!("write {least} to {most} explored states"));
        }
        let title = "without a `ledgerWriter` there is no order of writes that answers could fit";
        lint.needs_writer(&at.key("name"), title);
    }

    fn rests_on_truth(&self) -> bool {
        true
    }

    fn predicted(&self, foreseen: &Foreseen<'_>) -> Option<String> {
        predict::linearizable(foreseen.drill)
    }

    fn check(&self, judge: &Judge, planned: &PlannedObjective) -> Finding {
        check(judge, planned, self)
    }
}

/// Most violations whose records a finding quotes.
const QUOTED: usize = 5;

/// Judges it.
fn check(judge: &Judge, planned: &PlannedObjective, objective: &Linearizable) -> Finding {
    let mut finding = judge.finding(planned);
    (finding.unit, finding.target) = (Unit::Violations, Some(0));
    let checked = match Consistency::of(judge, objective.budget) {
        Ok(checked) => checked,
        Err(reason) => {
            finding.reason = format!("the histories can't be told apart by epoch: {reason}");
            return finding;
        }
    };
    let found = checked.violations.len() as u64;
    (finding.observed, finding.lower) = (Some(found), Some(found));
    finding.upper = checked.undecided.is_empty().then_some(found);
    for record in checked.violations.iter().take(QUOTED).flat_map(|v| &v.records) {
        if !finding.evidence.contains(record) {
            finding.evidence.push(record.clone());
        }
    }
    if let Some(first) = checked.violations.first() {
        finding.verdict = Verdict::Fail;
        finding.reason = violated(&checked.violations, first);
        return finding;
    }
    if let Some(first) = checked.undecided.first() {
        finding.observed = None;
        finding.reason = format!(
            "{} objects can't be decided with a budget of {} states: {first}",
            checked.undecided.len(),
            objective.budget
        );
        return finding;
    }
    if checked.operations == 0 {
        finding.observed = None;
        finding.reason = "no client of the drill wrote or read with a quorum".to_owned();
        return finding;
    }
    finding.verdict = Verdict::Pass;
    finding.reason = met(&checked);
    finding.cannot_pass_if(
        cut_short(&judge.input.plan, judge.boundaries())
            .or_else(|| too_little(&judge.logs, judge.boundaries(), is_about_ledger)),
    );
    finding
}

fn violated(all: &[Violation], first: &Violation) -> String {
    let mut rules: Vec<(&str, usize)> = Vec::new();
    for violation in all {
        let words = violation.rule.words();
        match rules.iter_mut().find(|(known, _)| *known == words) {
            Some((_, count)) => *count += 1,
            None => rules.push((words, 1)),
        }
    }
    let rules: Vec<String> = rules.into_iter().map(|(words, count)| format!("{count} × {words}")).collect();
    format!("{}; the first: {} ({})", rules.join(", "), first.what, first.records.join(", "))
}

fn met(checked: &Consistency) -> String {
    let epochs = match checked.run.epochs.len() {
        1 => "one order of revisions".to_owned(),
        _ => "one order of revisions on either side of the restore".to_owned(),
    };
    let mut words =
        vec![format!("{} operations and {} watch events fit {epochs}", checked.operations, checked.events)];
    if checked.run.epochs.len() > 1 {
        words.push(format!("{} acknowledged writes were lost, as a restore may", checked.run.lost_writes()));
        let reused = checked.run.revisions_reused().len();
        if reused > 0 {
            words.push(format!("{reused} revisions were used again"));
        }
    }
    if checked.searched > 0 {
        words.push(format!("{} objects were searched, {} states explored", checked.searched, checked.states));
    }
    if checked.false_lists > 0 {
        words.push(format!("{} LISTs after the restore were not etcd's state", checked.false_lists));
    }
    if checked.run.spanning > 0 {
        words.push(format!("{} reads under way during the restore are not judged", checked.run.spanning));
    }
    words.join("; ")
}
