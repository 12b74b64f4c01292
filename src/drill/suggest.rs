//! "Did you mean …?"

/// The candidate that `wrong` was most likely meant to be. Case, `-` and `_` don't count.
pub(super) fn closest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |t: &str| t.replace(['-', '_'], "").to_lowercase();
    let wrong = plain(wrong);
    if wrong.is_empty() || wrong.len() > 100 {
        return None;
    }
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&wrong, &plain(c)), c))
        .filter(|(distance, c)| {
            *distance <= (c.len().min(wrong.len()) / 3).max(1) || cut_short(&wrong, &plain(c))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// A long word whose end is missing: Jaro-Winkler favours a common beginning.
fn cut_short(wrong: &str, right: &str) -> bool {
    wrong.len() >= 6 && strsim::jaro_winkler(wrong, right) > 0.9
}

/// `did you mean …?` if anything is close, then all that is allowed.
pub(crate) fn hint(wrong: &str, what: &str, candidates: &[&str]) -> Option<String> {
    if candidates.is_empty() {
        return None;
    }
    let all = candidates.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ");
    Some(match closest(wrong, candidates.iter().copied()) {
        Some(best) => format!("did you mean `{best}`? {what}: {all}"),
        None => format!("{what}: {all}"),
    })
}

/// All of them in a sentence: "`a`, `b` or `c`".
pub(super) fn or(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::{closest, or};

    #[test]
    fn names_are_told_apart_in_a_sentence() {
        assert_eq!(or(&["a"]), "`a`");
        assert_eq!(or(&["a", "b"]), "`a` or `b`");
        assert_eq!(or(&["a", "b", "c"]), "`a`, `b` or `c`");
    }

    #[test]
    fn slips_and_other_spellings_are_recognised_and_strangers_are_not() {
        let steps = ["takeSnapshot", "hold", "loseEtcd", "restoreSnapshot", "observe"];
        assert_eq!(closest("looseEtcd", steps), Some("loseEtcd"));
        assert_eq!(closest("take-snapshot", steps), Some("takeSnapshot"));
        assert_eq!(closest("hodl", steps), Some("hold"));
        assert_eq!(closest("podKill", steps), None);
        assert_eq!(closest("revisionPased", ["revisionPassedLost", "apiReady"]), Some("revisionPassedLost"));
    }
}
