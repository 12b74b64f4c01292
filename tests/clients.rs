//! Every client against a real API server and a real etcd: what they record
//! agrees with etcd while nothing is wrong, and shows what a restore does to them.

#[path = "clients/aba.rs"]
mod aba;
#[path = "support/bare_cluster.rs"]
mod bare_cluster;
#[path = "clients/scripted.rs"]
mod scripted;

use bare_cluster::{API_SERVER, BareCluster, ETCD, Pki, eventually};
use hyper::Method;
use quakeproof::agent::view::{ClusterView as _, Look};
use quakeproof::client::cas_updater::CasUpdater;
use quakeproof::client::context::{ClientContext, ClientSignal, Sample, Setup};
use quakeproof::client::etcd_watcher::EtcdWatcher;
use quakeproof::client::get_reader::GetReader;
use quakeproof::client::ledger_writer::{LedgerWriter, MAX_OUT};
use quakeproof::client::list_reader::{ListReader, ListResourceVersion};
use quakeproof::client::reflector::Reflector;
use quakeproof::client::watcher::{InitialState, Watcher};
use quakeproof::clock::{Clock, MonoNs, SystemClock};
use quakeproof::component::ComponentId;
use quakeproof::component::network::{DirectDialer, Endpoint};
use quakeproof::drill::spec::Client;
use quakeproof::drill::values::{Rate, Span};
use quakeproof::history::kind::ClientKind;
use quakeproof::history::record::{Answer, Event, EventRecord, Op, OpRecord, Outcome, Record};
use quakeproof::history::recorder::Recorder;
use quakeproof::ledger::Ledger;
use quakeproof::plan::{MinimumOperations, PlannedClient};
use quakeproof::probe::steady::{check_api_ready, check_write_succeeds};
use quakeproof::provider::live_view::LiveView;
use quakeproof::wire::failure::FailureClass;
use quakeproof::wire::http::{HttpClient, HttpFailure};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "drill";
const SEED: u64 = 42;
const BUMP: u64 = 1_000_000_000;
/// Clients that list, and clients that watch, through the API server.
const LISTS: [&str; 4] = ["list-unset", "list-zero", "list-pages", "list-last-seen"];
const WATCHES: [&str; 4] = ["watch", "watch-bookmarks", "watch-list", "reflector"];

/// Clients that run against a cluster until stopped.
struct Load {
    ledger: Arc<Ledger>,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    signals: UnboundedReceiver<ClientSignal>,
    told: Vec<ClientSignal>,
    dir: tempfile::TempDir,
}

