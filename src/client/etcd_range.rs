//! One reading of etcd's own state of the ledger, recorded.

use super::session::{Broken, Session};
use crate::clock::MonoNs;
use crate::etcd::client::{EtcdClient, Range};
use crate::etcd::registry::ledger_id;
use crate::history::record::{Answer, Op, Outcome};
use crate::wire::http::stopped;
use std::time::Duration;

/// A range later than this is none.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// Reads and records every ledger object as of now. Returns the revision, `None` when there was no answer.
///
/// # Errors
/// When the history can't be written.
pub async fn range(
    session: &mut Session,
    etcd: &mut EtcdClient,
    prefix: &str,
    due: Option<MonoNs>,
) -> Result<Option<u64>, Broken> {
    let (timing, result) = session.timed(due, etcd.range(prefix, None, DEADLINE)).await;
    let mut revision = None;
    let outcome = match result {
        None => stopped(),
        Some(Ok(range)) => {
            revision = Some(range.header.revision);
            Outcome::Ok(answer_of(&range))
        }
        Some(Err(failure)) => Outcome::Failed { status: None, reason: failure.class.to_string() },
    };
    session.op(timing, Op::EtcdRange { revision: None }, outcome)?;
    Ok(revision)
}

/// The parts of a range that judging needs; objects in ascending order of their id.
fn answer_of(range: &Range) -> Answer {
    let mut objects: Vec<(u64, u64)> =
        range.keys.iter().filter_map(|key| Some((ledger_id(&key.key)?, key.mod_revision))).collect();
    objects.sort_unstable();
    Answer {
        revision: Some(range.header.revision),
        objects: Some(objects),
        raft_term: Some(range.header.raft_term),
        member: Some(range.header.member_hex()),
        ..Answer::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::client::{Header, Key};

    #[test]
    fn the_truth_lists_ledger_objects_by_id_with_their_revisions() {
        let key = |name: &str, revision| Key {
            key: format!("/registry/configmaps/n/{name}").into_bytes(),
            create_revision: revision,
            mod_revision: revision,
        };
        let header = Header { revision: 30, raft_term: 2, member: 0xab };
        let keys = vec![key("ledger-10", 20), key("ledger-9", 19), key("ledger-book", 21)];
        let answer = answer_of(&Range { header, keys });
        assert_eq!(answer.objects, Some(vec![(9, 19), (10, 20)]));
        assert_eq!((answer.revision, answer.member.as_deref()), (Some(30), Some("ab")));
    }
}
