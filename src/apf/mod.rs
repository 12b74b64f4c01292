//! API Priority and Fairness: how many seats a level has, and what becomes of requests that reach it.
//!
//! A model of one priority level on one API server, so that a plan can say before a drill how many
//! requests will be executed, queued and refused, and a checker can say which of the possible worlds
//! was seen. Pure: no clock, no connection.
//!
//! Rules read in `k8s.io/apiserver`, `pkg/util/flowcontrol` (`apf_controller.go`,
//! `fairqueuing/queueset/queueset.go`) and `pkg/server/filters/priority-and-fairness.go`, which are
//! alike from 1.29 to 1.37 in what is modelled here, and executed on 1.30.4 and 1.37.2.

pub mod answer;
pub mod dump;
pub mod level;
pub mod metrics;
pub mod range;
pub mod seats;
pub mod version;
