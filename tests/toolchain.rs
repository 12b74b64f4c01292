//! The ways to upstream binaries, against a loopback file server and a stand-in for Go.

#[path = "support/file_server.rs"]
mod file_server;
#[path = "support/skip.rs"]
mod skip;

use file_server::{FileServer, Served};
use quakeproof::digest::sha256_hex;
use quakeproof::exit::ExitCode;
use quakeproof::plan::Versions;
use quakeproof::provider::binaries::{
    BinariesError, BinarySet, Origin, Product, ProvideOptions, Release, Scrutiny, Source, etcd_for, locate,
    pinned_pairs, provide,
};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const BINARIES: [&str; 7] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "etcd", "etcdctl", "etcdutl"];

fn versions() -> Versions {
    let (kubernetes, etcd) = pinned_pairs()[0];
    Versions { kubernetes: kubernetes.to_owned(), etcd: etcd.to_owned() }
}

fn arch() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

/// A cache, a stand-in for Go, and what was said.
struct Bench {
    root: TempDir,
    said: Mutex<Vec<String>>,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("go")).expect("a directory");
        // A link: a script that was just written may not be run while another thread forks.
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fake-go");
        symlink(script, root.path().join("go/go")).expect("a link");
        let bench = Self { root, said: Mutex::default() };
        bench.go_file("version", "go1.99.0\n");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn go_file(&self, name: &str, text: &str) {
        fs::write(self.path("go").join(name), text).expect("writes");
    }

    /// One line per `go build` so far.
    fn builds(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("go/log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn offline(&self) -> ProvideOptions {
        let mut options = ProvideOptions::new(self.path("cache"));
        options.offline = true;
        options.go = self.path("go/go").into();
        options
    }

    fn online(&self, server: &FileServer) -> ProvideOptions {
        let mut options = self.offline();
        options.offline = false;
        options.sites.kubernetes.clone_from(&server.url);
        options.sites.etcd.clone_from(&server.url);
        options
    }

    fn provide(&self, options: &ProvideOptions) -> Result<BinarySet, BinariesError> {
        provide(&versions(), options, &|line| self.said.lock().expect("unpoisoned").push(line.to_owned()))
    }

    fn said(&self) -> String {
        self.said.lock().expect("unpoisoned").join("\n")
    }

    fn entries(&self) -> Vec<String> {
        let listing = fs::read_dir(self.path("cache/toolchain")).expect("a directory");
        let names = listing.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| !name.starts_with(".lock")).collect()
    }
}

fn kubernetes_files() -> HashMap<String, Served> {
    let mut files = HashMap::new();
    for name in &BINARIES[..4] {
        let path = format!("/{}/bin/linux/{}/{name}", versions().kubernetes, arch());
        let bytes = format!("official {name}").into_bytes();
        files.insert(format!("{path}.sha256"), sha256_hex(&bytes).into_bytes().into());
        files.insert(path, bytes.into());
    }
    files
}

fn etcd_files() -> HashMap<String, Served> {
    let version = versions().etcd;
    let stem = format!("etcd-{version}-linux-{}", arch());
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    let extra = ["README.md", "sub/etcd"];
    for name in BINARIES[4..].iter().chain(&extra) {
        let bytes = format!("official {name}");
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("{stem}/{name}"), bytes.as_bytes()).expect("appends");
    }
    let archive = tar.into_inner().and_then(|gzip| gzip.finish()).expect("an archive");
    let sums = format!("{}  other.tar.gz\n{}  {stem}.tar.gz\n", "0".repeat(64), sha256_hex(&archive));
    HashMap::from([
        (format!("/{version}/SHA256SUMS"), sums.into_bytes().into()),
        (format!("/{version}/{stem}.tar.gz"), archive.into()),
    ])
}

fn all_files() -> HashMap<String, Served> {
    kubernetes_files().into_iter().chain(etcd_files()).collect()
}

