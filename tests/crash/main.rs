//! Runner, agent and `recover` are killed at every point where it matters, on a cluster
//! whose state is a file. What is asserted is that file and the evidence.

#[path = "../fake_provider/mod.rs"]
mod fake_provider;

mod bench;
mod frozen;
mod interrupted;
mod killed;
mod order;
mod parallel;
mod process;
mod storage;
mod stuck;
