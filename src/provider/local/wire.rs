//! JSON lines over Unix sockets, with file descriptors attached where needed.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Serialize, de::DeserializeOwned};
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Longest line that is read: a tool's output fits, a runaway writer does not.
const LONGEST_LINE: usize = 64 << 20;
/// Descriptors that one message may carry.
const MOST_DESCRIPTORS: usize = 8;

/// One end of a connection.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    read: Vec<u8>,
    /// Descriptors received, each with the number of lines in `read` before its own.
    descriptors: Vec<(usize, OwnedFd)>,
}

impl Channel {
    /// Speaks over `stream`.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, read: Vec::new(), descriptors: Vec::new() }
    }

    /// The socket below.
    #[must_use]
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Sends `message` on a line of its own, `descriptors` (at most 8) along with its first byte.
    ///
    /// # Errors
    /// When the other end is gone.
    pub fn send<T: Serialize>(&mut self, message: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        if descriptors.is_empty() {
            return self.stream.write_all(&line);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for one message"));
        }
        let sent = sendmsg(&self.stream, &[IoSlice::new(&line)], &mut control, SendFlags::NOSIGNAL)?;
        self.stream.write_all(&line[sent..])
    }

    /// Receives the next message with the descriptors that came along; `None`
    /// when the other end has closed.
    ///
    /// # Errors
    /// When the line is not what was expected, or the connection breaks within one.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        loop {
            if let Some(end) = self.read.iter().position(|b| *b == b'\n') {
                let rest = self.read.split_off(end + 1);
                let line = std::mem::replace(&mut self.read, rest);
                let descriptors = self.take_descriptors();
                return Ok(Some((serde_json::from_slice(&line)?, descriptors)));
            }
            if self.read.len() > LONGEST_LINE {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "line too long"));
            }
            if self.fill()? == 0 {
                if self.read.is_empty() {
                    return Ok(None);
                }
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut bytes = [0_u8; 8192];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let flags = RecvFlags::CMSG_CLOEXEC;
            match recvmsg(&self.stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
                Err(rustix::io::Errno::INTR) => {}
                other => break other?,
            }
        };
        self.read.extend_from_slice(&bytes[..received.bytes]);
        // The kernel ends a read with the message that carries descriptors, but
        // may put earlier messages before it: they belong to the last line.
        let complete = self.read.len().saturating_sub(1);
        let lines_before = self.read[..complete].iter().filter(|b| **b == b'\n').count();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors.map(|d| (lines_before, d)));
            }
        }
        Ok(received.bytes)
    }

    fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        let all = std::mem::take(&mut self.descriptors);
        let (own, later): (Vec<_>, Vec<_>) = all.into_iter().partition(|(before, _)| *before == 0);
        self.descriptors = later.into_iter().map(|(before, d)| (before - 1, d)).collect();
        own.into_iter().map(|(_, d)| d).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;

    #[test]
    fn descriptors_arrive_with_the_message_they_were_sent_with() {
        let (a, b) = UnixStream::pair().unwrap();
        let (mut sender, mut receiver) = (Channel::new(a), Channel::new(b));
        let (kept, mut far) = UnixStream::pair().unwrap();
        sender.send(&"plain", &[]).unwrap();
        sender.send(&"x".repeat(100_000), &[kept.as_fd()]).unwrap();
        drop((sender, kept));

        let (first, none) = receiver.receive::<String>().unwrap().unwrap();
        assert_eq!((first.as_str(), none.len()), ("plain", 0));
        let (second, descriptors) = receiver.receive::<String>().unwrap().unwrap();
        assert_eq!((second.len(), descriptors.len()), (100_000, 1));
        let mut received = UnixStream::from(descriptors.into_iter().next().unwrap());
        received.write_all(b"hi").unwrap();
        drop(received);
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hi");
        assert!(receiver.receive::<String>().unwrap().is_none());
    }
}
