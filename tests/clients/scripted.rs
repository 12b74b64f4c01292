//! Clients against a server that answers as the test says: what each sends next, and that every
//! request it sent is in its history.

use super::bare_cluster::Pki;
use super::{acceptor, read_history};
use quakeproof::client::cas_updater::CasUpdater;
use quakeproof::client::context::{ClientContext, Setup};
use quakeproof::client::list_reader::{ListReader, ListResourceVersion};
use quakeproof::client::watcher::{InitialState, Watcher};
use quakeproof::clock::{Clock, SystemClock};
use quakeproof::component::ComponentId;
use quakeproof::component::network::{DirectDialer, Endpoint};
use quakeproof::drill::spec::Client;
use quakeproof::drill::values::Span;
use quakeproof::history::kind::ClientKind;
use quakeproof::history::record::{Event, Op, Outcome, Record};
use quakeproof::history::recorder::Recorder;
use quakeproof::ledger::Ledger;
use quakeproof::plan::{MinimumOperations, PlannedClient};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

/// What the server does with a request.
enum Reply {
    /// Status and body.
    Whole(u16, String),
    /// Lines of a stream, which stays open after them.
    Open(Vec<String>),
    /// Lines of a stream that ends in order.
    Lines(Vec<String>),
    /// The connection is closed without an answer.
    Hangs,
}

/// What a client asked for, in order, and its history.
struct Played {
    requests: Vec<String>,
    history: Vec<Record>,
}

impl Played {
    fn ops(&self) -> Vec<(&Op, &Outcome)> {
        let ops = self.history.iter();
        ops.filter_map(|r| if let Record::Op(op) = r { Some((&op.op, &op.outcome)) } else { None }).collect()
    }

    fn events(&self) -> Vec<&Event> {
        let events = self.history.iter();
        events.filter_map(|r| if let Record::Event(e) = r { Some(&e.event) } else { None }).collect()
    }
}

/// Lets a client play against the replies, in order, until the last one is given; then it is ended.
async fn play(kind: ClientKind, spec: Client, every: Option<Duration>, replies: Vec<Reply>) -> Played {
    let pki = Pki::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = acceptor(&pki);
    let requests = Arc::new(Mutex::new(Vec::new()));
    let replies = Arc::new(tokio::sync::Mutex::new(replies.into_iter()));
    let stop = CancellationToken::new();
    let (log, done) = (requests.clone(), stop.clone());
    let server = tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(socket).await else { continue };
            let (log, done, replies) = (log.clone(), done.clone(), replies.clone());
            tokio::spawn(async move {
                while let Some(request) = read_request(&mut stream).await {
                    let mut replies = replies.lock().await;
                    let Some(reply) = replies.next() else {
                        // Whatever is sent now comes after the end of the play.
                        return;
                    };
                    log.lock().unwrap().push(request);
                    let last = replies.len() == 0;
                    drop(replies);
                    if last {
                        let done = done.clone();
                        tokio::spawn(async move {
                            // The client takes the last answer in before it is ended.
                            tokio::time::sleep(Duration::from_millis(500)).await;
                            done.cancel();
                        });
                    }
                    if !answer(&mut stream, reply).await {
                        return;
                    }
                }
            });
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let setup = Setup {
        planned: PlannedClient {
            name: "player".to_owned(),
            kind,
            target: ComponentId("kube-apiserver-1".to_owned()),
            identity: "player".to_owned(),
            spec: Some(spec),
            every_ns: every.map(|every| every.as_nanos() as u64),
            minimum: MinimumOperations { before: 0, during: 0, after: 0 },
        },
        dialer: Arc::new(DirectDialer),
        endpoint: Endpoint { address, server_name: "127.0.0.1".to_owned(), ca_pem: pki.ca_pem.clone() },
        identity: pki.issue("player", None),
        ledger: Arc::new(Ledger::new()),
        namespace: "drill".to_owned(),
        seed: 42,
    };
    let context = ClientContext {
        setup,
        load: None,
        clock: clock.clone(),
        recorder: Recorder::create(dir.path(), "player", clock, unbounded_channel().0).unwrap(),
        signals: unbounded_channel().0,
        stop,
    };
    let client = quakeproof::runner::clients::spawn(context);
    tokio::time::timeout(Duration::from_secs(60), client).await.expect("the play comes to its end").unwrap();
    server.abort();
    let history = read_history(&dir.path().join("histories/player.jsonl"));
    let requests = requests.lock().unwrap().clone();
    Played { requests, history }
}

/// Method, path and query, and the body where there is one.
async fn read_request(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let length = head
        .lines()
        .find_map(|l| {
            l.to_ascii_lowercase().strip_prefix("content-length:").map(|n| n.trim().parse().unwrap())
        })
        .unwrap_or(0);
    while bytes.len() < head_end + length {
        stream.read_buf(&mut bytes).await.ok()?;
    }
    let line = head.lines().next()?.trim_end_matches(" HTTP/1.1").to_owned();
    Some(format!("{line} {}", String::from_utf8_lossy(&bytes[head_end..])).trim_end().to_owned())
}