impl Load {
    async fn start(cluster: &BareCluster) -> Self {
        let namespace =
            serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let body = namespace.to_string().into();
        let made =
            cluster.http().send(Method::POST, "/api/v1/namespaces", Some(body), Duration::from_secs(5)).await;
        assert_eq!(made.unwrap().status, 201);

        let (signal_tx, signals) = unbounded_channel();
        let ledger = Arc::new(Ledger::new());
        let stop = CancellationToken::new();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let dir = tempfile::tempdir().unwrap();
        let list = |resource_version, limit| {
            let every = Span::millis(200);
            Some(Client::ListReader(ListReader { name: String::new(), every, resource_version, limit }))
        };
        let writer = LedgerWriter { name: String::new(), rate: Rate(50) };
        let bookmarks = Watcher { bookmarks: true, timeout: Some(Span::secs(8)), ..Watcher::default() };
        let initial_events =
            Watcher { bookmarks: true, initial: InitialState::WatchList, ..Watcher::default() };
        let swapper = CasUpdater { name: String::new(), every: Span::millis(100), objects: 5 };
        let getter = GetReader { name: String::new(), every: Span::millis(50) };
        let reflector = Reflector { name: String::new() };
        let etcd_watch = EtcdWatcher { name: String::new() };
        let kinds = [
            ("writer", ClientKind::LedgerWriter, Some(Client::LedgerWriter(writer)), None),
            ("getter", ClientKind::GetReader, Some(Client::GetReader(getter)), Some(50)),
            ("list-unset", ClientKind::ListReader, list(ListResourceVersion::Unset, None), Some(200)),
            ("list-zero", ClientKind::ListReader, list(ListResourceVersion::Zero, None), Some(200)),
            ("list-pages", ClientKind::ListReader, list(ListResourceVersion::Unset, Some(50)), Some(200)),
            ("list-last-seen", ClientKind::ListReader, list(ListResourceVersion::LastSeen, None), Some(200)),
            ("watch", ClientKind::Watcher, Some(Client::Watcher(Watcher::default())), None),
            ("watch-bookmarks", ClientKind::Watcher, Some(Client::Watcher(bookmarks)), None),
            ("watch-list", ClientKind::Watcher, Some(Client::Watcher(initial_events)), None),
            ("reflector", ClientKind::Reflector, Some(Client::Reflector(reflector)), None),
            ("swapper", ClientKind::CasUpdater, Some(Client::CasUpdater(swapper)), Some(100)),
            ("etcd-watch", ClientKind::EtcdWatcher, Some(Client::EtcdWatcher(etcd_watch)), None),
            ("truth", ClientKind::EtcdTruth, None, Some(250)),
            ("ready", ClientKind::ApiReady, None, Some(100)),
            ("lease-kube-scheduler", ClientKind::LeaderLease, None, Some(200)),
        ];
        let tasks = kinds.into_iter().map(|(name, kind, spec, every_ms)| {
            let etcd = matches!(kind, ClientKind::EtcdWatcher | ClientKind::EtcdTruth);
            let target = if etcd { ETCD } else { API_SERVER };
            let setup = Setup {
                planned: PlannedClient {
                    name: name.to_owned(),
                    kind,
                    target: ComponentId(target.to_owned()),
                    identity: "quakeproof:observer".to_owned(),
                    spec,
                    every_ns: every_ms.map(|ms: u64| ms * 1_000_000),
                    minimum: MinimumOperations { before: 0, during: 0, after: 0 },
                },
                dialer: Arc::new(DirectDialer),
                endpoint: cluster.endpoint_of(target),
                identity: cluster.observer(),
                ledger: ledger.clone(),
                namespace: NAMESPACE.to_owned(),
                seed: SEED,
            };
            quakeproof::runner::clients::spawn(ClientContext {
                setup,
                load: None,
                clock: clock.clone(),
                // What is anchored is tested beside the recorder.
                recorder: Recorder::create(dir.path(), name, clock.clone(), unbounded_channel().0).unwrap(),
                signals: signal_tx.clone(),
                stop: stop.clone(),
            })
        });
        let tasks = tasks.collect();
        Self { ledger, stop, tasks, signals, told: Vec::new(), dir }
    }

    async fn acknowledged(&self, more: usize) {
        let target = self.ledger.len() + more;
        let what = format!("{more} more writes acknowledged");
        eventually(&what, Duration::from_secs(30), async || self.ledger.len() >= target).await;
    }

    /// Waits until each of these clients has told of three things above `revision`: a list and events after it.
    async fn heard_above(&mut self, clients: &[&str], revision: u64) {
        let what = format!("{clients:?} hear of revisions above {revision}");
        eventually(&what, Duration::from_secs(30), async || {
            self.told.extend(std::iter::from_fn(|| self.signals.try_recv().ok()));
            clients.iter().all(|client| {
                let heard = |s: &&ClientSignal| s.client == **client && s.revision > Some(revision);
                self.told.iter().filter(heard).count() >= 3
            })
        })
        .await;
    }

    async fn stop(mut self) -> Histories {
        self.stop.cancel();
        for task in self.tasks {
            task.await.unwrap();
        }
        self.told.extend(std::iter::from_fn(|| self.signals.try_recv().ok()));
        Histories::read(self.dir.path(), self.told)
    }
}

