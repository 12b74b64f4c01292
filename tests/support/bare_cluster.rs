//! One real etcd and one real kube-apiserver on loopback, in a temporary
//! directory, with nothing of the product's provider between them and the test.

use futures::future::BoxFuture;
use quakeproof::agent::protocol::{Request, Response};
use quakeproof::component::network::{Dialer, DirectDialer, Endpoint, Identity};
use quakeproof::component::{
    ComponentControl, ComponentId, ComponentState, ComponentStatus, ControlError, Controlled, DataSlot,
    HostId, Role, StopMethod, ToolOutput, ToolRun,
};
use quakeproof::etcd::client::EtcdClient;
use quakeproof::plan::Binding;
use quakeproof::provider::{Cluster, ProviderError};
use quakeproof::wire::connection::{Connector, Protocol};
use quakeproof::wire::http::HttpClient;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const ETCD: &str = "etcd-1";
pub const API_SERVER: &str = "kube-apiserver-1";

/// A CA and what it signs.
pub struct Pki {
    ca: Issuer<'static, KeyPair>,
    pub ca_pem: String,
}

impl Pki {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "test CA");
        let key = KeyPair::generate().unwrap();
        let ca_pem = params.self_signed(&key).unwrap().pem();
        Self { ca: Issuer::new(params, key), ca_pem }
    }

    /// A certificate for both ends of a connection.
    pub fn issue(&self, user: &str, group: Option<&str>) -> Identity {
        let mut params =
            CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        let cert_pem = params.signed_by(&key, &self.ca).unwrap().pem();
        Identity { user: user.to_owned(), cert_pem, key_pem: key.serialize_pem() }
    }
}

/// A child that does not outlive the test.
struct Running(Child);

impl Running {
    fn start(binary: &Path, args: &[String], log: &Path) -> Self {
        let log = File::options().create(true).append(true).open(log).unwrap();
        let child = Command::new(binary)
            .args(args)
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}", binary.display()));
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub struct BareCluster {
    etcd: Mutex<Option<Running>>,
    _api_server: Running,
    dir: TempDir,
    etcd_bin: PathBuf,
    pki: Pki,
    etcd_port: u16,
    peer_port: u16,
    api_port: u16,
    observer: Identity,
}

impl BareCluster {
    /// Starts both and returns once the API server is ready.
    pub async fn start(kubernetes: &str, etcd: &str) -> Self {
        let bin = std::env::var_os("QUAKEPROOF_BIN_DIR")
            .map(PathBuf::from)
            .expect("QUAKEPROOF_BIN_DIR names the directory of kubernetes-<version>/ and etcd-<version>/");
        let (kube_bin, etcd_bin) =
            (bin.join(format!("kubernetes-{kubernetes}")), bin.join(format!("etcd-{etcd}")));
        let dir = tempfile::tempdir().unwrap();
        let pki = Pki::new();
        // Held together, so that they differ.
        let free: Vec<TcpListener> =
            (0..3).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        let ports: Vec<u16> = free.iter().map(|l| l.local_addr().unwrap().port()).collect();
        drop(free);
        let observer = pki.issue("quakeproof:observer", Some("system:masters"));
        write_pki(dir.path(), &pki, &observer);
        let api_args = api_args(dir.path(), ports[0], ports[2]);
        let etcd_running = start_etcd(&etcd_bin, dir.path(), "data", ports[0], ports[1]);
        let api_server = Running::start(
            &kube_bin.join("kube-apiserver"),
            &api_args,
            &dir.path().join("kube-apiserver.log"),
        );
        let cluster = Self {
            etcd: Mutex::new(Some(etcd_running)),
            _api_server: api_server,
            dir,
            etcd_bin,
            pki,
            etcd_port: ports[0],
            peer_port: ports[1],
            api_port: ports[2],
            observer,
        };
        cluster.await_ready().await;
        cluster
    }

    /// Kills etcd.
    pub fn kill_etcd(&self) {
        *self.etcd.lock().unwrap() = None;
    }

    /// Starts etcd on a data directory below the cluster's and returns once it serves.
    pub async fn start_etcd(&self, data: &str) {
        let running = start_etcd(&self.etcd_bin, self.dir.path(), data, self.etcd_port, self.peer_port);
        *self.etcd.lock().unwrap() = Some(running);
        let mut client = self.etcd_client();
        eventually("etcd serves", Duration::from_secs(20), async || {
            client.health(Duration::from_secs(1)).await.is_ok()
        })
        .await;
    }

