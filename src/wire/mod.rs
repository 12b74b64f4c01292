//! How one component is spoken to: a connection, requests without retries, the JSON of answers, and why there was none.

pub mod connection;
pub mod failure;
pub mod http;
pub mod objects;