#[test]
fn a_release_with_the_right_checksum_is_downloaded_once_and_executable() {
    let bench = Bench::new();
    let server = FileServer::start(all_files());
    let options = bench.online(&server);
    let set = bench.provide(&options).expect("downloads");
    for name in BINARIES {
        let text = fs::read_to_string(set.path(name)).expect("is there");
        assert_eq!(text, format!("official {name}"));
        let mode = set.path(name).metadata().expect("is there").permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{name} is executable");
    }
    assert!(!set.dir_etcd.join("README.md").exists(), "only what a drill needs is kept");
    assert!(bench.said().contains("downloading"), "{}", bench.said());
    assert!(bench.builds().is_empty());

    let before = server.requests();
    assert_eq!(bench.provide(&options).expect("is cached"), set);
    assert_eq!(server.requests(), before, "the cache needs no connection");
}

#[test]
fn a_release_with_a_wrong_checksum_is_thrown_away_and_nothing_takes_its_place() {
    let path = format!("/{}/bin/linux/{}/kube-scheduler", versions().kubernetes, arch());
    let archive = etcd_files().into_keys().find(|p| p.ends_with(".tar.gz")).expect("an archive");
    for tampered in [path, archive] {
        let bench = Bench::new();
        let mut files = all_files();
        files.insert(tampered.clone(), b"something else".to_vec().into());
        let server = FileServer::start(files);
        let error = bench.provide(&bench.online(&server)).expect_err("a wrong checksum");
        assert!(matches!(&error, BinariesError::Checksum { url, .. } if url.ends_with(&tampered)), "{error}");
        assert_eq!(error.exit_code(), ExitCode::Refused);
        assert!(bench.builds().is_empty(), "a possible attack is not papered over");
        let product = if tampered.ends_with(".tar.gz") { "etcd" } else { "kubernetes" };
        assert!(!bench.entries().iter().any(|e| e.contains(product)), "{:?}", bench.entries());
    }
}

#[test]
fn a_version_that_the_site_does_not_have_is_built() {
    let bench = Bench::new();
    let server = FileServer::start(HashMap::new());
    let set = bench.provide(&bench.online(&server)).expect("builds");
    assert_eq!(bench.builds().len(), BINARIES.len());
    assert!(bench.said().contains("404"), "{}", bench.said());
    for name in BINARIES {
        assert!(set.path(name).is_file(), "{name}");
    }
}

#[test]
fn a_transfer_that_breaks_off_leaves_nothing_and_the_binary_is_built() {
    let bench = Bench::new();
    let mut files = all_files();
    for (path, file) in &mut files {
        if path.ends_with("/kubectl") {
            file.announced += 10;
        }
    }
    let server = FileServer::start(files);
    let set = bench.provide(&bench.online(&server)).expect("builds");
    assert_eq!(bench.builds().len(), 4, "kubernetes is built, etcd came over: {}", bench.said());
    let text = fs::read_to_string(set.path("kube-apiserver")).expect("is there");
    assert!(!text.contains("official"), "half a release is not mixed with a build");
}

#[test]
fn a_site_that_does_not_answer_the_connection_is_given_up_within_five_seconds() {
    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, listen, socket};
    use std::os::fd::AsRawFd;
    // A full accept queue drops what knocks, as a firewall does.
    let listener = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).expect("a socket");
    bind(listener.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).expect("a port");
    listen(&listener, Backlog::new(0).expect("allowed")).expect("listens");
    let address: SockaddrIn = nix::sys::socket::getsockname(listener.as_raw_fd()).expect("an address");
    let address = std::net::SocketAddr::from(std::net::SocketAddrV4::from(address));
    let mut waiting = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        waiting.push(stream);
        assert!(waiting.len() < 16, "the queue never fills");
    }

    let bench = Bench::new();
    let server = FileServer::start(etcd_files());
    let mut options = bench.online(&server);
    options.sites.kubernetes = format!("http://{address}");
    let start = Instant::now();
    bench.provide(&options).expect("builds");
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(1), "it was tried: {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(bench.builds().len(), 4);
}