    /// `etcdctl snapshot save`.
    pub fn save_snapshot(&self, name: &str) {
        let path = |file: &str| self.path(file).display().to_string();
        run(Command::new(self.etcd_bin.join("etcdctl")).env("ETCDCTL_API", "3").args([
            format!("--endpoints=https://127.0.0.1:{}", self.etcd_port),
            format!("--cacert={}", path("ca.crt")),
            format!("--cert={}", path("node.crt")),
            format!("--key={}", path("node.key")),
            "snapshot".to_owned(),
            "save".to_owned(),
            path(name),
        ]));
    }

    /// `etcdutl snapshot restore` into `data`, with or without a bump of the revision.
    pub fn restore_snapshot(&self, name: &str, data: &str, bump: Option<u64>) {
        let mut command = Command::new(self.etcd_bin.join("etcdutl"));
        command
            .args(["snapshot", "restore"])
            .arg(self.path(name))
            .arg("--data-dir")
            .arg(self.path(data))
            .args([
                "--name=etcd-1".to_owned(),
                format!("--initial-cluster=etcd-1=https://127.0.0.1:{}", self.peer_port),
                format!("--initial-advertise-peer-urls=https://127.0.0.1:{}", self.peer_port),
                format!("--initial-cluster-token={data}"),
            ]);
        if let Some(bump) = bump {
            command.args(["--mark-compacted".to_owned(), format!("--bump-revision={bump}")]);
        }
        run(&mut command);
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    pub fn endpoint_of(&self, component: &str) -> Endpoint {
        let port = if component == ETCD { self.etcd_port } else { self.api_port };
        Endpoint {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            server_name: "127.0.0.1".to_owned(),
            ca_pem: self.pki.ca_pem.clone(),
        }
    }

    pub fn observer(&self) -> Identity {
        self.observer.clone()
    }

    pub fn http(&self) -> HttpClient {
        let endpoint = self.endpoint_of(API_SERVER);
        HttpClient::over(
            Connector::new(Arc::new(DirectDialer), &endpoint, &self.observer, Protocol::Http1).unwrap(),
        )
    }

    pub fn etcd_client(&self) -> EtcdClient {
        EtcdClient::new(Arc::new(DirectDialer), &self.endpoint_of(ETCD), &self.observer).unwrap()
    }

    async fn await_ready(&self) {
        let mut http = self.http();
        let ready = async || {
            let answer = http.send(hyper::Method::GET, "/readyz", None, Duration::from_secs(1)).await;
            answer.is_ok_and(|a| a.is_success())
        };
        eventually("the API server is ready", Duration::from_secs(60), ready).await;
    }
}

/// Looks every 50 ms; panics when `what` does not come true in time.
pub async fn eventually(what: &str, within: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let until = Instant::now() + within;
    while !holds().await {
        assert!(Instant::now() < until, "not within {within:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn write_pki(dir: &Path, pki: &Pki, node: &Identity) {
    let service_accounts = KeyPair::generate().unwrap();
    for (file, text) in [
        ("ca.crt", pki.ca_pem.as_str()),
        ("node.crt", &node.cert_pem),
        ("node.key", &node.key_pem),
        ("sa.pub", &service_accounts.public_key_pem()),
        ("sa.key", &service_accounts.serialize_pem()),
    ] {
        fs::write(dir.join(file), text).unwrap();
    }
}

fn start_etcd(bin: &Path, dir: &Path, data: &str, client: u16, peer: u16) -> Running {
    let path = |file: &str| dir.join(file).display().to_string();
    let mut args = vec![
        "--name=etcd-1".to_owned(),
        format!("--data-dir={}", path(data)),
        format!("--initial-cluster=etcd-1=https://127.0.0.1:{peer}"),
        "--client-cert-auth".to_owned(),
        "--peer-client-cert-auth".to_owned(),
    ];
    for (kind, port) in [("client", client), ("peer", peer)] {
        let advertise = if kind == "client" { "advertise-client" } else { "initial-advertise-peer" };
        args.push(format!("--listen-{kind}-urls=https://127.0.0.1:{port}"));
        args.push(format!("--{advertise}-urls=https://127.0.0.1:{port}"));
    }
    for prefix in ["", "peer-"] {
        args.push(format!("--{prefix}trusted-ca-file={}", path("ca.crt")));
        args.push(format!("--{prefix}cert-file={}", path("node.crt")));
        args.push(format!("--{prefix}key-file={}", path("node.key")));
    }
    Running::start(&bin.join("etcd"), &args, &dir.join("etcd.log"))
}

fn api_args(dir: &Path, etcd: u16, port: u16) -> Vec<String> {
    let path = |file: &str| dir.join(file).display().to_string();
    vec![
        format!("--etcd-servers=https://127.0.0.1:{etcd}"),
        format!("--etcd-cafile={}", path("ca.crt")),
        format!("--etcd-certfile={}", path("node.crt")),
        format!("--etcd-keyfile={}", path("node.key")),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        // Never dialled; the API server refuses to advertise a loopback address.
        "--advertise-address=192.0.2.1".to_owned(),
        format!("--tls-cert-file={}", path("node.crt")),
        format!("--tls-private-key-file={}", path("node.key")),
        format!("--client-ca-file={}", path("ca.crt")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", path("sa.pub")),
        format!("--service-account-signing-key-file={}", path("sa.key")),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
    ]
}

/// What this cluster gives to code that takes any cluster: looks, but no control.
impl Cluster for BareCluster {
    fn name(&self) -> &str {
        "bare"
    }

    fn control(&self) -> Arc<dyn ComponentControl> {
        Arc::new(ListOnly)
    }

    fn dialer(&self) -> Arc<dyn Dialer> {
        Arc::new(DirectDialer)
    }

    fn endpoint(&self, component: &ComponentId) -> Result<Endpoint, ProviderError> {
        Ok(self.endpoint_of(&component.0))
    }

    fn identity(&self, user: &str, _: &[&str]) -> Result<Identity, ProviderError> {
        Ok(self.pki.issue(user, Some("system:masters")))
    }

    fn etcd_identity(&self) -> Result<Identity, ProviderError> {
        Ok(self.observer())
    }

    fn binding(&self) -> BoxFuture<'_, Result<Binding, ProviderError>> {
        Box::pin(async { Err(ProviderError::Control(no_control("binding"))) })
    }

    fn agent<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<Response, ControlError>> {
        Box::pin(async { Err(no_control("agent")) })
    }

    fn private_file(&self, name: &str) -> PathBuf {
        self.path(name)
    }

    fn secret_files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn agent_log(&self) -> Option<PathBuf> {
        None
    }

    fn logs(&self) -> Vec<(ComponentId, PathBuf)> {
        Vec::new()
    }
}

struct ListOnly;

fn no_control(what: &str) -> ControlError {
    ControlError::Failed { what: what.to_owned(), reason: "a bare cluster has none".to_owned() }
}

fn refuse<'a, T: Send + 'a>(what: &'static str) -> Controlled<'a, T> {
    Box::pin(async move { Err(no_control(what)) })
}

impl ComponentControl for ListOnly {
    fn list(&self) -> Controlled<'_, Vec<ComponentStatus>> {
        let status = |component: &str, role| ComponentStatus {
            component: ComponentId(component.to_owned()),
            role,
            host: HostId("localhost".to_owned()),
            state: ComponentState::Running,
            incarnation: "1".to_owned(),
        };
        Box::pin(async move { Ok(vec![status(ETCD, Role::Etcd), status(API_SERVER, Role::KubeApiserver)]) })
    }

    fn start<'a>(&'a self, _: &'a ComponentId) -> Controlled<'a, ()> {
        refuse("start")
    }

    fn stop<'a>(&'a self, _: &'a ComponentId, _: StopMethod) -> Controlled<'a, ()> {
        refuse("stop")
    }

    fn pause<'a>(&'a self, _: &'a ComponentId) -> Controlled<'a, ()> {
        refuse("pause")
    }

    fn resume<'a>(&'a self, _: &'a ComponentId) -> Controlled<'a, ()> {
        refuse("resume")
    }

    fn move_data<'a>(&'a self, _: &'a ComponentId, _: &'a DataSlot, _: &'a DataSlot) -> Controlled<'a, ()> {
        refuse("moveData")
    }

    fn data_dir<'a>(&'a self, _: &'a ComponentId, _: &'a DataSlot) -> Controlled<'a, Option<PathBuf>> {
        refuse("dataDir")
    }

    fn run_tool<'a>(&'a self, _: &'a ToolRun) -> Controlled<'a, ToolOutput> {
        refuse("runTool")
    }
}
