//! Objects that the cluster's own consumers have to do something about: made at a pace,
//! then looked at until it is done. Every look is a quorum read and recorded by itself.

use super::context::Setup;
use super::deployer::{deployment, is_controlled_by, named_replica_set};
use super::pace::Pace;
use super::pod_creator::{is_judged_by_scheduler, pod};
use super::session::{Broken, Session};
use crate::clock::MonoNs;
use crate::history::record::{Answer, Made, Op, Outcome};
use crate::load::pacer::{Account, until};
use crate::load::timing::Timing;
use crate::wire::failure::FailureClass;
use crate::wire::http::{HttpAnswer, HttpClient, HttpFailure, failed_read, failed_write, stopped};
use hyper::Method;
use hyper::body::Bytes;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;

/// An answer later than this is none, or leaves a create in doubt.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// Time between two looks at what nothing was done about yet.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Objects that are waited for at once; one more, and the oldest is only looked at in turn
/// with the others that nothing was done about in time.
const MOST_PENDING: usize = 4;

/// Time between two looks at objects that are not waited for.
pub const LOOK_AGAIN_EVERY: Duration = Duration::from_millis(200);

/// Objects done with that are looked at again, in turn: the newest, since those are
/// what a restore loses.
const MOST_REMEMBERED: usize = 32;

/// What a Pod is made of: nothing of it ever runs, for no node has the label.
#[must_use]
pub fn pod_spec() -> Value {
    serde_json::json!({
        "automountServiceAccountToken": false,
        "nodeSelector": {"quakeproof.dev/no-such-node": "true"},
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "pause", "image": "registry.k8s.io/pause:3.10"}],
    })
}

/// Makes objects and looks at them until told to end.
///
/// # Errors
/// When the history can't be written or the plan gives no pace.
pub async fn consume(session: &mut Session, setup: &Setup, what: Made) -> Result<Account, Broken> {
    let mut consumer = Consumer {
        http: HttpClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?,
        what,
        client: setup.planned.name.clone(),
        namespace: setup.namespace.clone(),
        pending: VecDeque::new(),
        late: VecDeque::new(),
        done: VecDeque::new(),
    };
    let every = setup.every_ns()?;
    let mut pace = Pace::new(session, every);
    while let Some(slot) = pace.next().await {
        consumer.make(session, slot.index + 1, slot.due).await?;
        if consumer.pending.len() > MOST_PENDING
            && let Some(oldest) = consumer.pending.pop_front()
        {
            consumer.late.push_back(oldest);
        }
        // The next slot is due then; nothing keeps it waiting but an operation under way.
        let next = slot.due.plus(every);
        consumer.look_until(session, next).await?;
    }
    Ok(pace.account())
}

struct Consumer {
    http: HttpClient,
    what: Made,
    client: String,
    namespace: String,
    pending: VecDeque<Item>,
    /// Nothing had been done about them when they were looked at last.
    late: VecDeque<Item>,
    done: VecDeque<Item>,
}

struct Item {
    id: u64,
    uid: String,
    /// The ReplicaSet that a Deployment named.
    replica_set: Option<String>,
}

/// What is known of an object after a look.
#[derive(PartialEq, Eq)]
enum Seen {
    Pending,
    Done,
    Gone,
    NoAnswer,
}

impl Consumer {
    fn name(&self, id: u64) -> String {
        format!("{}-{id}", self.client)
    }

    fn path(&self) -> String {
        let (group, resource) = match self.what {
            Made::Deployment => ("apis/apps/v1", "deployments"),
            Made::Pod => ("api/v1", "pods"),
            Made::Event => ("api/v1", "events"),
        };
        format!("/{group}/namespaces/{}/{resource}", self.namespace)
    }

    async fn make(&mut self, session: &mut Session, id: u64, due: MonoNs) -> Result<(), Broken> {
        let name = self.name(id);
        let body = if self.what == Made::Pod { pod(&name) } else { deployment(&name) };
        let (path, body) = (self.path(), Bytes::from(body.to_string()));
        let sent = self.http.send(Method::POST, &path, Some(body), DEADLINE);
        let (timing, result) = session.timed(Some(due), sent).await;
        let outcome = match result {
            None => stopped(),
            Some(Ok(answer)) if answer.is_success() => match object(&answer) {
                Some(made) => {
                    let uid = text(&made["metadata"]["uid"]);
                    if let Some(uid) = &uid {
                        self.pending.push_back(Item { id, uid: uid.clone(), replica_set: None });
                    }
                    Outcome::Ok(Answer { revision: revision(&made), uid, ..Answer::default() })
                }
                None => Outcome::Ok(Answer::default()),
            },
            Some(result) => failed_write(&result),
        };
        session.op(timing, Op::Make { what: self.what, id }, outcome)
    }

    /// Looks at what is pending, and in turn at one object that is not waited for.
    async fn look_until(&mut self, session: &mut Session, end: MonoNs) -> Result<(), Broken> {
        let (clock, stop) = (session.shared_clock(), session.stop());
        let mut again = clock.mono().plus(LOOK_AGAIN_EVERY.as_nanos() as u64);
        loop {
            let next = match self.pending.is_empty() {
                true => again,
                false => clock.mono().plus(LOOK_EVERY.as_nanos() as u64),
            };
            if next >= end {
                return Ok(());
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = until(&*clock, next) => {}
            }
            if next >= again {
                again = next.plus(LOOK_AGAIN_EVERY.as_nanos() as u64);
                self.look_again(session).await?;
            }
            for _ in 0..self.pending.len() {
                let Some(mut item) = self.pending.pop_front() else { break };
                match self.look(session, &mut item).await? {
                    Seen::Pending | Seen::NoAnswer => self.pending.push_back(item),
                    Seen::Done | Seen::Gone => self.remember(item),
                }
            }
        }
    }

