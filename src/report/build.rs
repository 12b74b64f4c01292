//! From evidence and judgement to the report model. Pure: no clock, no connection.

use super::model::{
    Cluster, Deviation, Evidence, FORMAT_VERSION, Facts, Host, Instant, JUDGE, Mark, MarkRef, Objective,
    Predicted, Report, Run, Step,
};
use super::{faults, sentence};
use crate::check::{Finding, FindingMark, Judgement};
use crate::clock::{MonoNs, WallTime};
use crate::journal::entry::{DEAD_MAN, Entry, JournalEvent};
use crate::plan::PlannedStep;
use crate::timeline::boundaries::Boundaries;
use crate::timeline::marks::Marks;
use crate::timeline::{EvidenceInput, Marked};

/// Builds the model of `report.json`.
pub(super) fn build(
    input: &EvidenceInput,
    judgement: &Judgement,
    (boundaries, marks): (&Boundaries, &Marks),
    journal_head: &str,
) -> Report {
    let cluster = input.plan.cluster.name.clone();
    Report {
        format_version: FORMAT_VERSION.to_owned(),
        judge: JUDGE.to_owned(),
        run: run(input),
        clusters: vec![self::cluster(input)],
        outcome: judgement.outcome,
        outcome_reason: judgement.outcome_reason.clone(),
        verdict: judgement.verdict,
        reason: judgement.reason.clone(),
        summary: sentence::summary(judgement),
        objectives: judgement.findings.iter().map(objective).collect(),
        marks: self::marks(input, marks, &cluster),
        faults: faults::of(input, &boundaries.faults),
        steps: input.plan.steps.iter().map(|s| step(input, s)).collect(),
        predictions: judgement.predictions.clone(),
        deviations: deviations(input),
        facts: Facts { etcd_restore: judgement.etcd_restore.clone(), apf: judgement.apf.clone() },
        recorder: judgement.recorder.clone(),
        evidence: Evidence {
            journal_head: Some(journal_head.to_owned()),
            entries: input.journal.len() as u64,
            manifest_digest: None,
            signature: None,
            reason: "manifestDigest: the manifest holds this file's digest and is written after it; \
                     signature: a signature covers this file, so it lies beside it in attestation.dsse.json"
                .to_owned(),
        },
    }
}

/// The instant of a journal line.
pub(super) fn instant(entry: &Entry) -> Instant {
    Instant { at: entry.at.clone(), mono_ns: entry.mono_ns }
}

fn run(input: &EvidenceInput) -> Run {
    let plan = &input.plan;
    let opened = input.journal.iter().find_map(|e| match &e.event {
        JournalEvent::RunOpened { run, plan_digest, tool, operator, .. } => {
            Some((run.clone(), plan_digest.clone(), tool.clone(), operator.clone()))
        }
        _ => None,
    });
    let (id, plan_digest, tool, operator) = match opened {
        Some((id, digest, tool, operator)) => (id, Some(digest), Some(tool), Some(operator)),
        None => ("unknown".to_owned(), None, None, None),
    };
    let reason = tool.is_none().then(|| "the journal has no opening line".to_owned());
    Run {
        id,
        drill: plan.drill.metadata.name.clone(),
        title: plan.drill.metadata.title.clone(),
        owner: plan.drill.metadata.owner.clone(),
        purpose: plan.drill.metadata.reason.clone(),
        drill_digest: plan.drill_digest.clone(),
        plan_digest,
        parameters: plan.parameters.clone(),
        overrides: plan.overrides.clone(),
        profile: plan.profile.clone(),
        seed: plan.seed,
        started_at: input.journal.first().map(instant),
        finished_at: input.journal.last().map(instant),
        tool,
        operator,
        approval: None,
        approval_reason: Some("the journal records no approval".to_owned()),
        reason,
    }
}

