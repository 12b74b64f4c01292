//! Embedded clusters of the real binaries, as root or as whoever runs the tests.
#![cfg(target_os = "linux")]

#[path = "cluster/lab.rs"]
mod lab;

use lab::{
    Lab, QUAKEPROOF, Ran, command_line, eventually, machine, namespaces_of, pids, pinned, processes_with,
    readable_by_others, resident_kib, runs,
};
use quakeproof::agent::protocol::{Request, Response};
use quakeproof::component::{
    ComponentControl, ComponentId, ComponentState, ComponentStatus, ControlError, DataSlot, HostId,
    StopMethod, Tool, ToolOutput, ToolRun,
};
use quakeproof::provider::Cluster;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

fn id(name: &str) -> ComponentId {
    ComponentId(name.to_owned())
}

fn aside(label: &str) -> DataSlot {
    DataSlot::Aside(label.to_owned())
}

#[test]
fn a_cluster_that_goes_down_leaves_nothing_behind() {
    let lab = Lab::new();
    let before = machine();
    lab.up(&["one"]);

    let supervisor = lab.supervisor_pid("one");
    let processes = processes_with(supervisor);
    let own_namespaces: Vec<String> =
        namespaces_of(&processes).difference(&namespaces_of(&[std::process::id()].into())).cloned().collect();
    assert!(processes.len() >= 6, "supervisor, agent and four components: {processes:?}");
    let networks = own_namespaces.iter().filter(|n| n.starts_with("net:")).count();
    assert_eq!(networks, 6, "five hosts and the fabric: {own_namespaces:?}");
    assert_eq!(machine(), before, "a running cluster changes nothing of the machine's network and mounts");

    assert_eq!(
        lab.kubectl("one", "auth whoami -o jsonpath={.status.userInfo.username}").succeeded(),
        "kubernetes-admin"
    );
    let leases = lab
        .kubectl("one", "get leases -n kube-system -o jsonpath='{.items[*].spec.holderIdentity}'")
        .succeeded();
    assert!(
        leases.contains("kube-controller-manager-1_") && leases.contains("kube-scheduler-1_"),
        "{leases}"
    );
    assert_eq!(readable_by_others(&lab.cluster_dir("one").join("pki")), Vec::<std::path::PathBuf>::new());
    let ours = processes.iter().filter(|p| command_line(**p).get(1).is_some_and(|w| w.starts_with("__")));
    let kib: u64 = ours.map(|p| resident_kib(*p)).sum();
    assert!(kib < 60 * 1024, "supervisor and agent use {kib} KiB");

    lab.cluster(["up", "one"]).refused(5, &["exists already", "cluster down one"]);
    // Numbers of namespaces are given to others once they are free: look only at
    // processes that were there before.
    let alive_before = pids();
    lab.cluster(["down", "one"]).succeeded();
    assert_eq!(processes.iter().filter(|p| runs(**p)).count(), 0);
    let left = namespaces_of(&alive_before.into_iter().filter(|p| runs(*p)).collect());
    let kept: Vec<_> = own_namespaces.iter().filter(|n| left.contains(*n)).collect();
    assert!(kept.is_empty(), "namespaces left: {kept:?}");
    assert_eq!(machine(), before);
    assert_eq!(fs::read_dir(lab.state().join("clusters")).unwrap().count(), 0);
    lab.cluster(["down", "one"]).succeeded();
    lab.cluster(["env", "one"]).refused(5, &["no cluster named `one`"]);
}

