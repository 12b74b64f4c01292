//! The runner carries out a plan; the dispatcher alone writes the journal.
