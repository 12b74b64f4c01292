//! What is proven to be impossible, and the records that prove it.

use std::cmp::Ordering;

/// A rule that every history of the store obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Two writes took effect at one revision.
    RevisionUsedTwice,
    /// A later operation got a revision that is not higher.
    RevisionOrder,
    /// A read of one object fits no state between its call and its return.
    Read,
    /// A read of all objects is not the state at its revision.
    Range,
    /// The outcome of a conditional write contradicts the state it met.
    Condition,
    /// An object that nobody is on record to have written.
    Unwritten,
    /// A value that nobody wrote.
    WrongValue,
    /// A value that the restore lost was read after it.
    LostValue,
    /// No order of an object's operations explains their outcomes.
    NoOrder,
    /// A client saw the revision go back.
    WentBack,
    /// A watch delivered events out of order, twice, or below its start or a bookmark.
    WatchOrder,
    /// A watch left an event out.
    WatchMissed,
}

impl Rule {
    /// What is wrong, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::RevisionUsedTwice => "a revision of two writes",
            Self::RevisionOrder => "a revision out of order",
            Self::Read => "a read that no state explains",
            Self::Range => "a read that is not the state at its revision",
            Self::Condition => "a conditional write against the state",
            Self::Unwritten => "an object that nobody wrote",
            Self::WrongValue => "a value that nobody wrote",
            Self::LostValue => "a read of a lost value",
            Self::NoOrder => "outcomes that no order explains",
            Self::WentBack => "a revision that went back for a client",
            Self::WatchOrder => "a watch out of order",
            Self::WatchMissed => "an event missing in a live watch",
        }
    }
}

/// One thing that can't have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule that it breaks.
    pub rule: Rule,
    /// Epoch, counted from 1.
    pub epoch: usize,
    /// The object, where it is about one.
    pub key: Option<u64>,
    /// When it was complete: the return of the last record that proves it.
    pub at: u64,
    /// What happened, in words.
    pub what: String,
    /// The records that prove it, in order of time; none can be left out.
    pub records: Vec<String>,
}

impl Violation {
    /// Earliest first, so that the first is the closest to the cause.
    #[must_use]
    pub fn by_time(&self, other: &Self) -> Ordering {
        (self.at, self.rule, self.key, &self.records).cmp(&(other.at, other.rule, other.key, &other.records))
    }
}