#[test]
fn clusters_side_by_side_share_nothing_and_die_alone() {
    let lab = Lab::new();
    let mut both = ["left", "right"].map(|name| lab.command(["up", name]).spawn().unwrap());
    assert!(both.iter_mut().all(|up| up.wait().unwrap().success()));
    lab.kubectl("left", "create configmap only-left").succeeded();
    assert!(!lab.kubectl("right", "get configmaps").succeeded().contains("only-left"));

    let supervisor = lab.supervisor_pid("left");
    let processes = processes_with(supervisor);
    Ran::of(Command::new("kill").args(["-9", &supervisor.to_string()])).succeeded();
    eventually("every process of the cluster dies with its supervisor", SOON, || {
        !processes.iter().any(|p| runs(*p))
    });
    let dead_and_running =
        [("left", "dead"), ("right", "running")].map(|(n, s)| (n.to_owned(), s.to_owned()));
    assert_eq!(lab.states(), dead_and_running);
    lab.cluster(["env", "left"])
        .refused(5, &["supervisor of cluster `left` has died", "every process", "cluster down left"]);
    lab.cluster(["down", "left"]).succeeded();
    assert!(!lab.cluster_dir("left").exists());

    an_agent_that_is_killed_is_replaced(&lab, "right");
    lab.kubectl("right", "get ns").succeeded();
}

fn an_agent_that_is_killed_is_replaced(lab: &Lab, name: &str) {
    let agent = || {
        let is_agent = |p: &u32| command_line(*p).get(1).is_some_and(|word| word == "__agent");
        processes_with(lab.supervisor_pid(name)).into_iter().find(is_agent)
    };
    let first = agent().unwrap();
    Ran::of(Command::new("kill").args(["-9", &first.to_string()])).succeeded();
    eventually("another agent runs", SOON, || agent().is_some_and(|now| now != first));
    let answer = block_on(lab.attach(name).agent(&Request::List)).unwrap();
    assert_eq!(answer, Response::Injections { injections: Vec::new() });
}

#[test]
fn a_member_is_restored_from_a_snapshot_with_the_flags_it_was_made_with() {
    let lab = Lab::new();
    // The older pair: flags and tools must fit both.
    let (versions, _) = pinned(1);
    lab.up(&["restore", "--kubernetes", &versions.kubernetes]);
    let cluster = lab.attach("restore");
    let control = cluster.control();
    let (etcd, control) = (id("etcd-1"), control.as_ref());

    lab.kubectl("restore", "create configmap kept").succeeded();
    tool(control, &etcd, Tool::Etcdctl, &["snapshot", "save", "{file:backup.db}"]);
    assert!(cluster.private_file("backup.db").is_file());
    lab.kubectl("restore", "create configmap lost").succeeded();

    let refused = block_on(control.move_data(&etcd, &DataSlot::InUse, &aside("original"))).unwrap_err();
    assert!(refused.to_string().contains("it runs; stop it first"), "{refused}");
    let first = status(control, "etcd-1");
    for _ in 0..2 {
        block_on(control.stop(&etcd, StopMethod::Kill)).unwrap();
        block_on(control.move_data(&etcd, &DataSlot::InUse, &aside("original"))).unwrap();
        assert_eq!(status(control, "etcd-1").state, ComponentState::Stopped);
    }
    assert_eq!(block_on(control.data_dir(&etcd, &DataSlot::InUse)).unwrap(), None);
    assert!(block_on(control.data_dir(&etcd, &aside("original"))).unwrap().is_some());

    let restore = [
        "snapshot",
        "restore",
        "{file:backup.db}",
        "--data-dir={data:inUse}",
        "--name={name}",
        "--initial-cluster={initialCluster}",
        "--initial-cluster-token={token}",
        "--initial-advertise-peer-urls={peerUrl}",
    ];
    tool(control, &etcd, Tool::Etcdutl, &restore);
    block_on(control.start(&etcd)).unwrap();
    block_on(control.start(&etcd)).unwrap();
    let again = status(control, "etcd-1");
    assert_eq!(again.state, ComponentState::Running);
    assert_ne!(again.incarnation, first.incarnation);

    let keys = || {
        let get = ["get", "--prefix", "--keys-only", "/registry/configmaps/default/"];
        run_tool(control, &etcd, Tool::Etcdctl, &get).filter(|o| o.code == 0).map(|o| o.stdout)
    };
    eventually("the restored member answers", SOON, || keys().is_some());
    let keys = keys().unwrap();
    assert!(keys.contains("/default/kept") && !keys.contains("/default/lost"), "{keys}");

    paused_and_dead_components_are_told_apart(&lab, control);
    let binding = block_on(cluster.binding()).unwrap();
    assert_eq!(binding.reported_versions[&etcd], versions.etcd);
    assert_eq!(binding.reported_versions[&id("kube-apiserver-1")], versions.kubernetes);
    assert_eq!(binding.binary_digests.len(), 6);
}

