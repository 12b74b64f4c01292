//! Objectives of flow control, one file each, and what they rest on: requests by what became of them, what API
//! servers counted, and how full queues were.

pub mod accounting;
pub mod facts;
pub mod fill;
pub mod latency;
pub mod lease;
pub mod outcomes;
pub mod requests;
pub mod retries;
mod servers;
pub mod success;
pub mod watch;

use super::Judge;
use crate::clock::MonoNs;
use crate::fault::apf_level::ApfLevel;
use crate::step::injection_id;
use crate::timeline::boundaries::FaultSpan;

/// The fault that holds up a client.
fn holding_up<'j>(judge: &'j Judge, client: &str) -> Option<&'j FaultSpan> {
    let of = |(_, level): &(usize, &ApfLevel)| level.clients.iter().any(|name| name == client);
    let (step, _) = requests::drill_levels(judge.input).find(of)?;
    let planned = judge.input.plan.steps.get(step)?;
    let id = injection_id(planned);
    judge.boundaries().faults.iter().find(|fault| fault.injection == id)
}

/// From when a client was surely held up, until when surely.
fn in_force(judge: &Judge, client: &str) -> Option<(MonoNs, MonoNs)> {
    let fault = holding_up(judge, client)?;
    Some((fault.verified.as_ref()?.mono_ns, fault.ended.as_ref()?.mono_ns))
}
