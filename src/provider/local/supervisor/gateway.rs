//! Gateways: a loopback port of the machine leads to an API server in the
//! fabric. The listener was made outside and keeps the machine's namespace; the
//! connection onwards is made here, in the fabric's.

use crate::provider::local::layout::API_PORT;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// How long an API server that does not answer holds up a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Forwards what arrives at `listener` to the API server at `address` from now on.
pub fn start(listener: TcpListener, address: Ipv4Addr) {
    let target = SocketAddr::from((address, API_PORT));
    thread::spawn(move || {
        for near in listener.incoming() {
            match near {
                Ok(near) => {
                    thread::spawn(move || forward(near, target));
                }
                Err(error) => eprintln!("gateway to {target}: {error}"),
            }
        }
    });
}

/// The client sees a closed connection when the API server can't be reached, as
/// it would without a gateway in between.
fn forward(near: TcpStream, target: SocketAddr) {
    let Ok(far) = TcpStream::connect_timeout(&target, PATIENCE) else { return };
    // Only latency depends on these.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let (Ok(near_again), Ok(far_again)) = (near.try_clone(), far.try_clone()) else { return };
    thread::spawn(move || pump(&near_again, &far_again));
    pump(&far, &near);
}

fn pump(mut from: &TcpStream, mut to: &TcpStream) {
    if io::copy(&mut from, &mut to).is_ok() {
        // The other direction may have more to say.
        let _ = to.shutdown(Shutdown::Write);
    } else {
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}
