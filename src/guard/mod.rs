//! Guards: nothing destructive without a lock, an allowed target and a blast radius within limits.
