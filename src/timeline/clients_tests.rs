use super::super::small::{answered, failed, list, log, op, page};
use super::*;
use crate::history::record::Answer;

fn whole(pages: Vec<Record>) -> Result<(u64, Vec<u64>), String> {
    let log = log(ClientKind::ListReader, pages);
    let listing = log.listings().remove(0);
    match (&listing.result, listing.complete()) {
        (_, Some((revision, ids))) => Ok((revision, ids.iter().copied().collect())),
        (ListResult::Unobserved(why), None) => Err(why.clone()),
        (_, None) => {
            assert!(listing.unfinished());
            Err("unfinished".to_owned())
        }
    }
}

#[test]
fn pages_make_up_a_list_only_in_their_order_and_until_one_is_the_last() {
    let first = || page(10, 11, (1, 0), 5, &[1], true);
    let second = |more| page(12, 13, (1, 1), 5, &[2], more);
    let third = || page(14, 15, (1, 2), 5, &[3], false);
    let torn = || Err("pages are missing or out of order".to_owned());
    assert_eq!(whole(vec![first(), second(true), third()]), Ok((5, vec![1, 2, 3])));
    assert_eq!(whole(vec![first(), second(true)]), Err("unfinished".to_owned()));
    assert_eq!(whole(vec![first(), third()]), torn(), "one is missing");
    let headless = Err("the first page is not in the history".to_owned());
    assert_eq!(whole(vec![page(12, 13, (1, 1), 5, &[2], false)]), headless, "the first one is");
    assert_eq!(whole(vec![first(), second(false), third()]), torn(), "one comes after the last");
    assert_eq!(whole(vec![first(), second(true), third(), third()]), torn());
    let torn_by_revision = Err("pages are of revisions 5 and 6".to_owned());
    assert_eq!(whole(vec![first(), page(12, 13, (1, 1), 6, &[2], false)]), torn_by_revision);
}

#[test]
fn a_list_is_unfinished_only_while_more_is_to_follow() {
    let unfinished = |pages| log(ClientKind::ListReader, pages).listings()[0].unfinished();
    assert!(unfinished(vec![page(10, 11, (1, 0), 5, &[1], true)]));
    assert!(!unfinished(vec![list(10, 11, 5, &[1])]));
    assert!(!unfinished(vec![page(10, 11, (1, 0), 5, &[1], true), page(12, 13, (1, 1), 5, &[], false)]));
    let gap = vec![page(10, 11, (1, 0), 5, &[1], true), page(12, 13, (1, 2), 5, &[3], true)];
    assert!(!unfinished(gap), "of pages that are not in order none says what is to follow");
    assert!(!unfinished(vec![page(10, 11, (1, 1), 5, &[2], false)]));
    let no_page = |outcome| {
        vec![op(10, 11, Op::List { list: 1, page: 0, resource_version: None, limit: None }, outcome)]
    };
    let silent = Outcome::Unknown { reason: "timeout".to_owned() };
    for outcome in [answered(5), failed(500), silent] {
        assert!(!unfinished(no_page(outcome.clone())), "{outcome:?}");
    }
}

#[test]
fn a_history_is_read_up_to_its_first_record_of_another_boot() {
    let planned = log(ClientKind::GetReader, Vec::new()).planned;
    let read = |boots: &[&str], boot: Option<&str>| {
        let get = |boot: &&str| {
            let Record::Op(op) = op(1, 2, Op::Get { id: 1 }, Outcome::Ok(Answer::default())) else {
                unreachable!()
            };
            Record::Op(OpRecord { boot: BootId((*boot).to_owned()), ..op })
        };
        let histories = [(planned.name.clone(), boots.iter().map(get).collect())].into();
        let boot = boot.map(|boot| BootId(boot.to_owned()));
        let log = ClientLog::of(&histories, planned, boot.as_ref());
        (log.records.len(), log.cut)
    };
    let cut = |line| {
        Some(format!("from line {line} on the history of GetReader is from another boot than the fault"))
    };
    assert_eq!(read(&["a", "a"], Some("a")), (2, None));
    assert_eq!(read(&["a", "b", "a", "b"], Some("a")), (1, cut(2)));
    assert_eq!(read(&["b", "a"], Some("a")), (0, cut(1)));
    assert_eq!(read(&["a"], None), (0, cut(1)), "nothing to compare with");
}
