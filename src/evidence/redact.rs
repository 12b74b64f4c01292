//! Takes secrets out of logs on their way into a bundle.

use super::patterns::{self, Pattern, REDACTED};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Largest part of a log that becomes evidence, bytes: its end.
pub const LOG_LIMIT: u64 = 8 << 20;

/// Longest line looked at in one piece, bytes; longer ones are broken up.
const MAX_LINE: u64 = 1 << 20;

/// Copies the end of a log into the bundle without its secrets; says how many were taken out.
///
/// # Errors
/// When the log can't be read or the copy not written.
pub fn copy_log(from: &Path, to: &Path) -> io::Result<u64> {
    let mut log = File::open(from)?;
    let size = log.metadata()?.len();
    let skipped = size.saturating_sub(LOG_LIMIT);
    let mut out = BufWriter::new(File::create(to)?);
    if skipped > 0 {
        log.seek(SeekFrom::Start(skipped))?;
        writeln!(out, "[the first {skipped} bytes are left out]")?;
    }
    let redacted = redact(BufReader::new(log), &mut out)?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(redacted)
}

/// Copies text line by line without its secrets; says how many were taken out. What is not
/// UTF-8 becomes U+FFFD.
///
/// # Errors
/// When reading or writing fails.
pub fn redact(mut input: impl BufRead, output: &mut impl Write) -> io::Result<u64> {
    let mut redacted = 0;
    let mut in_key = false;
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(redacted);
        }
        let text = String::from_utf8_lossy(&line);
        let (text, end) = match text.strip_suffix('\n') {
            Some(text) => (text, "\n"),
            None => (text.as_ref(), ""),
        };
        let text = if in_key { rest_after_key(text, &mut in_key) } else { Some(text) };
        let Some(text) = text else { continue };
        let mut kept = 0;
        for (range, pattern) in patterns::find(text) {
            output.write_all(&text.as_bytes()[kept..range.start])?;
            output.write_all(REDACTED.as_bytes())?;
            in_key = pattern == Pattern::PrivateKey && !text[range.clone()].contains("-----END ");
            kept = range.end;
            redacted += 1;
        }
        output.write_all(&text.as_bytes()[kept..])?;
        output.write_all(end.as_bytes())?;
    }
}

/// What of a line behind the first line of a PEM block is not part of the block. A log may
/// contain a first line that no block follows, so the block ends where base64 does.
fn rest_after_key<'a>(text: &'a str, in_key: &mut bool) -> Option<&'a str> {
    if let Some(end) = text.find("-----END ") {
        *in_key = false;
        let tail = &text[end + "-----END ".len()..];
        return tail.find("-----").map(|dashes| &tail[dashes + 5..]).filter(|rest| !rest.is_empty());
    }
    let body = text.trim();
    let headers = body.starts_with("Proc-Type:") || body.starts_with("DEK-Info:");
    if headers || body.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')) {
        return None;
    }
    *in_key = false;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redacted(text: &str) -> String {
        let mut out = Vec::new();
        redact(text.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_log_keeps_everything_but_its_secrets() {
        let log = "I1 starting\n-----BEGIN PRIVATE KEY-----\nMIIEvQ\nabc=\n-----END PRIVATE KEY-----\nI2 --token=abcdef0123456789 -v=2\nI3 Bearer abcdefghijkl, ok\n";
        assert_eq!(
            redacted(log),
            "I1 starting\n[redacted]\nI2 --token=[redacted] -v=2\nI3 Bearer [redacted], ok\n"
        );
    }

    #[test]
    fn a_lone_first_line_of_a_key_does_not_swallow_the_log() {
        let log = "-----BEGIN PRIVATE KEY-----\nan ordinary line.\n";
        assert_eq!(redacted(log), "[redacted]\nan ordinary line.\n");
    }

    #[test]
    fn only_the_end_of_a_long_log_is_kept_and_it_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        std::fs::write(&from, "line of log\n".repeat((LOG_LIMIT / 12 + 10) as usize)).unwrap();
        copy_log(&from, &to).unwrap();
        let copy = std::fs::read_to_string(&to).unwrap();
        assert!(copy.starts_with("[the first "), "{}", &copy[..40]);
        assert!(copy.len() as u64 <= LOG_LIMIT + 60);
    }

    const SECRETS: [&str; 6] = [
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAtop\nsecretsecret==\n-----END RSA PRIVATE KEY-----",
        "eyJhbGciOiJSUzI1NiIsImtpZCI6InN1cGVyIn0.eyJzdWIiOiJzZWNyZXQtY2FuYXJ5In0.c2VjcmV0c2VjcmV0",
        "Bearer secretsecretsecret",
        "token=secretsecretsecret",
        "\"password\": \"secretsecretsecret\"",
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpzZWNyZXRzZWNyZXQ",
    ];

    proptest! {
        #[test]
        fn nothing_that_looks_like_a_secret_is_left(
            parts in proptest::collection::vec((0usize..SECRETS.len(), "[ -~]{0,12}[ \n:]"), 1..6)
        ) {
            let mut text = String::new();
            for (secret, noise) in &parts {
                text.push_str(noise);
                text.push_str(SECRETS[*secret]);
                text.push('\n');
            }
            let clean = redacted(&text);
            prop_assert!(!clean.contains("secretsecret"), "{clean}");
            for line in clean.lines() {
                prop_assert!(patterns::find(line).is_empty(), "{line}");
            }
        }
    }
}
