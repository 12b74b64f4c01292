//! Exit codes, the part of the command line that CI systems rely on.

/// What a command tells its caller through the process exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Every objective met, or the command did what it was asked.
    Ok = 0,
    /// An objective was missed.
    Missed = 1,
    /// Not enough was observed to tell.
    Inconclusive = 2,
    /// The drill or the command line is wrong.
    Usage = 3,
    /// Something is left faulted: an undo failed.
    Faulted = 4,
    /// Refused by a guard or a preflight check; nothing was harmed.
    Refused = 5,
    /// Evidence is invalid.
    Invalid = 6,
    /// A bug in quakeproof.
    Internal = 70,
    /// Interrupted, everything reverted.
    Interrupted = 130,
}

impl ExitCode {
    /// Most alarming first: decides the code of a call that ran several drills.
    const WORST_FIRST: [ExitCode; 8] = [
        ExitCode::Faulted,
        ExitCode::Internal,
        ExitCode::Invalid,
        ExitCode::Missed,
        ExitCode::Inconclusive,
        ExitCode::Refused,
        ExitCode::Usage,
        ExitCode::Interrupted,
    ];

    /// The code of a call whose parts ended with `codes`: the first of
    /// 4, 70, 6, 1, 2, 5, 3, 130 that occurred, else 0.
    #[must_use]
    pub fn merge(codes: &[ExitCode]) -> ExitCode {
        Self::WORST_FIRST.into_iter().find(|c| codes.contains(c)).unwrap_or(ExitCode::Ok)
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        std::process::ExitCode::from(code as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::ExitCode::{self, *};

    #[test]
    fn several_drills_merge_to_the_most_alarming_code() {
        assert_eq!(ExitCode::merge(&[Ok, Missed, Faulted]), Faulted);
        assert_eq!(ExitCode::merge(&[Inconclusive, Missed]), Missed);
        assert_eq!(ExitCode::merge(&[Refused, Inconclusive]), Inconclusive);
        assert_eq!(ExitCode::merge(&[Ok, Ok]), Ok);
        assert_eq!(ExitCode::merge(&[]), Ok);
    }
}
