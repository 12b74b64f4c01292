//! When operations are due, how requests of a load are sent, and the account of what was not sent in time.

pub mod arrivals;
pub mod connections;
pub mod exchange;
pub mod pacer;
pub mod retries;
pub mod sender;
pub mod timing;