#[test]
fn builds_use_the_carried_modules_and_no_other_go_than_the_one_here() {
    let bench = Bench::new();
    bench.provide(&bench.offline()).expect("builds");
    let builds = bench.builds();
    assert_eq!(builds.len(), BINARIES.len());
    for line in &builds {
        assert!(line.starts_with("GOTOOLCHAIN=local CGO_ENABLED=0 build -mod=readonly -trimpath"), "{line}");
    }
    let version = format!("gitVersion={} ", versions().kubernetes);
    assert!(builds[0].contains(&version) && builds[0].ends_with("k8s.io/kubernetes/cmd/kube-apiserver"));
    assert!(builds[4].ends_with("go.etcd.io/etcd/server/v3"), "{}", builds[4]);
    bench.provide(&bench.offline()).expect("is cached");
    assert_eq!(bench.builds().len(), BINARIES.len(), "built once");

    let mut again = bench.offline();
    again.rebuild = true;
    bench.provide(&again).expect("builds");
    assert_eq!(bench.builds().len(), 2 * BINARIES.len(), "a rebuild is one");
    assert_eq!(bench.entries().len(), 2, "it replaces its like: {:?}", bench.entries());
}

#[test]
fn two_at_once_build_once() {
    let bench = Bench::new();
    let sets: Vec<BinarySet> = std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| bench.provide(&bench.offline()).expect("provides")));
        both.map(|thread| thread.join().expect("no panic")).into()
    });
    assert_eq!(sets[0], sets[1]);
    assert_eq!(bench.builds().len(), BINARIES.len());
}

#[test]
fn offline_with_nothing_cached_and_no_go_lists_every_way_out() {
    let bench = Bench::new();
    let mut options = bench.offline();
    options.go = OsString::from("/nonexistent/go");
    let error = bench.provide(&options).expect_err("nothing is left");
    assert_eq!(error.exit_code(), ExitCode::Refused);
    let text = error.to_string();
    let ways =
        ["QUAKEPROOF_BIN_DIR", "--offline", "install Go 1.26.0 or newer", "cache/toolchain from a machine"];
    for way in ways {
        assert!(text.contains(way), "{way} in: {text}");
    }
    for tried in ["explicit directory: none", "cache: ", "official release: not allowed", "go build: "] {
        assert!(text.contains(tried), "{tried} in: {text}");
    }
}

#[test]
fn a_go_that_is_too_old_is_named_with_the_version_that_is_needed() {
    let bench = Bench::new();
    bench.go_file("version", "go1.22.1\n");
    let text = bench.provide(&bench.offline()).expect_err("too old").to_string();
    assert!(text.contains("is go1.22.1") && text.contains("go1.26.0 or newer"), "{text}");
    assert!(bench.builds().is_empty());
}

#[test]
fn a_failed_build_shows_what_go_said_and_leaves_no_entry() {
    let bench = Bench::new();
    bench.go_file("fails", "verifying module: checksum mismatch\n");
    let error = bench.provide(&bench.offline()).expect_err("fails");
    let text = error.to_string();
    assert!(text.contains("kube-apiserver") && text.contains("checksum mismatch"), "{text}");
    assert_eq!(bench.entries(), Vec::<String>::new());
}

#[test]
fn a_cached_binary_that_was_changed_is_noticed_and_provided_anew() {
    let bench = Bench::new();
    let set = bench.provide(&bench.offline()).expect("builds");
    let path = set.path("etcd");
    let good = fs::read_to_string(&path).expect("is there");
    let etcd = Release::new(Product::Etcd, &versions().etcd);

    fs::write(&path, good.replace("built", "BUILT")).expect("writes");
    let error = locate(&etcd, &bench.offline(), Scrutiny::Quick).expect_err("same size, other content");
    assert!(
        matches!(&error, BinariesError::Damaged { what, .. } if what.contains("`etcd` has SHA-256")),
        "{error}"
    );
    bench.provide(&bench.offline()).expect("builds anew");
    assert_eq!(fs::read_to_string(&path).expect("is there"), good);

    let modified = path.metadata().and_then(|m| m.modified()).expect("a time");
    fs::write(&path, good.replace("built", "BUILT")).expect("writes");
    fs::File::options().append(true).open(&path).and_then(|f| f.set_modified(modified)).expect("sets");
    assert!(locate(&etcd, &bench.offline(), Scrutiny::Quick).is_ok(), "the cheap look can't see this one");
    let error = locate(&etcd, &bench.offline(), Scrutiny::Full).expect_err("the full look can");
    assert!(matches!(error, BinariesError::Damaged { .. }), "{error}");
}

