//! A drill on a cluster that is not healthy is refused, and the cluster left as it was.

use crate::drills::{STANDING, Site, block_on};
use crate::lab::eventually;
use crate::truth::{assert_healthy, stored};
use quakeproof::component::{ComponentId, StopMethod};
use quakeproof::provider::Cluster;
use std::time::Duration;

#[test]
fn a_drill_on_an_unhealthy_cluster_is_refused_with_the_failing_check() {
    let site = Site::standing();
    let api_server = ComponentId("kube-apiserver-1".to_owned());
    let control = site.lab.attach(STANDING).control();
    block_on(control.stop(&api_server, StopMethod::Kill)).unwrap();
    let before = stored(&site);

    let mut run = site.start("unhealthy", &[]);
    let refused = run.ended_with(5);
    for words in ["not healthy", "apiReady", "kube-apiserver-1 is not ready"] {
        assert!(refused.stdout.contains(words), "no {words:?} in {}", refused.stdout);
    }
    assert_eq!(run.report()["outcome"], "refused");
    assert_eq!(run.undos(), []);
    site.verify(&run);
    assert_eq!(stored(&site), before, "nothing was harmed");

    block_on(control.start(&api_server)).unwrap();
    eventually("the API server is ready again", Duration::from_secs(60), || {
        site.lab.kubectl(STANDING, "get --raw /readyz").code == Some(0)
    });
    assert_healthy(&site);
    site.lap("refused on an unhealthy cluster");
}