fn paused_and_dead_components_are_told_apart(lab: &Lab, control: &dyn ComponentControl) {
    let scheduler = id("kube-scheduler-1");
    block_on(control.pause(&scheduler)).unwrap();
    assert_eq!(status(control, "kube-scheduler-1").state, ComponentState::Paused);
    block_on(control.resume(&scheduler)).unwrap();
    let running = status(control, "kube-scheduler-1");
    assert_eq!(running.state, ComponentState::Running);

    let pid = running.incarnation.split(':').next_back().unwrap().to_owned();
    lab.cluster(["exec", "restore", "client", "--", "kill", "-9", &pid]).succeeded();
    // It is started again a second later, so what is seen is kept.
    let seen = std::cell::RefCell::new(None);
    eventually("the end of the scheduler is seen", SOON, || {
        if let ComponentState::Exited { how } = status(control, "kube-scheduler-1").state {
            seen.replace(Some(how));
        }
        seen.borrow().is_some()
    });
    let how = seen.take().unwrap();
    assert!(how.starts_with("killed by signal 9\n  | "), "{how}");

    // A frozen component takes notice of being stopped.
    block_on(control.start(&scheduler)).unwrap();
    block_on(control.pause(&scheduler)).unwrap();
    block_on(control.stop(&scheduler, StopMethod::Terminate)).unwrap();
    assert_eq!(status(control, "kube-scheduler-1").state, ComponentState::Stopped);
    let unknown = block_on(control.start(&id("kubelet-1"))).unwrap_err();
    assert!(matches!(unknown, ControlError::NoSuchComponent { .. }), "{unknown}");
}

#[test]
fn controllers_that_exit_by_themselves_are_started_again_and_others_are_not() {
    let lab = Lab::new();
    lab.up(&["restarts"]);
    let cluster = lab.attach("restarts");
    let control = cluster.control();
    let (server, manager) = (id("kube-apiserver-1"), id("kube-controller-manager-1"));
    let control = control.as_ref();
    let first = status(control, &manager.0);
    let holder = || {
        let get = "get lease -n kube-system kube-controller-manager -o jsonpath={.spec.holderIdentity}";
        lab.kubectl("restarts", get)
    };
    let leader = holder().succeeded();

    // Without an API server a controller manager loses its Lease after ten seconds and exits.
    block_on(control.stop(&server, StopMethod::Kill)).unwrap();
    eventually("it is started again", SOON, || {
        let now = status(control, &manager.0);
        now.state == ComponentState::Running && now.incarnation != first.incarnation
    });
    assert_eq!(status(control, &server.0).state, ComponentState::Stopped, "stopped on purpose");
    let log = lab.cluster(["logs", "restarts", "kube-controller-manager-1"]).succeeded();
    assert!(log.contains("leaderelection lost") || log.contains("leader election lost"), "{log}");
    assert!(log.contains("it is started again in 1 s"), "{log}");

    block_on(control.start(&server)).unwrap();
    eventually("another process of it leads", Duration::from_secs(90), || {
        let now = holder();
        now.code == Some(0) && now.stdout.starts_with("kube-controller-manager-1_") && now.stdout != leader
    });

    block_on(control.stop(&manager, StopMethod::Kill)).unwrap();
    let pid = status(control, &server.0).incarnation.split(':').next_back().unwrap().to_owned();
    lab.cluster(["exec", "restarts", "client", "--", "kill", "-9", &pid]).succeeded();
    // The longest pause that could be due is over by then.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(status(control, &manager.0).state, ComponentState::Stopped, "never against a stop");
    let dead = status(control, &server.0).state;
    assert!(matches!(dead, ComponentState::Exited { .. }), "an API server stays as it ended: {dead:?}");
}

