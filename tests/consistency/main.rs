//! Histories of one store: the checker against brute force on small random ones,
//! against recorded real ones and their broken twins, and against porcupine.

mod brute;
#[path = "../checkers/world.rs"]
#[allow(dead_code, reason = "the world is shared with the tests of the other checkers")]
mod world;

mod epochs;
mod objective;
mod orders;
mod porcupine;
mod properties;
mod random;
mod recorded;
#[path = "../support/recorded_run.rs"]
mod recorded_run;
mod restored;
#[path = "../support/skip.rs"]
mod skip;
mod speed;
mod streams;
mod told;
