//! What a snapshot's file name claims.

/// The revision that a file's name claims, as in `snap-rev-1234.db`, `etcd_revision=7`, `r-rev12`.
#[must_use]
pub fn claimed_revision(file_name: &str) -> Option<i64> {
    let name = file_name.to_ascii_lowercase();
    name.match_indices("rev").find_map(|(at, _)| {
        let begins_word = !name[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let rest = name[at..].strip_prefix("revision").unwrap_or(&name[at + 3..]);
        let rest = rest.trim_start_matches(['-', '_', '=', '.', ':']);
        let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
        if begins_word { digits.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_claims_a_revision_or_nothing() {
        for (name, revision) in [
            ("snap-rev-1234.db", Some(1234)),
            ("etcd_revision=7", Some(7)),
            ("REV12.snapshot", Some(12)),
            ("backup.rev.5.db", Some(5)),
            ("snapshot-20261129.db", None),
            ("prev-12.db", None),
            ("rev-a.db", None),
            ("rev-99999999999999999999.db", None),
            ("rev\u{e9}vü-1", None),
            ("", None),
        ] {
            assert_eq!(claimed_revision(name), revision, "{name}");
        }
    }
}