#[test]
fn three_members_survive_the_loss_of_one_and_api_servers_are_reached_one_by_one() {
    let lab = Lab::new();
    lab.up(&["ha", "--etcd", "3", "--api-servers", "2", "--controller-managers", "2", "--schedulers", "2"]);
    let cluster = lab.attach("ha");
    block_on(cluster.control().stop(&id("etcd-2"), StopMethod::Kill)).unwrap();
    // A write that meets the election of a new leader fails, and may have been written.
    let written = || {
        let ran = lab.kubectl("ha", "create configmap through-first");
        ran.code == Some(0) || ran.stderr.contains("AlreadyExists")
    };
    eventually("two members go on", SOON, written);
    let second =
        lab.kubectl("ha", "--context ha-kube-apiserver-2 get configmap through-first -o name").succeeded();
    assert_eq!(second.trim(), "configmap/through-first");
    let identities = lab.kubectl(
        "ha",
        "get leases -n kube-system -l apiserver.kubernetes.io/identity=kube-apiserver -o name",
    );
    assert_eq!(identities.succeeded().lines().count(), 2, "each API server has a name of its own");

    let dialer = cluster.dialer();
    let nowhere = block_on(dialer.socket(&HostId("elsewhere".to_owned()))).unwrap_err();
    assert!(nowhere.to_string().contains("no host `elsewhere`"), "{nowhere}");
    let local = block_on(async {
        let socket = dialer.socket(&HostId("client".to_owned())).await?;
        socket.connect(cluster.endpoint(&id("kube-apiserver-2")).unwrap().address).await?.local_addr()
    });
    let client = cluster.spec().hosts.iter().find(|h| h.host.0 == "client").unwrap().address;
    assert_eq!(local.unwrap().ip(), std::net::IpAddr::V4(client), "a socket belongs to the host asked for");
}

#[test]
fn an_unprivileged_user_brings_a_cluster_up_and_down() {
    let lab = Lab::new();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(lab.root(), open).unwrap();
    let (versions, binaries) = pinned(0);
    let copy = |from: &Path, to: &Path| {
        fs::create_dir(to).unwrap();
        for file in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let target = to.join(file.file_name());
            fs::hard_link(file.path(), &target)
                .or_else(|_| fs::copy(file.path(), &target).map(drop))
                .unwrap();
        }
    };
    let bin = lab.root().join("bin");
    fs::create_dir(&bin).unwrap();
    copy(&binaries.dir_kubernetes, &bin.join(format!("kubernetes-{}", versions.kubernetes)));
    copy(&binaries.dir_etcd, &bin.join(format!("etcd-{}", versions.etcd)));
    fs::copy(QUAKEPROOF, bin.join("quakeproof")).unwrap();
    fs::create_dir(lab.state()).unwrap();
    let root = Ran::of(Command::new("id").arg("-u")).succeeded().trim() == "0";
    if root {
        Ran::of(Command::new("chown").arg("65534:65534").arg(lab.state())).succeeded();
    }
    let cluster = |args: &[&str]| {
        let mut command = Command::new(if root { "setpriv" } else { "env" });
        if root {
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        }
        command.arg(bin.join("quakeproof")).arg("cluster").args(args);
        command.env("QUAKEPROOF_STATE", lab.state()).env("QUAKEPROOF_BIN_DIR", &bin);
        Ran::of(command.stdin(Stdio::null()))
    };

    cluster(&["up", "rootless"]).succeeded();
    let supervisor = lab.supervisor_pid("rootless");
    let processes = processes_with(supervisor);
    let uid =
        |pid: u32| fs::metadata(format!("/proc/{pid}")).map(|m| std::os::unix::fs::MetadataExt::uid(&m));
    assert!(processes.iter().all(|p| uid(*p).is_ok_and(|uid| uid != 0)), "nothing runs as root");
    let address = cluster(&["exec", "rootless", "etcd-1", "--", "hostname"]).succeeded();
    assert_eq!(address.trim(), "etcd-1");
    let env = cluster(&["env", "rootless"]).succeeded();
    let script = format!("{env}\nexec {} get --raw /readyz", binaries.path("kubectl").display());
    assert_eq!(Ran::of(Command::new("sh").args(["-c", &script])).succeeded(), "ok");
    cluster(&["down", "rootless"]).succeeded();
    assert!(!processes.iter().any(|p| runs(*p)));
    assert_eq!(fs::read_dir(lab.state().join("clusters")).unwrap().count(), 0);
}

