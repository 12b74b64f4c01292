//! A WATCH through the API server that goes on from its last resourceVersion.

use super::context::{ClientContext, Setup};
use super::list::{ListRequest, list};
use super::session::{ATTEMPT_EVERY, Broken, Session, live};
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use super::watch_line::event_of;
use crate::clock::{Clock, MonoNs};
use crate::drill::lint::{Lint, Place};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::history::record::{Answer, ENDED_AS_ASKED, Event, Op, Outcome};
use crate::load::pacer::until;
use crate::wire::failure::FailureClass;
use crate::wire::http::{HttpAnswer, HttpClient, HttpFailure, Lines, Streamed, failed_read, stopped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A WATCH through the API server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Watcher {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// From where a broken watch goes on.
    #[serde(default)]
    pub resume: Resume,
    /// Asks for bookmarks (`allowWatchBookmarks`) and goes on from their resourceVersion too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bookmarks: bool,
    /// How it gets the state that the watch goes on from.
    #[serde(default, skip_serializing_if = "InitialState::is_list")]
    pub initial: InitialState,
    /// Asked of the server as `timeoutSeconds`, whole seconds from 5 s to 24 h: the stream ends in
    /// order then and is opened anew. An API server sends a bookmark shortly before. Absent: 24 h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// How a watcher gets the state that its watch goes on from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InitialState {
    /// By a LIST.
    #[default]
    List,
    /// By the watch itself (`sendInitialEvents=true`, `resourceVersionMatch=NotOlderThan`, bookmarks).
    /// Where the server refuses that as invalid it lists from then on, as client-go does.
    WatchList,
}

impl InitialState {
    fn is_list(&self) -> bool {
        *self == Self::List
    }
}

/// From where a broken watch goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Resume {
    /// From the last resourceVersion seen; a 410 makes it list again.
    #[default]
    LastSeen,
}

/// Time after which a watch is to end; below it an API server sends no bookmark.
const WATCH_TIMEOUT: (Span, Span) = (Span::secs(5), Span::secs(24 * 3600));

impl ClientUnderTest for Watcher {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::Watcher,
            talks_to: TalksTo::ApiServer,
            works: Works::ByItsRules,
        }
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        let Some(timeout) = self.timeout else { return };
        let path = at.key("timeout");
        lint.span(&path, timeout, WATCH_TIMEOUT);
        if timeout.0.subsec_nanos() != 0 {
            let title = format!("`timeout: {timeout}` is not in whole seconds");
            lint.error(&path, title, "API servers are asked in whole seconds, as `10s`");
        }
    }

    fn run(&self, ctx: ClientContext) -> Running {
        let manner = Manner::of(self);
        Box::pin(live(ctx, async move |session, setup| {
            watch(manner, session, setup).await.map(|()| session.unscheduled())
        }))
    }
}

/// A watch that is not accepted within this is given up and tried anew.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// Asked of the server where the drill names no other time, so that it does not end the watch by
/// itself during a drill.
const TIMEOUT: Duration = Duration::from_secs(86_400);

/// A server's clock for the time asked for may have begun this much before the answer was here.
const EARLY: Duration = Duration::from_secs(1);

/// What is asked of the server.
struct Manner {
    bookmarks: bool,
    initial: InitialState,
    timeout: Duration,
}

impl Manner {
    fn of(spec: &Watcher) -> Self {
        let timeout = spec.timeout.map_or(TIMEOUT, |timeout| timeout.0);
        Self { bookmarks: spec.bookmarks, initial: spec.initial, timeout }
    }

    /// Path of a watch from a resourceVersion, or of one that begins with the state.
    fn path(&self, namespace: &str, from: Option<u64>) -> String {
        let seconds = self.timeout.as_secs();
        let rest = match from {
            Some(from) => format!("resourceVersion={from}&allowWatchBookmarks={}", self.bookmarks),
            None => "resourceVersion=&resourceVersionMatch=NotOlderThan&sendInitialEvents=true\
                     &allowWatchBookmarks=true"
                .to_owned(),
        };
        format!("/api/v1/namespaces/{namespace}/configmaps?watch=1&{rest}&timeoutSeconds={seconds}")
    }
}

/// Gets the state, watches from there, and goes on from the last resourceVersion seen
/// whenever the watch ends; a 410 makes it get the state anew.
async fn watch(mut manner: Manner, session: &mut Session, setup: &Setup) -> Result<(), Broken> {
    let mut http = HttpClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?;
    let stop = session.stop();
    let mut last_seen = None;
    let mut stream = 0;
    let mut next_attempt = session.clock().mono();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = until(session.clock(), next_attempt) => {}
        }
        next_attempt = session.clock().mono().plus(ATTEMPT_EVERY.as_nanos() as u64);
        if last_seen.is_none() && manner.initial == InitialState::List {
            last_seen = list_anew(session, &mut http, &setup.namespace).await?;
            // A watch follows its list at once.
            next_attempt = if last_seen.is_some() { session.clock().mono() } else { next_attempt };
            continue;
        }
        let path = manner.path(&setup.namespace, last_seen);
        last_seen = match open(session, &mut http, &path, stream, last_seen).await? {
            Opened::Accepted(lines) => {
                let ends = session.clock().mono().plus(as_ns(manner.timeout.saturating_sub(EARLY)));
                follow(session, lines, stream, last_seen, ends).await?
            }
            Opened::Refused(410) => None,
            Opened::Refused(422) if last_seen.is_none() => {
                manner.initial = InitialState::List;
                None
            }
            Opened::Refused(_) | Opened::Failed => last_seen,
        };
        stream += 1;
    }
}

