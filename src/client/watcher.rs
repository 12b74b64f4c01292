//! A plain WATCH through the API server that goes on from its last resourceVersion.

use super::context::ClientContext;
use super::failure::FailureClass;
use super::http::{HttpAnswer, HttpClient, HttpFailure, Lines, Streamed, failed_read, stopped};
use super::ledger::id_of;
use super::list::{ListRequest, list};
use super::objects::WatchLine;
use super::session::{ATTEMPT_EVERY, Broken, Session, Setup};
use crate::history::record::{Answer, Event, Op, Outcome};
use crate::load::pacer::{Account, until};
use std::time::Duration;

/// A watch that is not accepted within this is given up and tried anew.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// Asked of the server, so that it does not end the watch by itself during a drill.
const TIMEOUT_SECONDS: u32 = 86_400;

/// Lists, watches from there, and goes on from the last resourceVersion seen
/// whenever the watch ends; a 410 makes it list again.
pub async fn run(ctx: ClientContext) {
    if let Some((mut session, setup)) = Session::open(ctx) {
        let end = watch(&mut session, &setup).await;
        let recorded = session.recorded();
        // Every operation follows from another, none is due at a set time.
        session.close(end.map(|()| Account { scheduled: recorded, ..Account::default() }));
    }
}

async fn watch(session: &mut Session, setup: &Setup) -> Result<(), Broken> {
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
        let Some(from) = last_seen else {
            let namespace = &setup.namespace;
            let request = ListRequest { namespace, resource_version: None, limit: None, due: None };
            last_seen = list(session, &mut http, request).await?;
            // A watch follows its list at once.
            next_attempt = if last_seen.is_some() { session.clock().mono() } else { next_attempt };
            continue;
        };
        let opened = open(session, &mut http, &setup.namespace, stream, from).await?;
        last_seen = match opened {
            Opened::Accepted(lines) => follow(session, lines, stream, from).await?,
            Opened::Gone => None,
            Opened::Failed => Some(from),
        };
        stream += 1;
    }
}

enum Opened {
    Accepted(Lines),
    Gone,
    Failed,
}

async fn open(
    session: &mut Session,
    http: &mut HttpClient,
    namespace: &str,
    stream: u64,
    from: u64,
) -> Result<Opened, Broken> {
    let path = format!(
        "/api/v1/namespaces/{namespace}/configmaps?watch=1&resourceVersion={from}\
         &allowWatchBookmarks=false&timeoutSeconds={TIMEOUT_SECONDS}"
    );
    let (timing, result) = session.timed(None, http.stream(&path, DEADLINE)).await;
    let (opened, outcome) = match result {
        None => (Opened::Failed, stopped()),
        Some(Ok(Streamed::Accepted(lines))) => (Opened::Accepted(lines), Outcome::Ok(Answer::default())),
        Some(Ok(Streamed::Refused(answer))) => refused(Ok(answer)),
        Some(Err(failure)) => refused(Err(failure)),
    };
    session.op(timing, Op::Watch { stream, from }, outcome)?;
    Ok(opened)
}

fn refused(result: Result<HttpAnswer, HttpFailure>) -> (Opened, Outcome) {
    let gone = matches!(&result, Ok(answer) if answer.status == 410);
    (if gone { Opened::Gone } else { Opened::Failed }, failed_read(&result))
}

/// Records a stream to its end. Returns the revision to go on from, `None` after a 410.
async fn follow(
    session: &mut Session,
    mut lines: Lines,
    stream: u64,
    from: u64,
) -> Result<Option<u64>, Broken> {
    let stop = session.stop();
    let mut last_seen = from;
    loop {
        let line = tokio::select! {
            biased;
            () = stop.cancelled() => Err(FailureClass::Stopped.as_str()),
            line = lines.next() => match line {
                Ok(Some(line)) => Ok(line),
                Ok(None) => Err("eof"),
                Err(class) => Err(class.as_str()),
            },
        };
        let event = match line {
            Ok(line) => event_of(&line),
            Err(reason) => Event::Ended { reason: reason.to_owned() },
        };
        match &event {
            Event::Put { revision, .. } | Event::Delete { revision, .. } | Event::Other { revision } => {
                last_seen = *revision;
            }
            Event::Error { code, .. } => {
                let next = (*code != 410).then_some(last_seen);
                session.event(stream, event)?;
                session.event(stream, Event::Ended { reason: "error".to_owned() })?;
                return Ok(next);
            }
            Event::Ended { .. } => {
                session.event(stream, event)?;
                return Ok(Some(last_seen));
            }
            // Of elections only.
            Event::Leading { .. } | Event::LeadingEnded { .. } => {}
        }
        session.event(stream, event)?;
    }
}

fn event_of(line: &[u8]) -> Event {
    let malformed = || Event::Ended { reason: FailureClass::Malformed.to_string() };
    let Ok(line) = serde_json::from_slice::<WatchLine<'_>>(line) else { return malformed() };
    if line.kind == "ERROR" {
        return Event::Error { code: line.object.code, message: line.object.message.into_owned() };
    }
    let Some(revision) = line.object.metadata.revision() else { return malformed() };
    match (line.kind.as_ref(), id_of(&line.object.metadata.name)) {
        ("ADDED" | "MODIFIED", Some(id)) => Event::Put { id, revision },
        ("DELETED", Some(id)) => Event::Delete { id, revision },
        _ => Event::Other { revision },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_watch_line_becomes_its_event() {
        let line = |kind: &str, name: &str| {
            event_of(
                format!(
                    r#"{{"type":"{kind}","object":{{"metadata":{{"name":"{name}","resourceVersion":"7"}}}}}}"#
                )
                .as_bytes(),
            )
        };
        assert_eq!(line("ADDED", "ledger-3"), Event::Put { id: 3, revision: 7 });
        assert_eq!(line("MODIFIED", "ledger-3"), Event::Put { id: 3, revision: 7 });
        assert_eq!(line("DELETED", "ledger-3"), Event::Delete { id: 3, revision: 7 });
        assert_eq!(line("ADDED", "kube-root-ca.crt"), Event::Other { revision: 7 });
        let gone = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#;
        assert_eq!(event_of(gone), Event::Error { code: 410, message: "too old".to_owned() });
        assert_eq!(event_of(b"{\"type\":"), Event::Ended { reason: "malformed".to_owned() });
    }
}
