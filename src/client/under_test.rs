//! What a client under test is to the rest of the tool. Each kind has a file of its own: its spec, what it needs of a
//! drill, and what it does.

use super::context::ClientContext;
use crate::component::ComponentId;
use crate::drill::lint::{Lint, Place};
use crate::history::record::ClientKind;
use futures::future::BoxFuture;
use std::time::Duration;

/// A client at work. It ends when [`ClientContext::stop`] is cancelled, and has closed its history then.
pub type Running = BoxFuture<'static, ()>;

/// What a client is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TalksTo<'a> {
    /// An API server; clients are dealt out to them one after the other.
    ApiServer,
    /// This API server.
    Named(&'a ComponentId),
    /// The first etcd member.
    Etcd,
}

/// A kind of client of a drill.
pub trait ClientUnderTest {
    /// Name in the drill.
    fn name(&self) -> &str;
    /// As its history has it.
    fn history_kind(&self) -> ClientKind;
    /// What it is connected to.
    fn talks_to(&self) -> TalksTo<'_>;
    /// Time between two operations; `None`: they come as they come.
    fn every(&self) -> Option<Duration> {
        None
    }
    /// It begins with a step of the drill, and its own checker counts what it did.
    fn is_begun_by_a_step(&self) -> bool {
        false
    }
    /// Values out of their range, and what it needs of the drill.
    fn lint(&self, _: &mut Lint<'_>, _: &Place) {}
    /// Starts it.
    fn run(&self, ctx: ClientContext) -> Running;
}
