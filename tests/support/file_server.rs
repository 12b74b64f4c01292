//! A small HTTP file server on loopback.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Serves fixed files until the test process ends.
pub struct FileServer {
    /// `http://127.0.0.1:<port>`.
    pub url: String,
    requests: Arc<AtomicUsize>,
}

/// A file, or the first part of one.
#[derive(Clone)]
pub struct Served {
    /// What is sent.
    pub bytes: Vec<u8>,
    /// What is announced as length; more than `bytes` cuts the transfer short.
    pub announced: usize,
}

impl From<Vec<u8>> for Served {
    fn from(bytes: Vec<u8>) -> Self {
        Self { announced: bytes.len(), bytes }
    }
}

impl FileServer {
    /// Serves `files` by path; 404 for everything else.
    pub fn start(files: HashMap<String, Served>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                // A client that hangs up early is a case under test, not a failure of the server.
                let _ = answer(stream, &files);
            }
        });
        Self { url, requests }
    }

    /// Connections so far.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn answer(mut stream: TcpStream, files: &HashMap<String, Served>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let path = request.split_whitespace().nth(1).unwrap_or("");
    match files.get(path) {
        Some(file) => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                file.announced
            )?;
            stream.write_all(&file.bytes)
        }
        None => stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
    }
}
