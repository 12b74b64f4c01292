//! The cluster's network: one network namespace per host, one bridge per zone.
//!
//! The bridges are in the supervisor's own network namespace, which also routes
//! between zones. Nothing here can reach the machine's network.

use super::children::{Children, pid_of};
use super::host::Host;
use crate::provider::local::layout::{ClusterSpec, HostSpec, zone_address};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

/// Where `ip` is looked for beyond PATH; an unprivileged PATH often lacks these.
const SYSTEM_PATHS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// Makes every host and connects it to its zone.
///
/// # Errors
/// When `ip` is missing or refuses a command; its words are in the error.
pub fn build(spec: &ClusterSpec, children: &Arc<Children>) -> io::Result<BTreeMap<String, Host>> {
    let ip = find_ip()?;
    let zones: BTreeSet<u8> = spec.hosts.iter().map(|h| h.zone).collect();
    run_batch(&ip, &bridges(&zones), children)?;
    if zones.len() > 1 {
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    }
    let hosts: BTreeMap<String, Host> = thread::scope(|scope| {
        let ip = &ip;
        let makers: Vec<_> = (spec.hosts.iter().enumerate())
            .map(|(index, host)| {
                let maker = scope.spawn(move || make_host(ip, host, &port(index), children));
                (host.host.0.clone(), maker)
            })
            .collect();
        makers
            .into_iter()
            .map(|(name, maker)| {
                let made =
                    maker.join().unwrap_or_else(|_| Err(io::Error::other("a host's maker panicked")))?;
                Ok((name, made))
            })
            .collect::<io::Result<_>>()
    })?;
    run_batch(&ip, &plugs(&spec.hosts), children)?;
    Ok(hosts)
}

fn make_host(ip: &Path, host: &HostSpec, port: &str, children: &Arc<Children>) -> io::Result<Host> {
    let made = Host::create(&host.host.0)?;
    let (ip, children, script) = (ip.to_owned(), Arc::clone(children), interface(host, port));
    made.run(move || run_batch(&ip, &script, &children))?;
    Ok(made)
}

/// Name of the n-th host's end in the fabric; interface names hold 15 bytes, host names don't fit.
fn port(index: usize) -> String {
    format!("port{index}")
}

fn bridge(zone: u8) -> String {
    format!("zone{zone}")
}

fn bridges(zones: &BTreeSet<u8>) -> String {
    let mut script = "link set lo up\n".to_owned();
    for zone in zones {
        let (name, address) = (bridge(*zone), zone_address(*zone));
        let _ = writeln!(script, "link add {name} type bridge");
        let _ = writeln!(script, "addr add {address}/24 dev {name}");
        let _ = writeln!(script, "link set {name} up");
    }
    script
}

/// From inside the host's namespace: its own interface, the other end of which
/// lies in the namespace of pid 1.
fn interface(host: &HostSpec, port: &str) -> String {
    let gateway = zone_address(host.zone);
    let address = host.address;
    format!(
        "link set lo up\nlink add eth0 type veth peer name {port} netns 1\naddr add {address}/24 dev eth0\n\
         link set eth0 up\nroute add default via {gateway}\n"
    )
}

fn plugs(hosts: &[HostSpec]) -> String {
    let mut script = String::new();
    for (index, host) in hosts.iter().enumerate() {
        let _ = writeln!(script, "link set {} master {} up", port(index), bridge(host.zone));
    }
    script
}

fn find_ip() -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM_PATHS.map(PathBuf::from))
        .map(|dir| dir.join("ip"))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "`ip` not found; install the package iproute2")
        })
}

/// The only place that runs `ip`: one process per script, in the network
/// namespace of the calling thread.
fn run_batch(ip: &Path, script: &str, children: &Children) -> io::Result<()> {
    let mut command = Command::new(ip);
    command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = children.spawn(&mut command)?;
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(script.as_bytes()));
    let mut words = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut words)?;
    }
    let ended = children.wait(pid_of(&child));
    written?;
    if ended != super::children::Ended::Code(0) {
        return Err(io::Error::other(format!("`ip` {ended}: {}", words.trim())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::HostId;

    #[test]
    fn a_host_is_plugged_into_the_bridge_of_its_zone() {
        let host = HostSpec { host: HostId("etcd-1".into()), zone: 2, address: [10, 217, 2, 10].into() };
        assert!(interface(&host, "port0").contains("route add default via 10.217.2.1\n"));
        assert_eq!(plugs(&[host]), "link set port0 master zone2 up\n");
    }
}
