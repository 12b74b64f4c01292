//! When operations are due, and the account of those that were not sent in time.

pub mod arrivals;
pub mod pacer;