#[test]
fn what_can_not_come_up_is_refused_with_a_hint_and_leaves_nothing() {
    let lab = Lab::new();
    let nothing_left = |name: &str| {
        assert!(!lab.cluster_dir(name).exists());
        let state = lab.state().display().to_string();
        let left = fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
        let ours =
            left.filter(|pid| runs(*pid) && command_line(*pid).iter().any(|word| word.contains(&state)));
        assert_eq!(ours.collect::<Vec<u32>>(), Vec::<u32>::new());
    };

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    lab.cluster(["up", "port", "--port", &port]).refused(5, &["in use", "hint:", "--port"]);
    nothing_left("port");

    lab.cluster(["up", "../escape"]).refused(3, &["a cluster's name has at most 63 lower-case letters"]);
    lab.cluster(["up", "two", "--etcd", "2"]).refused(3, &["1 or 3 members"]);

    let (versions, binaries) = pinned(0);
    let broken = lab.root().join("broken");
    let kubernetes = broken.join(format!("kubernetes-{}", versions.kubernetes));
    fs::create_dir_all(&kubernetes).unwrap();
    std::os::unix::fs::symlink(&binaries.dir_etcd, broken.join(format!("etcd-{}", versions.etcd))).unwrap();
    for name in ["kube-apiserver", "kube-controller-manager", "kubectl"] {
        std::os::unix::fs::symlink(binaries.path(name), kubernetes.join(name)).unwrap();
    }
    let scheduler = kubernetes.join("kube-scheduler");
    fs::write(&scheduler, "#!/bin/sh\necho no schedule today >&2\nexit 7\n").unwrap();
    fs::set_permissions(&scheduler, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = Ran::of(lab.command(["up", "broken"]).env("QUAKEPROOF_BIN_DIR", &broken));
    ran.refused(5, &["kube-scheduler-1 did not become ready", "exited with code 7", "no schedule today"]);
    nothing_left("broken");

    let ran = Ran::of(&mut without_namespaces(&lab));
    ran.refused(5, &["make a user namespace", "hint: namespaces are not allowed here"]);
}

/// What a container engine does to a machine: it drops what is forwarded, and has
/// bridged traffic filtered as well. The fabric is in a network namespace of its own.
#[test]
fn a_container_engines_firewall_does_not_reach_into_the_fabric() {
    let lab = Lab::new();
    let script = r#"
        ip link set lo up
        nft add table inet engine
        nft 'add chain inet engine forward { type filter hook forward priority 0; policy drop; }'
        nft add table bridge engine
        nft 'add chain bridge engine forward { type filter hook forward priority 0; policy drop; }'
        bridged=/proc/sys/net/bridge/bridge-nf-call-iptables
        [ ! -e $bridged ] || echo 1 > $bridged
        exec "$0" cluster up engine
    "#;
    let up = lab.command(["up", "engine"]);
    let mut machine = Command::new("unshare");
    let root = Ran::of(Command::new("id").arg("-u")).succeeded().trim() == "0";
    machine.args(if root { &["--net"][..] } else { &["--map-root-user", "--net"][..] });
    machine.args(["sh", "-e", "-c", script, QUAKEPROOF]);
    machine.envs(up.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    Ran::of(&mut machine).succeeded();
    assert_eq!(lab.states(), [("engine".to_owned(), "running".to_owned())]);
    lab.cluster(["down", "engine"]).succeeded();
}

#[test]
fn a_cluster_whose_launcher_dies_before_it_is_ready_dies_too() {
    let lab = Lab::new();
    let mut up = lab.command(["up", "orphan"]).spawn().unwrap();
    let identity = lab.cluster_dir("orphan").join("supervisor.json");
    eventually("the supervisor is known", SOON, || identity.exists());
    up.kill().unwrap();
    up.wait().unwrap();
    let supervisor = lab.supervisor_pid("orphan");
    eventually("the supervisor ends", SOON, || !runs(supervisor));
    assert_eq!(lab.states(), [("orphan".to_owned(), "dead".to_owned())]);
    lab.cluster(["down", "orphan"]).succeeded();
    assert!(!lab.cluster_dir("orphan").exists());

    // An interrupted launcher cleans up by itself.
    let up = lab.command(["up", "orphan"]).stderr(Stdio::piped()).spawn().unwrap();
    eventually("the supervisor is known", SOON, || identity.exists());
    let supervisor = lab.supervisor_pid("orphan");
    Ran::of(Command::new("kill").args(["-INT", &up.id().to_string()])).succeeded();
    let ran = Ran::from(up.wait_with_output().unwrap());
    ran.refused(130, &["interrupted; what had been made is removed"]);
    assert!(!runs(supervisor) && !lab.cluster_dir("orphan").exists());
}

/// `cluster up` as an unprivileged user in a changed root, where the kernel makes
/// no user namespace for anyone.
fn without_namespaces(lab: &Lab) -> Command {
    let fresh = lab.root().join("root");
    fs::create_dir(&fresh).unwrap();
    fs::set_permissions(lab.root(), fs::Permissions::from_mode(0o777)).unwrap();
    let state = lab.root().join("unprivileged");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    let program = lab.root().join("quakeproof");
    fs::copy(QUAKEPROOF, &program).unwrap();
    // Namespaces come before the first binary is executed; these need only exist.
    let (versions, _) = pinned(0);
    let bin = lab.root().join("placeholders");
    for dir in [format!("kubernetes-{}", versions.kubernetes), format!("etcd-{}", versions.etcd)] {
        fs::create_dir_all(bin.join(&dir)).unwrap();
        for name in [
            "etcd",
            "etcdctl",
            "etcdutl",
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubectl",
        ] {
            let path = bin.join(&dir).join(name);
            fs::write(&path, "#!/bin/false\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let root = Ran::of(Command::new("id").arg("-u")).succeeded().trim() == "0";
    let mut command = Command::new("unshare");
    let drop = if root { "setpriv --reuid 65534 --regid 65534 --clear-groups" } else { "" };
    command.args(if root { &["--mount"][..] } else { &["--map-current-user", "--keep-caps", "--mount"][..] });
    let script = format!("mount --rbind / \"$0\" && exec chroot \"$0\" {drop} \"$1\" cluster up forbidden");
    command.arg("sh").arg("-c").arg(script).arg(fresh).arg(program);
    command.env("QUAKEPROOF_STATE", state).env("QUAKEPROOF_BIN_DIR", bin).stdin(Stdio::null());
    command
}

fn status(control: &dyn ComponentControl, component: &str) -> ComponentStatus {
    let all = block_on(control.list()).unwrap();
    all.into_iter().find(|s| s.component.0 == component).unwrap()
}

fn run_tool(
    control: &dyn ComponentControl,
    member: &ComponentId,
    tool: Tool,
    args: &[&str],
) -> Option<ToolOutput> {
    let args = args.iter().map(|a| (*a).to_owned()).collect();
    block_on(control.run_tool(&ToolRun { component: member.clone(), tool, args })).ok()
}

fn tool(control: &dyn ComponentControl, member: &ComponentId, tool: Tool, args: &[&str]) {
    let output = run_tool(control, member, tool, args).unwrap();
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
