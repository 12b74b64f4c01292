//! The agent: carries out undos under a lease and ends faults by itself when the lease lapses.
//!
//! `arm` makes an undo durable and grants a lease; whoever drills renews it. When
//! nobody does, the agent acts as the undo's [`undo::OnLapse`] says, no later than
//! one TTL after the last renewal that it answered.
//!
//! What happens when the agent itself is killed, at any instant:
//! * Everything it has answered is in its log, so the next agent of the cluster knows it.
//! * A lease goes on from its last *recorded* renewal. Renewals are recorded when a
//!   quarter of the TTL has passed since the last recorded one, so after a restart a
//!   lease may lapse up to a quarter of its TTL early, never late. A lease that lapsed
//!   while no agent ran is acted on at once.
//! * An undo that was begun is begun again from its first operation; each is idempotent.
//! * After a reboot of the machine every undo is owed at once: its lease counted on a
//!   clock that no longer runs.
//!
//! The parts: [`log`] is the chained file, [`store`] makes entries durable, [`machine`]
//! decides (pure), [`execute`] carries out, [`server`] and [`client`] talk.

pub mod api;
pub mod client;
pub mod execute;
pub mod log;
pub mod machine;
pub mod objects;
pub mod protocol;
pub mod server;
pub mod store;
pub mod truth;
pub mod undo;
pub mod view;
