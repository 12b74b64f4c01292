//! The agent or the supervisor is killed in the middle of a run.

use crate::drills::{LONG, STANDING, Site};
use crate::lab::{command_line, eventually, processes_with, runs};
use crate::truth::assert_healthy;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;

#[test]
fn a_run_completes_although_its_agent_is_killed_during_the_fault() {
    let site = Site::standing();
    let mut run = site.start("agentless", &["--set", "faulted=2s"]);
    run.reached("injected", 1);
    let killed = agents(&site);
    assert_eq!(killed.len(), 1);
    killed.iter().for_each(|pid| kill_process(*pid));
    eventually("another agent runs", LONG, || agents(&site).difference(&killed).count() == 1);
    run.ended_with(0);
    assert_eq!(run.report()["outcome"], "completed");
    site.verify(&run);
    assert_healthy(&site);
    site.lap("the agent was killed");
}

#[test]
fn a_run_whose_standing_cluster_dies_is_left_faulted_until_the_cluster_is_removed() {
    let site = Site::standing();
    let supervisor = site.lab.supervisor_pid(STANDING);
    let processes = processes_with(supervisor);
    let mut run = site.start("ruled-out", &["--set", "faulted=2s"]);
    run.reached("injectionVerified", 1);
    kill_process(supervisor);
    let ended = run.ended_with(4);
    for words in ["supervisor", "has died", "quakeproof cluster down"] {
        assert!(ended.stdout.contains(words), "no {words:?} in {}", ended.stdout);
    }
    assert_eq!(run.report()["outcome"], "faulted");
    assert!(site.lock_record(STANDING).exists(), "what is faulted stays locked");
    eventually("every process of the cluster is gone", LONG, || !processes.iter().any(|pid| runs(*pid)));

    // Nobody can put data back into a cluster that does not run: the way out is to remove it.
    let run_dir = run.dir.display().to_string();
    site.quakeproof(["recover", &run_dir]).refused(4, &[]);
    site.lab.cluster(["down", STANDING]).succeeded();
    site.recover(&run, 2);
    assert_eq!(run.report()["outcome"], "recovered");
    assert!(!site.lab.cluster_dir(STANDING).exists());
    site.lap("the supervisor of a standing cluster was killed");
}

#[test]
fn a_run_whose_own_cluster_dies_is_aborted_and_leaves_nothing() {
    let site = Site::empty();
    let dir = site.lab.root().join("own");
    let mut run = site.start_in(&dir, "own.yaml", &["--set", "faulted=2s"], "");
    run.reached("injectionVerified", 1);
    let (cluster, _) = site.lab.states().remove(0);
    let supervisor = site.lab.supervisor_pid(&cluster);
    let processes = processes_with(supervisor);
    kill_process(supervisor);
    run.ended_with(2);
    assert_eq!(run.report()["outcome"], "aborted");
    site.verify(&run);
    assert!(!site.lock_record(&cluster).exists());
    assert_eq!(site.lab.states(), []);
    assert_eq!(processes.iter().filter(|pid| runs(**pid)).count(), 0);
    site.lap("the supervisor of the run's own cluster was killed");
}

fn agents(site: &Site) -> BTreeSet<u32> {
    let processes = processes_with(site.lab.supervisor_pid(STANDING));
    processes.into_iter().filter(|pid| command_line(*pid).get(1).is_some_and(|w| w == "__agent")).collect()
}

fn kill_process(pid: u32) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
}