fn cluster(input: &EvidenceInput) -> Cluster {
    let planned = &input.plan.cluster;
    let binding = input.binding.as_ref();
    let mut hosts: Vec<Host> = Vec::new();
    for component in &planned.components {
        let name = component.host.to_string();
        if let Some(host) = hosts.iter_mut().find(|h| h.name == name) {
            host.components.push(component.component.to_string());
            continue;
        }
        hosts.push(Host {
            name,
            address: binding.and_then(|b| b.addresses.get(&component.host).cloned()),
            components: vec![component.component.to_string()],
        });
    }
    Cluster {
        name: planned.name.clone(),
        provider: word(&planned.provider),
        uid: binding.map(|b| b.cluster_uid.clone()),
        versions: planned.versions.clone(),
        fingerprint: binding.map(|b| b.ca_fingerprint.clone()),
        hosts,
        machine: binding.map(|b| b.machine.clone()).unwrap_or_default(),
        reason: binding.is_none().then(|| "the run ended before the cluster was bound".to_owned()),
    }
}

/// The name under which a unit variant is serialized.
pub(super) fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => format!("unknown ({error})"),
    }
}

fn objective(finding: &Finding) -> Objective {
    Objective {
        name: finding.name.clone(),
        kind: finding.kind.clone(),
        cluster: finding.cluster.clone(),
        verdict: finding.verdict,
        reason: finding.reason.clone(),
        unit: finding.unit,
        target: finding.target,
        observed: finding.observed,
        lower: finding.lower,
        upper: finding.upper,
        predicted: finding.predicted.as_ref().map(|text| Predicted {
            text: text.clone(),
            lower: None,
            upper: None,
            excludes: Vec::new(),
            reason: Some("the plan predicts in words".to_owned()),
        }),
        from: finding.from.as_ref().map(mark_ref),
        to: finding.to.as_ref().map(mark_ref),
        evidence: finding.evidence.clone(),
    }
}

fn mark_ref(mark: &FindingMark) -> MarkRef {
    MarkRef {
        mark: mark.name.clone(),
        lower_ns: MonoNs(mark.lower_ns),
        upper_ns: MonoNs(mark.upper_ns),
        source: mark.source.clone(),
    }
}

/// In order of time, those that were not reached last.
fn marks(input: &EvidenceInput, marks: &Marks, cluster: &str) -> Vec<Mark> {
    let mut marks: Vec<Mark> = marks.by_name.iter().map(|(name, m)| mark(input, cluster, name, m)).collect();
    marks.sort_by_key(|m| (m.mono_ns.is_none(), m.mono_ns));
    marks
}

fn mark(input: &EvidenceInput, cluster: &str, name: &str, marked: &Marked) -> Mark {
    let base = Mark {
        name: name.to_owned(),
        cluster: cluster.to_owned(),
        at: None,
        mono_ns: None,
        lower_ns: None,
        upper_ns: None,
        source: None,
        reason: None,
    };
    match marked {
        Ok(m) => {
            let middle = MonoNs(m.lower.0 + m.upper.since(m.lower) / 2);
            let at = wall_at(&input.journal, middle);
            Mark {
                reason: at.is_none().then(|| "no journal line to tell the wall time from".to_owned()),
                at,
                mono_ns: Some(middle),
                lower_ns: Some(m.lower),
                upper_ns: Some(m.upper),
                source: Some(m.source.clone()),
                ..base
            }
        }
        Err(reason) => Mark { reason: Some(reason.clone()), ..base },
    }
}

/// Wall time of a monotonic instant, counted from the last journal line before it
/// (or the first one), as that line's clocks stood.
fn wall_at(journal: &[Entry], mono: MonoNs) -> Option<WallTime> {
    let anchor = journal.iter().rev().find(|e| e.mono_ns <= mono).or_else(|| journal.first())?;
    let wall: jiff::Timestamp = anchor.at.0.parse().ok()?;
    let offset = i128::from(mono.0) - i128::from(anchor.mono_ns.0);
    let at = jiff::Timestamp::from_nanosecond(wall.as_nanosecond() + offset).ok()?;
    Some(WallTime(format!("{at:.6}")))
}

