//! Reports: one model, one file per format; [`prepare`] is the way in.
//!
//! Every format is a pure function of the evidence and the judgement: the same
//! input gives the same bytes, on any machine, in any year.

mod advice;
mod build;
mod faults;
pub mod figure;
pub mod history;
mod holder_tables;
pub mod html;
pub mod json;
pub mod junit;
mod ladder;
mod level_tables;
pub mod markdown;
pub mod model;
pub mod openmetrics;
mod prepared;
mod quote;
mod sentence;
mod tables;
pub mod terminal;

pub use model::{JUDGE, Report};
pub use prepared::{Prepared, prepare};
