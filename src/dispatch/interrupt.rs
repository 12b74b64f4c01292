//! Who may end a run early, and how a step learns of it.

use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// Asks a run to end: the fault is ended, the evidence finished.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    token: CancellationToken,
    by: Arc<OnceLock<String>>,
}

impl Interrupt {
    /// Nobody has asked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks; the first reason stays.
    pub fn ask(&self, by: &str) {
        self.by.get_or_init(|| by.to_owned());
        self.token.cancel();
    }

    /// Who asked; `None` while nobody has.
    #[must_use]
    pub fn by(&self) -> Option<String> {
        self.by.get().cloned()
    }

    /// Completes when somebody asks.
    pub async fn asked(&self) -> String {
        self.token.cancelled().await;
        self.by().unwrap_or_default()
    }
}
