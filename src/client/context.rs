//! What every client gets to work with, and what it tells the runner while it works.

use super::load::LoadTold;
use super::session::Broken;
use crate::clock::{Clock, MonoNs};
use crate::component::network::{Dialer, Endpoint, Identity};
use crate::history::kind::ClientKind;
use crate::history::recorder::Recorder;
use crate::ledger::Ledger;
use crate::plan::PlannedClient;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

/// Everything that a client needs; it owns its recorder and its connection.
pub struct ClientContext {
    /// What its own code works with.
    pub setup: Setup,
    /// The run's clock.
    pub clock: Arc<dyn Clock>,
    /// Its history.
    pub recorder: Recorder,
    /// Tells the runner what was seen.
    pub signals: UnboundedSender<ClientSignal>,
    /// Of a load: when it begins, and how far it is.
    pub load: Option<LoadTold>,
    /// The client ends, and closes its history, when this is cancelled.
    pub stop: CancellationToken,
}

/// What a client works with, beside its session.
pub struct Setup {
    /// What the plan says of it.
    pub planned: PlannedClient,
    /// Opens its sockets on [`crate::component::network::CLIENT_HOST`].
    pub dialer: Arc<dyn Dialer>,
    /// The component that it talks to.
    pub endpoint: Endpoint,
    /// Who it is.
    pub identity: Identity,
    /// Acknowledged writes, kept outside the cluster.
    pub ledger: Arc<Ledger>,
    /// Namespace of the ledger's objects.
    pub namespace: String,
    /// The run's seed; each client derives its own stream from it and its name.
    pub seed: u64,
}

impl Setup {
    /// The interval that the plan gives a paced client, nanoseconds.
    ///
    /// # Errors
    /// When there is none.
    pub fn every_ns(&self) -> Result<u64, Broken> {
        self.planned.every_ns.ok_or_else(|| Broken::Unpaced(self.planned.name.clone()))
    }
}

/// What a client tells the runner, for progress and for waits. Never evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSignal {
    /// Client name.
    pub client: String,
    /// Its kind.
    pub kind: ClientKind,
    /// What was seen.
    pub sample: Sample,
    /// When the operation was called.
    pub call: MonoNs,
    /// When it returned.
    pub returned: MonoNs,
    /// Revision in the answer, if any.
    pub revision: Option<u64>,
}

/// An observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sample {
    /// As it should be.
    Ok,
    /// Not as it should be.
    Failed(String),
    /// Can't be told.
    Unknown(String),
}