#[test]
fn a_cache_copied_from_another_machine_works_without_go() {
    let bench = Bench::new();
    bench.provide(&bench.offline()).expect("builds");
    let copied = Command::new("cp").arg("-r").arg(bench.path("cache")).arg(bench.path("copy")).status();
    assert!(copied.expect("cp runs").success());
    let mut options = bench.offline();
    options.cache_dir = bench.path("copy");
    options.go = OsString::from("/nonexistent/go");
    let set = bench.provide(&options).expect("is cached");
    assert!(set.path("etcdutl").starts_with(bench.path("copy")));
}

#[test]
fn an_explicit_directory_goes_first_and_is_refused_when_incomplete() {
    let bench = Bench::new();
    let dirs = [(format!("kubernetes-{}", versions().kubernetes), &BINARIES[..4])];
    for (dir, names) in &dirs {
        fs::create_dir_all(bench.path("mine").join(dir)).expect("a directory");
        for name in *names {
            let path = bench.path("mine").join(dir).join(name);
            fs::write(&path, "mine").expect("writes");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("sets");
        }
    }
    let mut options = bench.offline();
    options.explicit_dir = Some(bench.path("mine"));
    let set = bench.provide(&options).expect("kubernetes from there, etcd built");
    assert_eq!(fs::read_to_string(set.path("kubectl")).expect("is there"), "mine");
    assert!(set.dir_etcd.starts_with(bench.path("cache")));
    assert!(bench.said().contains("has no etcd-"), "{}", bench.said());

    fs::remove_file(set.path("kube-scheduler")).expect("removes");
    let text = bench.provide(&options).expect_err("incomplete").to_string();
    assert!(text.contains("`kube-scheduler`"), "{text}");

    options.explicit_dir = Some(bench.path("nowhere"));
    let text = bench.provide(&options).expect_err("not there").to_string();
    assert!(text.contains("is not a directory") && text.contains("kube-apiserver"), "{text}");
}

#[test]
fn a_pair_that_is_not_pinned_is_a_usage_error_before_any_connection() {
    let bench = Bench::new();
    let server = FileServer::start(all_files());
    let mixed = Versions { kubernetes: versions().kubernetes, etcd: pinned_pairs()[1].1.to_owned() };
    let unknown = Versions { kubernetes: "v1.2.3".to_owned(), etcd: versions().etcd };
    for pair in [mixed, unknown] {
        let error = provide(&pair, &bench.online(&server), &|_| {}).expect_err("not pinned");
        assert_eq!(error.exit_code(), ExitCode::Usage, "{error}");
        assert!(error.to_string().contains(pinned_pairs()[0].0), "{error}");
    }
    assert_eq!(server.requests(), 0);
    assert!(bench.builds().is_empty());
}

#[test]
fn the_real_binaries_report_the_version_that_they_are_filed_under() {
    let options = quakeproof::cli::toolchain::options_from_env(true);
    for (kubernetes, etcd) in pinned_pairs() {
        let find = |product, version: &str| {
            locate(&Release::new(product, version), &options, Scrutiny::Quick).expect("is whole")
        };
        let (Some(k), Some(e)) = (find(Product::Kubernetes, kubernetes), find(Product::Etcd, etcd)) else {
            let name = "the_real_binaries_report_the_version_that_they_are_filed_under";
            skip::skip(name, "no cached toolchain; `quakeproof toolchain provide` makes one");
            return;
        };
        let output = |dir: &Path, name: &str| {
            let output = Command::new(dir.join(name)).arg("--version").output().expect("runs");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let said = output(&k.dir, "kube-apiserver");
        assert_eq!(said.trim(), format!("Kubernetes {kubernetes}"));
        let said = output(&e.dir, "etcd");
        assert!(said.starts_with(&format!("etcd Version: {}\n", etcd.trim_start_matches('v'))), "{said}");
        if let Origin::Cached(Source::Built { go_version, .. }) = &e.origin {
            assert!(said.contains(&format!("Go Version: {go_version}")), "{said}");
        }
        assert_eq!(etcd_for(kubernetes), Some(*etcd));
    }
}
