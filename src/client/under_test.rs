//! What a client under test is to the rest of the tool. Each kind has a file of its own: its spec, what it needs of a
//! drill, and what it does.

use super::context::ClientContext;
use crate::component::ComponentId;
use crate::drill::lint::{Lint, Place};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
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

/// When a client works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Works {
    /// As its rules have it: one operation follows from another.
    ByItsRules,
    /// So often, as the drill says under `every`.
    Every(Span),
    /// So often, as the drill says under another key.
    Fixed(Duration),
    /// When a step of the drill begins it; its own checker counts what it did.
    ByStep,
}

/// What a plan has to know of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About<'a> {
    /// Name in the drill.
    pub name: &'a str,
    /// As its history has it.
    pub kind: ClientKind,
    /// What it is connected to.
    pub talks_to: TalksTo<'a>,
    /// When it works.
    pub works: Works,
}

impl About<'_> {
    /// Time between two operations; `None`: they come as they come.
    #[must_use]
    pub fn every(&self) -> Option<Duration> {
        match self.works {
            Works::Every(every) => Some(every.0),
            Works::Fixed(every) => Some(every),
            Works::ByItsRules | Works::ByStep => None,
        }
    }
}

/// A kind of client of a drill.
pub trait ClientUnderTest {
    /// What a plan has to know of it.
    fn about(&self) -> About<'_>;
    /// Values out of their range (that of `every` is looked at for all), and what it needs of the drill.
    fn lint(&self, _: &mut Lint<'_>, _: &Place) {}
    /// Starts it.
    fn run(&self, ctx: ClientContext) -> Running;
}
