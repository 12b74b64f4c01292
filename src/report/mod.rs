//! Reports: one model, one file per format.