async fn list_anew(
    session: &mut Session,
    http: &mut HttpClient,
    namespace: &str,
) -> Result<Option<u64>, Broken> {
    let request =
        ListRequest { namespace, resource_version: None, not_older_than: false, limit: None, due: None };
    Ok(list(session, http, request).await?.revision())
}

enum Opened {
    Accepted(Lines),
    Refused(u16),
    Failed,
}

async fn open(
    session: &mut Session,
    http: &mut HttpClient,
    path: &str,
    stream: u64,
    from: Option<u64>,
) -> Result<Opened, Broken> {
    let (timing, result) = session.timed(None, http.stream(path, DEADLINE)).await;
    let (opened, outcome) = match result {
        None => (Opened::Failed, stopped()),
        Some(Ok(Streamed::Accepted(lines))) => (Opened::Accepted(lines), Outcome::Ok(Answer::default())),
        Some(Ok(Streamed::Refused(answer))) => refused(Ok(answer)),
        Some(Err(failure)) => refused(Err(failure)),
    };
    let op = from.map_or(Op::WatchList { stream }, |from| Op::Watch { stream, from });
    session.op(timing, op, outcome)?;
    Ok(opened)
}

fn refused(result: Result<HttpAnswer, HttpFailure>) -> (Opened, Outcome) {
    let opened = result.as_ref().map_or(Opened::Failed, |answer| Opened::Refused(answer.status));
    (opened, failed_read(&result))
}

/// Records a stream to its end. Returns the revision to go on from: `None` after a 410, and for
/// a stream that was to begin with the state and ended before it was through with that.
async fn follow(
    session: &mut Session,
    mut lines: Lines,
    stream: u64,
    from: Option<u64>,
    ends: MonoNs,
) -> Result<Option<u64>, Broken> {
    let stop = session.stop();
    let mut last_seen = from;
    loop {
        let line = tokio::select! {
            biased;
            () = stop.cancelled() => Err(FailureClass::Stopped.as_str()),
            line = lines.next() => match line {
                Ok(Some(line)) => Ok(line),
                Ok(None) => Err(ended(session.clock(), ends)),
                Err(class) => Err(class.as_str()),
            },
        };
        let event = match line {
            Ok(line) => event_of(&line),
            Err(reason) => Event::Ended { reason: reason.to_owned() },
        };
        match &event {
            Event::Put { revision, .. } | Event::Delete { revision, .. } | Event::Other { revision } => {
                // Initial events come in no order, and are of no use until they are complete.
                last_seen = last_seen.map(|_| *revision);
            }
            Event::Bookmark { revision, initial_events_end } => {
                if last_seen.is_some() || *initial_events_end {
                    last_seen = Some(*revision);
                }
            }
            Event::Error { code, .. } => {
                let next = last_seen.filter(|_| *code != 410);
                session.event(stream, event)?;
                session.event(stream, Event::Ended { reason: "error".to_owned() })?;
                return Ok(next);
            }
            Event::Ended { .. } | Event::Store { .. } => {
                session.event(stream, event)?;
                return Ok(last_seen);
            }
            // Of elections only.
            Event::Leading { .. } | Event::LeadingEnded { .. } => {}
        }
        session.event(stream, event)?;
    }
}

/// Why a stream has ended in order: the server was asked to, or it did so by itself.
fn ended(clock: &dyn Clock, ends: MonoNs) -> &'static str {
    if clock.mono() >= ends { ENDED_AS_ASKED } else { "eof" }
}

fn as_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_follows_from_the_drill() {
        let plain = Manner { bookmarks: false, initial: InitialState::List, timeout: TIMEOUT };
        assert_eq!(
            plain.path("n", Some(7)),
            "/api/v1/namespaces/n/configmaps?watch=1&resourceVersion=7&allowWatchBookmarks=false\
             &timeoutSeconds=86400"
        );
        let all =
            Manner { bookmarks: true, initial: InitialState::WatchList, timeout: Duration::from_secs(9) };
        assert_eq!(
            all.path("n", None),
            "/api/v1/namespaces/n/configmaps?watch=1&resourceVersion=&resourceVersionMatch=NotOlderThan\
             &sendInitialEvents=true&allowWatchBookmarks=true&timeoutSeconds=9"
        );
        assert!(all.path("n", Some(7)).contains("resourceVersion=7&allowWatchBookmarks=true"));
    }
}