fn step(input: &EvidenceInput, planned: &PlannedStep) -> Step {
    let (kind, settings) = kind_and_settings(&planned.step);
    let mut started = None;
    let mut finished = None;
    let mut failed = None;
    for entry in &input.journal {
        match &entry.event {
            JournalEvent::StepStarted { step, .. } if *step == planned.index => started = Some(entry),
            JournalEvent::StepFinished { step } if *step == planned.index => finished = Some(entry),
            JournalEvent::StepFailed { step, reason } if *step == planned.index => {
                failed = Some((entry, reason.clone()));
            }
            _ => {}
        }
    }
    let done = finished.is_some();
    let end = finished.or(failed.as_ref().map(|(entry, _)| *entry));
    let took_ns = match (started, end) {
        (Some(s), Some(e)) if s.boot == e.boot => Some(e.mono_ns.since(s.mono_ns)),
        _ => None,
    };
    let reason = match (started, end, failed) {
        (_, _, Some((_, reason))) => Some(reason),
        (None, ..) => Some("the run ended before this step".to_owned()),
        (Some(_), None, _) => Some("the run ended during this step".to_owned()),
        (Some(_), Some(_), None) if took_ns.is_none() => Some("the machine was booted in between".to_owned()),
        _ => None,
    };
    Step {
        index: planned.index,
        kind,
        planned: settings,
        targets: planned.targets.iter().map(ToString::to_string).collect(),
        blast_radius: planned.fault.as_ref().map(|f| f.blast_radius.clone()),
        undo: planned.fault.as_ref().map(|f| f.undo.clone()),
        started: started.map(instant),
        finished: end.map(instant),
        took_ns,
        done,
        reason,
    }
}

/// Splits an externally tagged value into its tag and its settings.
fn kind_and_settings<T: serde::Serialize>(value: &T) -> (String, serde_json::Value) {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::Object(map)) => map.into_iter().next().unwrap_or_default(),
        Ok(other) => (other.to_string(), serde_json::Value::Null),
        Err(error) => (format!("unknown ({error})"), serde_json::Value::Null),
    }
}

fn deviations(input: &EvidenceInput) -> Vec<Deviation> {
    let mut out: Vec<Deviation> = Vec::new();
    for (key, value) in &input.plan.overrides {
        out.push(Deviation {
            at: None,
            what: format!("`{key}` was set to `{value}` on the command line (part of the plan digest)"),
        });
    }
    if let Some(profile) = &input.plan.profile {
        out.push(Deviation {
            at: None,
            what: format!("profile `{profile}`: timings are not the drill's real ones"),
        });
    }
    for entry in &input.journal {
        let what = match &entry.event {
            JournalEvent::RunAdopted { by, torn_bytes } => {
                format!(
                    "the runner was gone and `{by}` took over; {torn_bytes} bytes of a torn line put aside"
                )
            }
            JournalEvent::StepFailed { step, reason } => format!("step {step} failed: {reason}"),
            JournalEvent::WallClockStepped { step_ns } => {
                let sign = if *step_ns < 0 { '−' } else { '+' };
                let size = super::figure::duration(step_ns.unsigned_abs());
                format!("the wall clock was stepped by {sign}{size}; durations are not affected")
            }
            JournalEvent::RenewFailed { reason } => format!("the dead-man's lease was not renewed: {reason}"),
            JournalEvent::Interrupted { by } => format!("the run was ended early by {by}"),
            // An undo that a step of the plan asks for is the plan.
            JournalEvent::UndoStarted { cause, .. } if cause.starts_with("step ") => continue,
            JournalEvent::UndoStarted { injection, cause, .. } if cause == DEAD_MAN => {
                format!("the agent had undone {injection} by itself; it was asked to do so again")
            }
            JournalEvent::UndoStarted { injection, cause, .. } => {
                format!("undo of {injection} began, because of {cause}")
            }
            JournalEvent::UndoFailed { injection, reason } => format!("undo of {injection} failed: {reason}"),
            _ => continue,
        };
        out.push(Deviation { at: Some(instant(entry)), what });
    }
    out
}