    fn remember(&mut self, item: Item) {
        self.done.push_back(item);
        if self.done.len() > MOST_REMEMBERED {
            self.done.pop_front();
        }
    }

    async fn look(&mut self, session: &mut Session, item: &mut Item) -> Result<Seen, Broken> {
        let (timing, result) = self.get(session, &format!("{}/{}", self.path(), self.name(item.id))).await;
        let found = result.as_ref().and_then(|r| r.as_ref().ok()).filter(|a| a.is_success()).and_then(object);
        let judged = found.as_ref().map(|object| self.judge(object));
        let outcome = outcome_of(result, |object| Answer {
            uid: text(&object["metadata"]["uid"]),
            replica_set: judged.as_ref().and_then(|(name, _)| name.clone()),
            acted: judged.as_ref().and_then(|(_, acted)| *acted),
            ..Answer::default()
        });
        let seen = match (&outcome, &judged) {
            (Outcome::Failed { status: Some(404), .. }, _) => Seen::Gone,
            (Outcome::Ok(answer), _) if answer.uid.as_ref() != Some(&item.uid) => Seen::Gone,
            (Outcome::Ok(_), Some((_, Some(true)))) => Seen::Done,
            (Outcome::Ok(_), Some((name @ Some(_), None))) => {
                item.replica_set.clone_from(name);
                Seen::Pending
            }
            (Outcome::Ok(_), _) => Seen::Pending,
            _ => Seen::NoAnswer,
        };
        session.op(timing, Op::Look { what: self.what, id: item.id }, outcome)?;
        if seen == Seen::Pending && item.replica_set.is_some() {
            return self.owned(session, item).await;
        }
        Ok(seen)
    }

    /// The ReplicaSet named, and whether it is known that something was done; a Deployment
    /// that names one has yet to be shown to own it.
    fn judge(&self, object: &Value) -> (Option<String>, Option<bool>) {
        match self.what {
            Made::Deployment => match named_replica_set(object) {
                Some(name) => (Some(name), None),
                None => (None, Some(false)),
            },
            Made::Pod | Made::Event => (None, Some(is_judged_by_scheduler(object))),
        }
    }

    /// Looks at the ReplicaSet that a Deployment named.
    async fn owned(&mut self, session: &mut Session, item: &Item) -> Result<Seen, Broken> {
        let Some(name) = item.replica_set.clone() else { return Ok(Seen::Pending) };
        let path = format!("/apis/apps/v1/namespaces/{}/replicasets/{name}", self.namespace);
        let (timing, result) = self.get(session, &path).await;
        let outcome = outcome_of(result, |object| Answer {
            uid: text(&object["metadata"]["uid"]),
            acted: Some(is_controlled_by(object, &item.uid)),
            ..Answer::default()
        });
        let seen = match &outcome {
            Outcome::Ok(Answer { acted: Some(true), .. }) => Seen::Done,
            Outcome::Ok(_) | Outcome::Failed { status: Some(404), .. } => Seen::Pending,
            _ => Seen::NoAnswer,
        };
        session.op(timing, Op::Owned { id: item.id, name }, outcome)?;
        Ok(seen)
    }

    /// Something may have been done by now about one that is late. One that is done with may be gone,
    /// and then what was made for it must be gone or go too.
    async fn look_again(&mut self, session: &mut Session) -> Result<(), Broken> {
        if let Some(mut item) = self.late.pop_front() {
            match self.look(session, &mut item).await? {
                Seen::Pending | Seen::NoAnswer => self.late.push_back(item),
                Seen::Done | Seen::Gone => self.remember(item),
            }
        }
        let Some(item) = self.done.pop_front() else { return Ok(()) };
        let path = format!("{}/{}", self.path(), self.name(item.id));
        let (timing, result) = self.get(session, &path).await;
        let outcome = outcome_of(result, |object| Answer {
            uid: text(&object["metadata"]["uid"]),
            ..Answer::default()
        });
        let gone = match &outcome {
            Outcome::Failed { status: Some(404), .. } => true,
            Outcome::Ok(answer) => answer.uid.as_ref() != Some(&item.uid),
            _ => false,
        };
        session.op(timing, Op::Look { what: self.what, id: item.id }, outcome)?;
        if gone && item.replica_set.is_some() {
            self.owned(session, &item).await?;
        }
        self.remember(item);
        Ok(())
    }

    async fn get(
        &mut self,
        session: &mut Session,
        path: &str,
    ) -> (Timing, Option<Result<HttpAnswer, HttpFailure>>) {
        session.timed(None, self.http.send(Method::GET, path, None, DEADLINE)).await
    }
}

fn outcome_of(
    result: Option<Result<HttpAnswer, HttpFailure>>,
    answer: impl FnOnce(&Value) -> Answer,
) -> Outcome {
    match result {
        None => stopped(),
        Some(Ok(got)) if got.is_success() => match object(&got) {
            Some(object) => Outcome::Ok(Answer { revision: revision(&object), ..answer(&object) }),
            None => Outcome::Failed { status: Some(got.status), reason: FailureClass::Malformed.to_string() },
        },
        Some(result) => failed_read(&result),
    }
}

fn object(answer: &HttpAnswer) -> Option<Value> {
    serde_json::from_slice(&answer.body).ok()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn revision(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}
