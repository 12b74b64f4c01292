//! What runner, agent and command line say to the supervisor: one JSON document
//! per line over `supervisor.sock`, one answer per request. Descriptors travel
//! along where a variant says so.

use crate::component::{
    ComponentId, ComponentStatus, ControlError, DataSlot, HostId, StopMethod, ToolOutput, ToolRun,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Name of the supervisor's socket in the cluster's directory.
pub const SUPERVISOR_SOCKET: &str = "supervisor.sock";

/// A request to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Op {
    /// Every component and what it is doing.
    Status,
    /// Starts a component.
    Start {
        /// Which.
        component: ComponentId,
    },
    /// Stops a component; answered once it is gone.
    Stop {
        /// Which.
        component: ComponentId,
        /// How.
        how: StopMethod,
    },
    /// Freezes a component.
    Pause {
        /// Which.
        component: ComponentId,
    },
    /// Lets a frozen component go on.
    Resume {
        /// Which.
        component: ComponentId,
    },
    /// Moves a stopped component's data.
    MoveData {
        /// Whose.
        component: ComponentId,
        /// Where it lies.
        from: DataSlot,
        /// Where it goes.
        to: DataSlot,
    },
    /// Path of a data slot.
    DataDir {
        /// Whose.
        component: ComponentId,
        /// Which.
        slot: DataSlot,
    },
    /// Runs a tool to its end.
    RunTool {
        /// What.
        run: ToolRun,
    },
    /// Makes an unconnected, non-blocking TCP socket on a host; it comes along with the answer.
    Socket {
        /// Where.
        host: HostId,
    },
    /// Runs a command on a host, on the three standard descriptors that come along.
    /// Killed when the connection closes.
    Exec {
        /// Where.
        host: HostId,
        /// Program and arguments.
        argv: Vec<String>,
    },
}

/// The supervisor's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Answer {
    /// Done.
    Done,
    /// State of every component.
    Components {
        /// In start order.
        components: Vec<ComponentStatus>,
    },
    /// Path of a data slot, if there is one.
    Path {
        /// As the component's host sees it.
        path: Option<PathBuf>,
    },
    /// A tool has ended.
    Tool {
        /// How, and what it printed.
        output: ToolOutput,
    },
    /// A command has ended with this code; 128 + n when killed by signal n.
    Exited {
        /// The code.
        code: i32,
    },
    /// Not done.
    Error {
        /// Why.
        error: ControlError,
    },
}

/// From the launcher to the supervisor, over the socket pair that it was started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Launch {
    /// The supervisor's identity is on disk: begin. The gateways' listeners come along.
    Begin,
    /// The cluster is ready: go on without the launcher. Until then the end of
    /// the launcher is the end of the cluster.
    Keep,
}

/// From the supervisor, or its first stage, to the launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Launched {
    /// Hosts are made, components started, the control socket answers.
    Serving,
    /// It could not be done; nothing is left of it but files.
    Failed {
        /// What failed.
        what: String,
        /// What to do about it.
        hint: String,
    },
}