/// Whether the connection can take another request.
async fn answer(stream: &mut (impl tokio::io::AsyncWrite + Unpin), reply: Reply) -> bool {
    let (lines, ends) = match reply {
        Reply::Hangs => return false,
        Reply::Whole(status, body) => {
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            return true;
        }
        Reply::Open(lines) => (lines, false),
        Reply::Lines(lines) => (lines, true),
    };
    let mut text = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    // All in one chunk: clients must take them apart.
    let body: String = lines.into_iter().map(|line| line + "\n").collect();
    if !body.is_empty() {
        text.push_str(&format!("{:x}\r\n{body}\r\n", body.len()));
    }
    if ends {
        text.push_str("0\r\n\r\n");
    }
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    if !ends {
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    ends
}

fn object(name: &str, revision: u64) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","resourceVersion":"{revision}"}}}}"#
    )
}

fn list(revision: u64, names: &[&str]) -> Reply {
    let items: Vec<String> = names.iter().map(|name| object(name, 1)).collect();
    let items = items.join(",");
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMapList","metadata":{{"resourceVersion":"{revision}"}},"items":[{items}]}}"#
    );
    Reply::Whole(200, text)
}

fn line(kind: &str, object: &str) -> String {
    format!(r#"{{"type":"{kind}","object":{object}}}"#)
}

fn bookmark(revision: u64) -> String {
    line("BOOKMARK", &object("", revision))
}

fn refusal(code: u16, reason: &str, cause: &str) -> Reply {
    Reply::Whole(code, status(code, reason, cause))
}

fn status(code: u16, reason: &str, cause: &str) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"m","reason":"{reason}",
        "details":{{"causes":[{{"reason":"{cause}","message":"c"}}]}},"code":{code}}}"#
    )
    .replace('\n', "")
}

const MAPS: &str = "/api/v1/namespaces/drill/configmaps";

#[tokio::test]
async fn a_list_at_the_last_revision_says_so_and_starts_over_when_that_is_too_large() {
    let spec = Client::ListReader(ListReader {
        name: "player".to_owned(),
        every: Span::millis(10),
        resource_version: ListResourceVersion::LastSeen,
        limit: None,
    });
    let replies = vec![
        list(9, &["ledger-1"]),
        refusal(504, "Timeout", "ResourceVersionTooLarge"),
        list(4, &[]),
        refusal(429, "TooManyRequests", ""),
        refusal(410, "Expired", ""),
        list(7, &[]),
    ];
    let played = play(ClientKind::ListReader, spec, Some(Duration::from_millis(10)), replies).await;
    let at =
        |revision: u64| format!("GET {MAPS}?resourceVersion={revision}&resourceVersionMatch=NotOlderThan");
    let plain = format!("GET {MAPS}");
    assert_eq!(played.requests, [plain.clone(), at(9), plain.clone(), at(4), at(4), plain]);
    let classes: Vec<&str> = played
        .ops()
        .iter()
        .filter_map(
            |(_, o)| if let Outcome::Failed { reason, .. } = o { Some(reason.as_str()) } else { None },
        )
        .collect();
    assert_eq!(classes[..3], ["too-large-resource-version", "too-many-requests", "gone"]);
}