struct Histories {
    clients: BTreeMap<String, Vec<Record>>,
    signals: Vec<ClientSignal>,
}

impl Histories {
    fn read(dir: &Path, signals: Vec<ClientSignal>) -> Self {
        let mut clients = BTreeMap::new();
        for file in std::fs::read_dir(dir.join("histories")).unwrap() {
            let path = file.unwrap().path();
            let records = read_history(&path);
            let client = path.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(matches!(records.first(), Some(Record::Opened { .. })), "{client} opens its history");
            let ops = records.iter().filter(|r| matches!(r, Record::Op(_))).count() as u64;
            match records.last() {
                Some(Record::Closed { scheduled, recorded, late, lost, .. }) => {
                    assert_eq!(*recorded, ops, "{client} counts what it recorded");
                    assert_eq!(*scheduled, recorded + lost, "{client} accounts for every operation");
                    assert!(late <= recorded, "{client}");
                }
                last => panic!("{client} does not close its history: {last:?}"),
            }
            let seqs =
                records.iter().filter_map(|r| if let Record::Op(op) = r { Some(op.seq) } else { None });
            assert!(seqs.eq(0..ops), "{client} numbers its operations");
            clients.insert(client, records);
        }
        Self { clients, signals }
    }

    fn ops(&self, client: &str) -> impl Iterator<Item = &OpRecord> {
        self.clients[client].iter().filter_map(|r| if let Record::Op(op) = r { Some(op) } else { None })
    }

    fn events(&self, client: &str) -> impl Iterator<Item = &EventRecord> {
        self.clients[client].iter().filter_map(|r| if let Record::Event(e) = r { Some(e) } else { None })
    }

    /// Successful answers in order of their return.
    fn answers(&self, client: &str) -> impl Iterator<Item = (&OpRecord, &Answer)> {
        self.ops(client)
            .filter_map(|op| if let Outcome::Ok(answer) = &op.outcome { Some((op, answer)) } else { None })
    }

    /// Revision of each acknowledged write that returned in the span.
    fn acknowledged(&self, from: MonoNs, to: MonoNs) -> BTreeMap<u64, u64> {
        let within = self.answers("writer").filter(|(op, _)| op.return_ns >= from && op.return_ns < to);
        within
            .map(|(op, answer)| match op.op {
                Op::Create { id } => (id, answer.revision.expect("an acknowledged write has a revision")),
                ref other => panic!("a writer only creates: {other:?}"),
            })
            .collect()
    }

    /// Objects of the last range that returned before `to`, and its revision.
    fn truth(&self, to: MonoNs) -> (u64, BTreeMap<u64, u64>) {
        let (_, answer) = self.answers("truth").filter(|(op, _)| op.return_ns < to).last().unwrap();
        assert!(answer.raft_term.is_some() && answer.member.is_some());
        (answer.revision.unwrap(), answer.objects.clone().unwrap().into_iter().collect())
    }

    /// Whole LISTs in the span: revision and ids.
    fn lists(&self, client: &str, from: MonoNs, to: MonoNs) -> Vec<(u64, BTreeSet<u64>)> {
        let mut pages: BTreeMap<u64, Vec<&Answer>> = BTreeMap::new();
        for (op, answer) in self.answers(client) {
            let Op::List { list, .. } = op.op else { panic!("{client} only lists") };
            if op.call_ns >= from && op.return_ns < to {
                pages.entry(list).or_default().push(answer);
            }
        }
        let whole = pages.iter().filter(|(list, pages)| {
            let begun = self.ops(client).any(|op| op.seq == **list && op.call_ns >= from);
            begun && pages.last().is_some_and(|page| !page.more)
        });
        whole
            .map(|(_, pages)| {
                let ids = pages.iter().flat_map(|page| page.ids.as_ref().unwrap().0.iter().copied());
                (pages[0].revision.unwrap(), ids.collect())
            })
            .collect()
    }

