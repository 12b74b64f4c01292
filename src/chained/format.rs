//! Which format versions of chained files are read: `<major>.<minor>`, any minor of the
//! same major.

/// What can be done with a file of some format version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compatibility {
    /// Everything in it is known.
    Known,
    /// It may hold kinds of events that this version does not know.
    NewerMinor,
    /// Another major version, or no version at all.
    Refused,
}

/// Compares the format version found in a file with the one that this version writes.
///
/// # Panics
/// When `ours` is not `<major>.<minor>`.
#[must_use]
pub fn compare(found: &str, ours: &str) -> Compatibility {
    let parse = |text: &str| -> Option<(u32, u32)> {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let ours = parse(ours).expect("the constant is major.minor");
    match parse(found) {
        Some((major, minor)) if major == ours.0 && minor > ours.1 => Compatibility::NewerMinor,
        Some((major, _)) if major == ours.0 => Compatibility::Known,
        _ => Compatibility::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minors_of_the_same_major_are_read_and_nothing_else() {
        for (found, expected) in [
            ("2.3", Compatibility::Known),
            ("2.0", Compatibility::Known),
            ("2.10", Compatibility::NewerMinor),
            ("1.9", Compatibility::Refused),
            ("3.0", Compatibility::Refused),
            ("2", Compatibility::Refused),
            ("", Compatibility::Refused),
        ] {
            assert_eq!(compare(found, "2.3"), expected, "{found}");
        }
    }
}
