//! Official releases, each file checked against its publisher's checksum.

use super::cache::Source;
use super::error::BinariesError;
use super::go::platform;
use super::pins::{Product, Release};
use super::{ProvideOptions, io};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// Platforms that both projects publish binaries for.
const PUBLISHED: [(&str, &str); 2] = [("linux", "amd64"), ("linux", "arm64")];
/// A site that has been connected to answers within this time.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The largest file is about 120 MB.
const BODY_WITHIN: Duration = Duration::from_secs(30 * 60);
/// Checksum files are small.
const CHECKSUMS_AT_MOST: u64 = 1 << 20;

/// Downloads every binary of `release` into `stage`. The inner `Err` says why
/// the site can't be used, so that the next way can be tried.
///
/// # Errors
/// A wrong checksum, or a failure to write.
pub(super) fn fetch(
    release: &Release,
    options: &ProvideOptions,
    stage: &Path,
    progress: &dyn Fn(&str),
) -> Result<Result<Source, String>, BinariesError> {
    if !PUBLISHED.contains(&platform()) {
        let (os, arch) = platform();
        return Ok(Err(format!("none is published for {os}/{arch}")));
    }
    let site = Site { agent: agent(options.connect_timeout), progress };
    let fetched = match release.product {
        Product::Kubernetes => kubernetes(&site, release, &options.sites.kubernetes, stage),
        Product::Etcd => etcd(&site, release, &options.sites.etcd, stage),
    };
    match fetched {
        Ok(url) => Ok(Ok(Source::Released { url })),
        Err(Setback::Unusable(why)) => Ok(Err(why)),
        Err(Setback::Fatal(error)) => Err(error),
    }
}

enum Setback {
    Unusable(String),
    Fatal(BinariesError),
}

impl From<BinariesError> for Setback {
    fn from(error: BinariesError) -> Self {
        Setback::Fatal(error)
    }
}

fn agent(connect: Duration) -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_resolve(Some(connect * 2 / 5))
        .timeout_connect(Some(connect * 3 / 5))
        .timeout_recv_response(Some(ANSWER_WITHIN))
        .timeout_recv_body(Some(BODY_WITHIN))
        .user_agent(concat!("quakeproof/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

fn kubernetes(site: &Site<'_>, release: &Release, base: &str, stage: &Path) -> Result<String, Setback> {
    let (os, arch) = platform();
    let dir = format!("{}/{}/bin/{os}/{arch}", base.trim_end_matches('/'), release.version);
    for name in release.product.binaries() {
        let url = format!("{dir}/{name}");
        let expected = checksum(&site.text(&format!("{url}.sha256"))?, None)
            .ok_or_else(|| Setback::Unusable(format!("{url}.sha256 holds no checksum")))?;
        let path = stage.join(name);
        site.file(&url, &expected, &path)?;
        make_executable(&path)?;
    }
    Ok(dir)
}

fn etcd(site: &Site<'_>, release: &Release, base: &str, stage: &Path) -> Result<String, Setback> {
    let (os, arch) = platform();
    let dir = format!("{}/{}", base.trim_end_matches('/'), release.version);
    let stem = format!("etcd-{}-{os}-{arch}", release.version);
    let url = format!("{dir}/{stem}.tar.gz");
    let sums = format!("{dir}/SHA256SUMS");
    let expected = checksum(&site.text(&sums)?, Some(&format!("{stem}.tar.gz")))
        .ok_or_else(|| Setback::Unusable(format!("{sums} holds no checksum for {stem}.tar.gz")))?;
    let archive = stage.join("archive.tar.gz");
    site.file(&url, &expected, &archive)?;
    unpack(&archive, &stem, release.product.binaries(), stage)
        .map_err(|error| Setback::Unusable(format!("{url} can't be unpacked: {error}")))?;
    for name in release.product.binaries() {
        let path = stage.join(name);
        if !path.is_file() {
            return Err(Setback::Unusable(format!("{url} holds no {stem}/{name}")));
        }
        make_executable(&path)?;
    }
    fs::remove_file(&archive).map_err(io("remove", &archive))?;
    Ok(url)
}

/// Takes only the wanted files, to paths of our own: names in the archive decide nothing.
fn unpack(archive: &Path, stem: &str, wanted: &[&str], into: &Path) -> std::io::Result<()> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(File::open(archive)?));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        if let Some(name) = wanted.iter().find(|name| path == Path::new(stem).join(name)) {
            std::io::copy(&mut entry, &mut File::create(into.join(name))?)?;
        }
    }
    Ok(())
}