    /// Ids and revisions of the puts that arrived in the span.
    fn puts(&self, client: &str, from: MonoNs, to: MonoNs) -> BTreeMap<u64, u64> {
        let within = self.events(client).filter(|e| e.at_ns >= from && e.at_ns < to);
        within
            .filter_map(
                |e| if let Event::Put { id, revision } = e.event { Some((id, revision)) } else { None },
            )
            .collect()
    }

    /// `from` of every watch that was opened, in order.
    fn watches(&self, client: &str) -> Vec<u64> {
        let ops = self.answers(client);
        ops.filter_map(|(op, _)| if let Op::Watch { from, .. } = op.op { Some(from) } else { None }).collect()
    }

    fn errors(&self, client: &str) -> Vec<u16> {
        let events = self.events(client);
        events
            .filter_map(|e| if let Event::Error { code, .. } = e.event { Some(code) } else { None })
            .collect()
    }

    fn ends(&self, client: &str) -> Vec<&str> {
        let events = self.events(client);
        events
            .filter_map(|e| if let Event::Ended { reason } = &e.event { Some(reason.as_str()) } else { None })
            .collect()
    }
}

fn read_history(file: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// What was done to the cluster and when.
struct Restored {
    histories: Histories,
    /// Just before etcd was killed.
    lost_at: MonoNs,
    /// The restored etcd served.
    served_at: MonoNs,
    /// The new timeline had passed the old revision.
    passed_at: MonoNs,
    end: MonoNs,
    /// etcd's revision just before it was killed.
    revision_before: u64,
    /// What the view said while the clients ran, after the restore.
    view: Option<String>,
}

/// Baseline, snapshot, writes to be lost, restore with the API server kept, and on until the
/// new timeline has passed the old revision.
async fn lose_and_restore(kubernetes: &str, etcd: &str, bump: Option<u64>) -> Restored {
    let cluster = Arc::new(BareCluster::start(kubernetes, etcd).await);
    let clock = SystemClock::new();
    let view = LiveView::new(cluster.clone());
    let mut load = Load::start(&cluster).await;
    load.acknowledged(60).await;
    assert!(matches!(view.list_equals_etcd().await, Look::Holds(_)), "before the loss");
    assert!(matches!(view.etcd_healthy(&ComponentId(ETCD.to_owned())).await, Look::Holds(_)));
    assert!(matches!(view.api_ready(&ComponentId(API_SERVER.to_owned())).await, Look::Holds(_)));
    let within = Duration::from_secs(2);
    check_api_ready(&*cluster, within).await.unwrap();
    check_write_succeeds(&*cluster, "default", within).await.unwrap();
    assert!(check_write_succeeds(&*cluster, "nowhere", within).await.unwrap_err().contains("not-found"));

    cluster.save_snapshot("backup.db");
    // Those that were out meanwhile may be in it.
    load.acknowledged(MAX_OUT + 60).await;
    let revision_before = cluster.etcd_client().status(within).await.unwrap().header.revision;
    let lost_at = clock.mono();
    cluster.kill_etcd();
    let gone = view.etcd_healthy(&ComponentId(ETCD.to_owned())).await;
    assert!(matches!(&gone, Look::Fails(why) if why.contains("refused")), "{gone}");
    cluster.restore_snapshot("backup.db", "restored", bump);
    cluster.start_etcd("restored").await;
    let served_at = clock.mono();
    let mut etcd = cluster.etcd_client();
    let passed =
        async || etcd.status(within).await.is_ok_and(|status| status.header.revision > revision_before);
    eventually("the new timeline passes the old revision", Duration::from_secs(30), passed).await;
    let passed_at = clock.mono();
    // The API server takes seconds to find its own watch on etcd broken, and its caches are filled anew after that.
    load.heard_above(&WATCHES, revision_before).await;
    load.heard_above(&["etcd-watch"], revision_before).await;
    load.acknowledged(60).await;
    load.heard_above(&LISTS, revision_before).await;
    load.heard_above(&["truth"], revision_before).await;
    let view_now = match view.list_equals_etcd().await {
        Look::Holds(_) => None,
        Look::Fails(difference) => Some(difference),
        Look::Unknown(why) => panic!("nothing could be seen: {why}"),
    };
    let histories = load.stop().await;
    let end = clock.mono();
    let restored =
        Restored { histories, lost_at, served_at, passed_at, end, revision_before, view: view_now };
    assert_baseline_agrees(&restored);
    restored
}

/// Before the loss every client's record agrees with etcd's own state.
fn assert_baseline_agrees(restored: &Restored) {
    let (histories, to) = (&restored.histories, restored.lost_at);
    let start = MonoNs(0);
    let acknowledged = histories.acknowledged(start, to);
    assert!(acknowledged.len() >= 120, "{} writes", acknowledged.len());
    let (revision, truth) = histories.truth(to);
    let up_to = |objects: &BTreeMap<u64, u64>, revision: u64| -> BTreeMap<u64, u64> {
        objects.iter().filter(|(_, r)| **r <= revision).map(|(id, r)| (*id, *r)).collect()
    };
    // A write whose answer was on its way may be there already.
    let in_flight = |id: &u64| {
        let out = |op: &&OpRecord| op.call_ns < to && op.return_ns >= to;
        histories.ops("writer").filter(out).any(|op| op.op == Op::Create { id: *id })
    };
    let mut answered = truth.clone();
    answered.retain(|id, _| !in_flight(id));
    assert_eq!(up_to(&acknowledged, revision), answered, "acknowledged writes are what etcd holds");
    for client in ["list-unset", "list-zero", "list-pages"] {
        let lists = histories.lists(client, start, to);
        assert!(lists.len() >= 5, "{client}: {} lists", lists.len());
        for (at, ids) in lists.iter().filter(|(at, _)| *at <= revision) {
            let expected: BTreeSet<u64> = up_to(&truth, *at).into_keys().collect();
            assert_eq!(*ids, expected, "{client} at revision {at}");
        }
    }
    for client in ["watch", "etcd-watch"] {
        let mut seen = up_to(&histories.puts(client, start, to), revision);
        let (first, answer) = histories.answers(client).next().unwrap();
        // What was there before the watch came with its first list.
        let before = answer.revision.unwrap();
        match &first.op {
            Op::List { .. } => assert!(answer.ids.is_some()),
            Op::EtcdRange { .. } => assert!(answer.objects.is_some()),
            other => panic!("{client} begins with {other:?}"),
        }
        seen.extend(up_to(&truth, before));
        // An event is on its way for a while.
        let long_ago = MonoNs(to.0.saturating_sub(1_000_000_000));
        let settled = histories.acknowledged(start, long_ago).into_values().max().unwrap().min(revision);
        assert_eq!(up_to(&seen, settled), up_to(&truth, settled), "{client}");
    }
    let gets: Vec<_> = histories.ops("getter").filter(|op| op.return_ns < to).collect();
    assert!(gets.len() >= 10, "{} gets", gets.len());
    assert!(gets.iter().all(|op| matches!(&op.outcome, Outcome::Ok(a) if !a.wrong_value)), "{gets:?}");
    assert!(histories.answers("ready").count() > 10);
    // No scheduler runs here.
    let lease = histories.ops("lease-kube-scheduler").next().unwrap();
    assert_eq!(lease.outcome, Outcome::Failed { status: Some(404), reason: "not-found".to_owned() });
    for client in histories.clients.keys() {
        assert!(histories.signals.iter().any(|s| s.client == *client), "{client} tells the runner");
    }
    let broken =
        histories.signals.iter().find(|s| matches!(&s.sample, Sample::Unknown(w) if w.contains("recorder")));
    assert_eq!(broken, None);
}

/// What it holds of the lost timeline is refused, and what it reads then is accepted.
fn assert_updates_from_the_lost_timeline_are_refused(restored: &Restored) {
    let ops: Vec<&OpRecord> = restored.histories.ops("swapper").collect();
    let refused = Outcome::Failed { status: Some(409), reason: "conflict".to_owned() };
    let conflicts: Vec<usize> = (0..ops.len()).filter(|n| ops[*n].outcome == refused).collect();
    // One for each of five objects, unless a slow machine did not get round to it before the loss.
    assert!((1..=5).contains(&conflicts.len()), "{conflicts:?}");
    for at in conflicts {
        assert!(ops[at].return_ns > restored.lost_at);
        let Op::CasUpdate { object, held, .. } = ops[at].op else { panic!("{:?}", ops[at]) };
        assert_eq!(ops[at + 1].op, Op::CasRead { object });
        let Outcome::Ok(read) = &ops[at + 1].outcome else { panic!("{:?}", ops[at + 1]) };
        let read = read.revision.unwrap();
        assert!(read < held, "{read} is of the snapshot, {held} was lost");
        let of_object = |op: &&&OpRecord| matches!(op.op, Op::CasUpdate { object: of, .. } if of == object);
        if let Some(next) = ops[at + 2..].iter().find(of_object) {
            assert!(matches!(next.op, Op::CasUpdate { held, .. } if held == read), "{next:?}");
            assert!(matches!(next.outcome, Outcome::Ok(_)), "{next:?}");
        }
    }
}

/// Writes of the new timeline that a watch at the old revision can't see: acknowledged
/// after the restore with revisions that the lost timeline had used.
fn hidden(restored: &Restored) -> BTreeMap<u64, u64> {
    let mut written = restored.histories.acknowledged(restored.served_at, restored.end);
    written.retain(|_, revision| *revision <= restored.revision_before);
    written
}

fn assert_watches_skip_the_hidden_writes(restored: &Restored) {
    let histories = &restored.histories;
    let hidden = hidden(restored);
    assert!(hidden.len() >= 20, "{} writes reused revisions", hidden.len());
    for client in WATCHES.into_iter().chain(["etcd-watch"]) {
        let seen = histories.puts(client, restored.served_at, restored.end);
        // One that lagged behind when etcd was lost goes on from where it was.
        let last = histories.puts(client, MonoNs(0), restored.served_at).into_values().max().unwrap();
        let below = hidden.iter().filter(|(_, revision)| **revision <= last);
        let overlap: Vec<_> = below.map(|(id, _)| id).filter(|id| seen.contains_key(id)).collect();
        assert_eq!(overlap, Vec::<&u64>::new(), "{client} saw writes below its revision");
        let later = histories.acknowledged(restored.passed_at, restored.end);
        assert!(later.keys().any(|id| seen.contains_key(id)), "{client} went on by itself");
        assert_eq!(histories.errors(client), Vec::<u16>::new(), "{client} was told nothing");
    }
    assert_eq!(histories.watches("watch").len(), 1, "the API server kept the watch open");
    assert_eq!(histories.ends("watch"), ["stopped"]);
    let watches = histories.watches("etcd-watch");
    assert_eq!(watches.len(), 2, "etcd's own watch was opened anew");
    let before_loss = histories.puts("etcd-watch", MonoNs(0), restored.served_at);
    assert_eq!(watches[1], before_loss.values().max().unwrap() + 1, "right after its last revision");
    assert_eq!(histories.ends("etcd-watch").last(), Some(&"stopped"));
    // A write may still be acknowledged between `lost_at` and the kill.
    let (_, truth) = histories.truth(restored.end);
    let mut lost: BTreeSet<u64> = histories.acknowledged(MonoNs(0), restored.served_at).into_keys().collect();
    lost.retain(|id| !truth.contains_key(id));
    assert!(lost.len() >= 60, "{} acknowledged writes were lost", lost.len());
    let missing: BTreeSet<u64> = histories
        .ops("getter")
        .filter(|op| op.outcome == Outcome::Failed { status: Some(404), reason: "not-found".to_owned() })
        .filter_map(|op| if let Op::Get { id } = op.op { Some(id) } else { None })
        .collect();
    assert!(!missing.is_empty() && missing.is_subset(&lost), "GET tells the truth: {missing:?}");
}

/// Objects that a client lists after the restore and etcd has not, and the reverse.
fn lies(restored: &Restored, client: &str) -> (usize, usize) {
    let (revision, truth) = restored.histories.truth(restored.end);
    let lists = restored.histories.lists(client, restored.passed_at, restored.end);
    let (at, ids) = lists.iter().rfind(|(at, _)| *at <= revision).expect("a list below the last range");
    let expected: BTreeSet<u64> = truth.iter().filter(|(_, r)| **r <= *at).map(|(id, _)| *id).collect();
    (ids.difference(&expected).count(), expected.difference(ids).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_without_bump_leaves_watches_and_lists_on_the_lost_timeline() {
    let restored = lose_and_restore("v1.37.2", "v3.7.3", None).await;
    assert_watches_skip_the_hidden_writes(&restored);
    assert_updates_from_the_lost_timeline_are_refused(&restored);
    for client in ["list-unset", "list-zero", "list-pages", "list-last-seen"] {
        let (phantom, absent) = lies(&restored, client);
        assert!(phantom > 0 && absent > 0, "{client}: {phantom} phantom, {absent} absent");
    }
    assert!(restored.view.is_some(), "the view sees it too");
}

#[tokio::test(flavor = "multi_thread")]
async fn before_consistent_lists_from_cache_only_resource_version_zero_lies() {
    let restored = lose_and_restore("v1.30.4", "v3.5.21", None).await;
    assert_watches_skip_the_hidden_writes(&restored);
    assert_updates_from_the_lost_timeline_are_refused(&restored);
    let first = restored.histories.ops("watch-list").next().unwrap();
    assert!(matches!(first.op, Op::WatchList { .. }));
    assert_eq!(first.outcome, Outcome::Failed { status: Some(422), reason: "invalid".to_owned() });
    assert_eq!(lies(&restored, "list-unset"), (0, 0));
    assert_eq!(lies(&restored, "list-pages"), (0, 0));
    let (phantom, absent) = lies(&restored, "list-zero");
    assert!(phantom > 0 && absent > 0, "{phantom} phantom, {absent} absent");
    let view = restored.view.expect("the view sees it too");
    assert!(view.contains("resourceVersion=0"), "{view}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_with_bump_makes_every_watch_start_over_and_converge() {
    let restored = lose_and_restore("v1.37.2", "v3.7.3", Some(BUMP)).await;
    let histories = &restored.histories;
    assert_eq!(restored.view, None);
    let (revision, truth) = histories.truth(restored.end);
    assert!(revision > BUMP);
    let newer = |client: &str| histories.watches(client).into_iter().rfind(|from| *from > BUMP);
    assert!(newer("watch").is_some(), "{:?}", histories.watches("watch"));
    assert!(newer("etcd-watch").is_some(), "{:?}", histories.watches("etcd-watch"));
    assert_eq!(histories.errors("etcd-watch"), [410]);
    assert!(histories.ends("etcd-watch").contains(&"compacted"));
    let refused_gone = histories
        .ops("watch")
        .any(|op| matches!(&op.outcome, Outcome::Failed { status: Some(410), reason } if reason == "gone"));
    assert!(
        refused_gone || histories.errors("watch") == [410],
        "the watch was told that its revision is gone"
    );
    for client in ["watch", "etcd-watch"] {
        // Its view: the last list, and what came after it.
        let (first, answer) = histories.answers(client).find(|(_, a)| a.revision > Some(BUMP)).unwrap();
        let mut ids: BTreeSet<u64> = match (&answer.ids, &answer.objects) {
            (Some(ids), _) => ids.0.clone(),
            (None, Some(objects)) => objects.iter().map(|(id, _)| *id).collect(),
            (None, None) => panic!("{client}: {first:?}"),
        };
        // Clients are told to end up to half a second before, and an event is on its way for a while.
        let long_ago = MonoNs(restored.end.0 - 2_000_000_000);
        let written = histories.acknowledged(restored.served_at, long_ago);
        let settled = written.into_values().max().unwrap().min(revision);
        ids.extend(
            histories
                .puts(client, first.return_ns, restored.end)
                .into_iter()
                .filter(|(_, r)| *r <= settled)
                .map(|(id, _)| id),
        );
        let expected: BTreeSet<u64> =
            truth.iter().filter(|(_, r)| **r <= settled).map(|(id, _)| *id).collect();
        let missing: Vec<_> = expected.difference(&ids).collect();
        assert_eq!(missing, Vec::<&u64>::new(), "{client}");
    }
    for client in ["list-unset", "list-zero", "list-pages", "list-last-seen"] {
        assert_eq!(lies(&restored, client), (0, 0), "{client}");
    }
    assert_updates_from_the_lost_timeline_are_refused(&restored);
    assert!(histories.errors("reflector").contains(&410) && newer("reflector").is_some());
    // It starts over with the state in the watch itself.
    let begun = histories.ops("watch-list").filter(|op| matches!(op.op, Op::WatchList { .. })).count();
    assert!(begun >= 2, "{begun} times");
    let complete = |e: &EventRecord| matches!(e.event, Event::Bookmark { revision, initial_events_end: true } if revision > BUMP);
    assert!(histories.events("watch-list").any(complete));
}

#[tokio::test]
async fn a_request_that_was_not_answered_is_told_from_one_that_was_never_sent() {
    let pki = Pki::new();
    let identity = pki.issue("tester", None);
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let endpoint = Endpoint { address, server_name: "127.0.0.1".to_owned(), ca_pem: pki.ca_pem.clone() };
    let client = || HttpClient::new(Arc::new(DirectDialer), &endpoint, &identity).unwrap();
    let brief = Duration::from_millis(300);

    // Nobody accepts: the handshake never ends.
    let silent = client().send(Method::POST, "/", Some("x".into()), brief).await;
    assert_eq!(silent, Err(HttpFailure::NotSent(FailureClass::Timeout)));

    let acceptor = acceptor(&pki);
    let server = tokio::spawn(async move {
        // The connection left over from the client above is still in the backlog.
        drop(listener.accept().await.unwrap());
        let read_request = async || {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            let mut request = [0; 4096];
            let read = tokio::io::AsyncReadExt::read(&mut stream, &mut request).await.unwrap();
            assert!(read > 0);
            stream
        };
        drop(read_request().await);
        let held = read_request().await;
        tokio::time::sleep(brief * 2).await;
        drop(held);
    });
    let lost = client().send(Method::POST, "/", Some("x".into()), Duration::from_secs(5)).await;
    assert_eq!(lost, Err(HttpFailure::Unanswered(FailureClass::ConnectionLost)));
    let late = client().send(Method::POST, "/", Some("x".into()), brief).await;
    assert_eq!(late, Err(HttpFailure::Unanswered(FailureClass::Timeout)));
    server.await.unwrap();

    // The listener is gone with the server.
    let refused = client().send(Method::POST, "/", Some("x".into()), brief).await;
    assert_eq!(refused, Err(HttpFailure::NotSent(FailureClass::Refused)));
}

fn acceptor(pki: &Pki) -> tokio_rustls::TlsAcceptor {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let server = pki.issue("server", None);
    let chain = vec![CertificateDer::from_pem_slice(server.cert_pem.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(server.key_pem.as_bytes()).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}
