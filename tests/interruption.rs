//! Drills on the real binaries that are cut off: by signals, by `abort`, by the death of any
//! process, by a full disk. Nothing stays faulted, and the evidence says what happened.
#![cfg(target_os = "linux")]

#[path = "interruption/cut.rs"]
mod cut;
#[path = "interruption/drills.rs"]
mod drills;
#[path = "interruption/jailed.rs"]
mod jailed;
#[path = "interruption/killed.rs"]
mod killed;
#[path = "cluster/lab.rs"]
#[allow(dead_code, reason = "tests of the embedded cluster look at more of the machine")]
mod lab;
#[path = "interruption/processes.rs"]
mod processes;
#[path = "interruption/refused.rs"]
mod refused;
#[path = "interruption/secrets.rs"]
mod secrets;
#[path = "support/skip.rs"]
mod skip;
#[path = "interruption/space.rs"]
mod space;
#[path = "interruption/truth.rs"]
mod truth;
#[path = "interruption/unfit.rs"]
mod unfit;