fn make_executable(path: &Path) -> Result<(), BinariesError> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(io("make executable", path))
}

/// The checksum of `file` in the output of sha256sum, or the only word of a `.sha256` file.
fn checksum(text: &str, file: Option<&str>) -> Option<String> {
    let sum = text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (sum, name) = (words.next()?, words.next().map(|n| n.trim_start_matches('*')));
        (file.is_none() || name == file).then_some(sum)
    })?;
    (sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit())).then(|| sum.to_ascii_lowercase())
}

struct Site<'a> {
    agent: ureq::Agent,
    progress: &'a dyn Fn(&str),
}

impl Site<'_> {
    fn text(&self, url: &str) -> Result<String, Setback> {
        let unusable = |error: ureq::Error| Setback::Unusable(format!("{url}: {error}"));
        let mut response = self.agent.get(url).call().map_err(unusable)?;
        response.body_mut().with_config().limit(CHECKSUMS_AT_MOST).read_to_string().map_err(unusable)
    }

    fn file(&self, url: &str, expected: &str, path: &Path) -> Result<(), Setback> {
        let unusable = |error: String| Setback::Unusable(format!("{url}: {error}"));
        let mut response = self.agent.get(url).call().map_err(|e| unusable(e.to_string()))?;
        let total = response.body().content_length();
        let mut body = response.body_mut().as_reader();
        let mut file = File::create(path).map_err(io("create", path))?;
        let mut hash = Sha256::new();
        let mut meter = Meter { url, total, read: 0, told: 0 };
        let mut buffer = vec![0; 1 << 16];
        loop {
            let n = body.read(&mut buffer).map_err(|e| unusable(e.to_string()))?;
            if n == 0 {
                break;
            }
            hash.update(&buffer[..n]);
            file.write_all(&buffer[..n]).map_err(io("write", path))?;
            meter.advance(n, self.progress);
        }
        let actual = hex::encode(hash.finalize());
        if actual == expected {
            return Ok(());
        }
        fs::remove_file(path).map_err(io("remove", path))?;
        Err(BinariesError::Checksum { url: url.to_owned(), expected: expected.to_owned(), actual }.into())
    }
}

/// Tells the progress of a download about ten times.
struct Meter<'a> {
    url: &'a str,
    total: Option<u64>,
    read: u64,
    told: u64,
}

impl Meter<'_> {
    /// Between two lines when the size is not known.
    const STEP: u64 = 10 << 20;

    fn advance(&mut self, bytes: usize, progress: &dyn Fn(&str)) {
        self.read += bytes as u64;
        let step = self.total.map_or(Self::STEP, |total| (total / 10).max(1 << 20));
        if self.read - self.told >= step || self.total == Some(self.read) {
            self.told = self.read;
            let mb = |n: u64| n as f64 / 1e6;
            let of = self.total.map_or(String::new(), |total| format!(" of {:.1}", mb(total)));
            progress(&format!("downloading {}: {:.1}{of} MB", self.url, mb(self.read)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn a_checksum_is_found_by_file_name_and_nothing_else_passes_for_one() {
        let (a, b) = ("a".repeat(64), "B".repeat(64));
        let sums = format!("{a}  etcd-v1-linux-amd64.tar.gz\n{b} *etcd-v1-linux-arm64.tar.gz\n");
        assert_eq!(checksum(&sums, Some("etcd-v1-linux-amd64.tar.gz")), Some(a.clone()));
        assert_eq!(checksum(&sums, Some("etcd-v1-linux-arm64.tar.gz")), Some("b".repeat(64)));
        assert_eq!(checksum(&sums, Some("etcd-v1-linux-s390x.tar.gz")), None);
        assert_eq!(checksum(&a, None), Some(a.clone()));
        assert_eq!(checksum("<html>not found</html>", None), None);
        assert_eq!(checksum("", None), None);
    }
}