#[tokio::test]
async fn an_updater_goes_on_with_what_it_holds_until_it_is_refused() {
    let spec =
        Client::CasUpdater(CasUpdater { name: "player".to_owned(), every: Span::millis(10), objects: 1 });
    let prefix = "000000000000002a-player-";
    let found = format!(
        r#"{{"metadata":{{"name":"cas-player-0","resourceVersion":"3"}},"data":{{"value":"{prefix}1"}}}}"#
    );
    let replies = vec![
        Reply::Whole(201, object("cas-player-0", 5)),
        Reply::Whole(200, object("cas-player-0", 6)),
        Reply::Hangs,
        refusal(500, "InternalError", ""),
        refusal(409, "Conflict", ""),
        Reply::Whole(200, found),
        Reply::Whole(200, object("cas-player-0", 8)),
    ];
    let played = play(ClientKind::CasUpdater, spec, Some(Duration::from_millis(10)), replies).await;
    let asked: Vec<(&str, Option<u64>)> = played
        .requests
        .iter()
        .map(|r| {
            let held = r.split_once(r#""resourceVersion":""#).map(|(_, rest)| rest);
            (r.split(' ').next().unwrap(), held.map(|h| h.split('"').next().unwrap().parse().unwrap()))
        })
        .collect();
    let put = |held| ("PUT", Some(held));
    assert_eq!(asked, [("POST", None), put(5), put(6), put(6), put(6), ("GET", None), put(3)]);
    let values: std::collections::BTreeSet<&str> =
        played.requests.iter().filter_map(|r| r.split_once(prefix).map(|(_, rest)| rest)).collect();
    assert_eq!(values.len(), 6, "every write has a value of its own: {:?}", played.requests);
    let ops = played.ops();
    assert_eq!(*ops[2].1, Outcome::Unknown { reason: "connection-lost".to_owned() });
    assert_eq!(*ops[4].1, Outcome::Failed { status: Some(409), reason: "conflict".to_owned() });
    assert!(
        matches!(ops[5], (Op::CasRead { object: 0 }, Outcome::Ok(a)) if a.value == Some(1) && !a.wrong_value)
    );
    assert!(matches!(ops[6].0, Op::CasUpdate { object: 0, held: 3, .. }));
}

#[tokio::test]
async fn a_watcher_goes_on_from_a_bookmark_and_lists_where_initial_events_are_refused() {
    let spec = Client::Watcher(Watcher {
        name: "player".to_owned(),
        bookmarks: true,
        initial: InitialState::WatchList,
        ..Watcher::default()
    });
    let replies = vec![
        refusal(422, "Invalid", ""),
        list(5, &["ledger-1"]),
        Reply::Lines(vec![line("ADDED", &object("ledger-2", 6)), bookmark(9)]),
        Reply::Open(vec![line("ADDED", &object("ledger-3", 11))]),
    ];
    let played = play(ClientKind::Watcher, spec, None, replies).await;
    assert!(played.requests[0].contains("sendInitialEvents=true"), "{:?}", played.requests);
    assert_eq!(played.requests[1], format!("GET {MAPS}"));
    for (request, from) in [(2, 5), (3, 9)] {
        assert!(
            played.requests[request].contains(&format!("&resourceVersion={from}&")),
            "{:?}",
            played.requests
        );
    }
    assert_eq!(played.ops().len(), 4);
    assert_eq!(played.events()[1], &Event::Bookmark { revision: 9, initial_events_end: false });
}

#[tokio::test]
async fn initial_events_count_from_the_bookmark_that_ends_them() {
    let spec =
        Client::Watcher(Watcher { initial: InitialState::WatchList, bookmarks: true, ..Watcher::default() });
    let last = r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"8",
        "annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    let replies = vec![
        // Broken off before it was through: it must begin anew.
        Reply::Lines(vec![line("ADDED", &object("ledger-1", 2))]),
        Reply::Lines(vec![line("ADDED", &object("ledger-1", 2)), last.replace('\n', "")]),
        Reply::Open(vec![]),
    ];
    let played = play(ClientKind::Watcher, spec, None, replies).await;
    assert!(played.requests[1].contains("sendInitialEvents=true"), "{:?}", played.requests);
    assert!(played.requests[2].contains("resourceVersion=8&"), "{:?}", played.requests);
}

#[tokio::test]
async fn every_request_of_the_reflector_is_recorded_and_so_is_what_its_store_holds() {
    let gone = line("ERROR", &status(410, "Expired", ""));
    let replies = vec![
        list(5, &["ledger-1", "other"]),
        Reply::Lines(vec![
            line("ADDED", &object("ledger-2", 6)),
            bookmark(7),
            line("DELETED", &object("ledger-1", 8)),
        ]),
        refusal(429, "TooManyRequests", ""),
        Reply::Open(vec![gone]),
        list(3, &["ledger-7"]),
        Reply::Open(vec![line("ADDED", &object("ledger-8", 4))]),
    ];
    let spec = Client::Reflector(quakeproof::client::reflector::Reflector { name: "player".to_owned() });
    let played = play(ClientKind::Reflector, spec, None, replies).await;
    // One record for each request, in order.
    assert_eq!(played.ops().len(), played.requests.len(), "{:?}", played.requests);
    let kinds: Vec<bool> = played.ops().iter().map(|(op, _)| matches!(op, Op::Watch { .. })).collect();
    assert_eq!(kinds, [false, true, true, true, false, true]);
    let froms: Vec<u64> = played
        .ops()
        .iter()
        .filter_map(|(op, _)| if let Op::Watch { from, .. } = op { Some(*from) } else { None })
        .collect();
    assert_eq!(froms, [5, 8, 8, 3], "kube goes on from the last event, and lists anew after a 410");
    let store = |ids: &[u64], revision| Event::Store { ids: ids.iter().copied().collect(), revision };
    let expected = [
        store(&[1], Some(5)),
        Event::Put { id: 2, revision: 6 },
        Event::Bookmark { revision: 7, initial_events_end: false },
        Event::Delete { id: 1, revision: 8 },
        Event::Ended { reason: "eof".to_owned() },
        Event::Error { code: 410, message: "m".to_owned() },
        store(&[7], Some(3)),
        Event::Put { id: 8, revision: 4 },
        Event::Ended { reason: "stopped".to_owned() },
    ];
    assert_eq!(played.events(), expected.iter().collect::<Vec<_>>());
}
