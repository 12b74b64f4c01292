//! etcd's own state, the truth that clients' views are held against.

use crate::client::context::ClientContext;
use crate::client::etcd_range::range;
use crate::client::pace::Pace;
use crate::client::session::{Broken, Session, Setup};
use crate::etcd::client::EtcdClient;
use crate::etcd::registry::ledger_prefix;
use crate::load::pacer::Account;

/// Ranges over the ledger's keys until told to end.
pub async fn run(ctx: ClientContext) {
    if let Some((mut session, setup)) = Session::open(ctx) {
        let end = observe(&mut session, &setup).await;
        session.close(end);
    }
}

async fn observe(session: &mut Session, setup: &Setup) -> Result<Account, Broken> {
    let mut etcd = EtcdClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?;
    let prefix = ledger_prefix(&setup.namespace);
    let mut pace = Pace::new(session, setup.every_ns()?);
    while let Some(slot) = pace.next().await {
        range(session, &mut etcd, &prefix, Some(slot.due)).await?;
    }
    Ok(pace.account())
}
