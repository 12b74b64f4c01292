//! What it costs a load that its answers are recorded: the same requests in turns with a recorder and without, on as
//! many connections, against an API server that runs already.
//!
//! `recording <address:port> <server name> <ca.crt> <client.crt> <client.key> <connections> <requests> <rounds> <records>` asks
//! for the ConfigMap `quakeproof-load` in `default`. Prints the rate of each round, then the most memory that the process
//! has had, KiB, once so many answers were recorded in one history.

use quakeproof::client::context::{ClientContext, Setup};
use quakeproof::client::load::gate;
use quakeproof::client::load_request::get;
use quakeproof::client::load_spec::{Load, LoadProtocol, LoadRequest};
use quakeproof::clock::{Clock, SystemClock};
use quakeproof::component::ComponentId;
use quakeproof::component::network::{DirectDialer, Endpoint, Identity};
use quakeproof::drill::spec::Client;
use quakeproof::history::kind::ClientKind;
use quakeproof::history::recorder::Recorder;
use quakeproof::ledger::Ledger;
use quakeproof::load::arrivals::{Arrivals, Serial};
use quakeproof::load::connections::Connections;
use quakeproof::load::sender::{LoadProgress, Orders, Sender, Then};
use quakeproof::plan::{MinimumOperations, PlannedClient};
use quakeproof::wire::connection::{Connector, Protocol};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "default";
const NAME: &str = "flat-out";

struct Bench {
    endpoint: Endpoint,
    identity: Identity,
    connections: u32,
    requests: u32,
    clock: Arc<dyn Clock>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, server_name, ca, cert, key, connections, requests, rounds, records] =
        <[String; 9]>::try_from(args).map_err(|_| "nine arguments are wanted: see the head of the file")?;
    let mut bench = Bench {
        endpoint: Endpoint { address: address.parse()?, server_name, ca_pem: std::fs::read_to_string(ca)? },
        identity: Identity {
            user: "load".to_owned(),
            cert_pem: std::fs::read_to_string(cert)?,
            key_pem: std::fs::read_to_string(key)?,
        },
        connections: connections.parse()?,
        requests: requests.parse()?,
        clock: Arc::new(SystemClock::new()),
    };
    let dir = std::env::temp_dir().join(format!("quakeproof-recording-{}", std::process::id()));
    for round in 1..=rounds.parse::<u32>()? {
        println!("without {:.0}", bench.without().await?);
        println!("with {:.0}", bench.with(&dir.join(round.to_string())).await?);
    }
    bench.requests = records.parse()?;
    bench.with(&dir.join("many")).await?;
    std::fs::remove_dir_all(&dir)?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    println!("memory {}", kib.ok_or("the kernel tells no VmHWM")?);
    Ok(())
}

impl Bench {
    fn arrivals(&self) -> Arrivals {
        Arrivals::Serial(Serial { requests: self.requests, at_a_time: self.connections })
    }

    fn rate(&self, began: quakeproof::clock::MonoNs) -> f64 {
        f64::from(self.requests) / (self.clock.mono().since(began) as f64 / 1e9)
    }

    /// Requests per second when nobody listens to what comes back.
    async fn without(&self) -> Result<f64, Box<dyn Error>> {
        let connector =
            Connector::new(Arc::new(DirectDialer), &self.endpoint, &self.identity, Protocol::Http1)?;
        let connections =
            Connections::new(connector, Protocol::Http1, self.connections as usize, self.clock.clone());
        let orders = Orders {
            arrivals: self.arrivals(),
            seed: 1,
            in_flight: usize::MAX,
            then: Then::Nothing,
            request: Box::new(|_| get(NAMESPACE, "")),
        };
        let (tell, _) = mpsc::unbounded_channel();
        let sender = Sender::new(orders, connections, self.clock.clone(), CancellationToken::new(), tell);
        let began = self.clock.mono();
        sender.run_apart(watch::channel(LoadProgress::Waiting).0).await?.ok_or("no thread")?;
        Ok(self.rate(began))
    }

    /// The same as a client of a run, with its history.
    async fn with(&self, run_dir: &Path) -> Result<f64, Box<dyn Error>> {
        let (anchors, _anchors) = mpsc::unbounded_channel();
        let (signals, mut seen) = mpsc::unbounded_channel();
        let (gate, told) = gate();
        let stop = CancellationToken::new();
        let setup = Setup {
            planned: self.planned(),
            dialer: Arc::new(DirectDialer),
            endpoint: self.endpoint.clone(),
            identity: self.identity.clone(),
            ledger: Arc::new(Ledger::new()),
            namespace: NAMESPACE.to_owned(),
            seed: 1,
        };
        let context = ClientContext {
            setup,
            clock: self.clock.clone(),
            recorder: Recorder::create(run_dir, NAME, self.clock.clone(), anchors)?,
            signals,
            load: Some(told),
            stop,
        };
        let client = quakeproof::runner::clients::spawn(context);
        let runner = tokio::spawn(async move { while seen.recv().await.is_some() {} });
        let began = self.clock.mono();
        gate.go.cancel();
        client.await?;
        let rate = self.rate(began);
        runner.await?;
        Ok(rate)
    }

    fn planned(&self) -> PlannedClient {
        let load = Load {
            name: NAME.to_owned(),
            arrivals: self.arrivals(),
            request: LoadRequest::Get {},
            timeout: None,
            protocol: LoadProtocol::Http1,
            connections: self.connections,
            in_flight: self.connections,
            server: None,
            while_held_by: None,
        };
        PlannedClient {
            name: NAME.to_owned(),
            kind: ClientKind::Load,
            target: ComponentId("kube-apiserver-1".to_owned()),
            identity: self.identity.user.clone(),
            spec: Some(Client::Load(load)),
            every_ns: None,
            minimum: MinimumOperations { before: 0, during: 0, after: 0 },
        }
    }
}
