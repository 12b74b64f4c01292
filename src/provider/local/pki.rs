//! A cluster's own certificate authorities and the certificates they sign.

use super::layout::{ClusterDir, ClusterSpec, SERVICE_ADDRESS};
use crate::clock::{Clock, SystemClock};
use crate::component::Role;
use crate::component::network::Identity;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// User name of the administrator, as kubeadm names it.
pub const ADMIN_USER: &str = "kubernetes-admin";
/// Organization attribute of a subject (X.520), which Kubernetes reads as a group.
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];
/// Certificates outlive any drill; clusters don't.
const VALID_YEARS: i32 = 10;

/// Which authority signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// API servers and their clients.
    Kubernetes,
    /// etcd members and their clients.
    Etcd,
}

impl Authority {
    fn file(self) -> &'static str {
        match self {
            Authority::Kubernetes => "ca",
            Authority::Etcd => "etcd-ca",
        }
    }

    fn common_name(self) -> &'static str {
        match self {
            Authority::Kubernetes => "kubernetes",
            Authority::Etcd => "etcd-ca",
        }
    }

    /// Name of its certificate in `pki/`.
    #[must_use]
    pub fn certificate_file(self) -> String {
        format!("{}.crt", self.file())
    }
}

/// What a certificate is for.
enum Purpose {
    Client,
    Server(Vec<String>),
    Peer(Vec<String>),
}

/// Makes the authorities and every component's certificates in `pki/`.
///
/// # Errors
/// When a file can't be written.
pub fn create(dir: &ClusterDir, spec: &ClusterSpec) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(dir.pki())?;
    let kubernetes = Signer::create(dir, Authority::Kubernetes)?;
    let etcd = Signer::create(dir, Authority::Etcd)?;
    let service_accounts = KeyPair::generate().map_err(io::Error::other)?;
    write_secret(&dir.pki_file("sa.key"), &service_accounts.serialize_pem())?;
    write_secret(&dir.pki_file("sa.pub"), &service_accounts.public_key_pem())?;

    etcd.write(dir, "apiserver-etcd-client", "kube-apiserver-etcd-client", &[], Purpose::Client)?;
    for component in &spec.components {
        let name = &component.component.0;
        let address = spec.address(&component.component).map(|a| a.to_string()).unwrap_or_default();
        let mut names =
            vec![component.host.0.clone(), "localhost".to_owned(), "127.0.0.1".to_owned(), address];
        match component.role {
            Role::Etcd => {
                etcd.write(dir, &format!("{name}-server"), name, &[], Purpose::Server(names.clone()))?;
                etcd.write(dir, &format!("{name}-peer"), name, &[], Purpose::Peer(names))?;
            }
            Role::KubeApiserver => {
                names.extend(
                    ["kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned),
                );
                names.push("kubernetes.default.svc.cluster.local".to_owned());
                names.push(SERVICE_ADDRESS.to_string());
                kubernetes.write(dir, name, "kube-apiserver", &[], Purpose::Server(names))?;
            }
            Role::KubeControllerManager => {
                kubernetes.write(dir, name, "system:kube-controller-manager", &[], Purpose::Client)?;
            }
            Role::KubeScheduler => {
                kubernetes.write(dir, name, "system:kube-scheduler", &[], Purpose::Client)?
            }
        }
    }
    Ok(())
}

/// A client certificate signed by `authority` of the cluster in `dir`.
///
/// # Errors
/// When the authority's key can't be read, or there are more than two groups.
pub fn issue(dir: &ClusterDir, authority: Authority, user: &str, groups: &[&str]) -> io::Result<Identity> {
    Signer::open(dir, authority)?.issue(user, groups, Purpose::Client)
}

/// PEM of an authority's certificate.
///
/// # Errors
/// When it can't be read.
pub fn authority_pem(dir: &ClusterDir, authority: Authority) -> io::Result<String> {
    fs::read_to_string(dir.pki_file(&authority.certificate_file()))
}

/// Writes `text` to a new file that only its owner can read.
///
/// # Errors
/// When the file exists or can't be written.
pub fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

struct Signer {
    issuer: Issuer<'static, KeyPair>,
}

impl Signer {
    fn create(dir: &ClusterDir, authority: Authority) -> io::Result<Self> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let params = authority_params(authority);
        let certificate = params.self_signed(&key).map_err(io::Error::other)?;
        write_secret(&dir.pki_file(&authority.certificate_file()), &certificate.pem())?;
        write_secret(&dir.pki_file(&format!("{}.key", authority.file())), &key.serialize_pem())?;
        Ok(Self { issuer: Issuer::new(params, key) })
    }

    fn open(dir: &ClusterDir, authority: Authority) -> io::Result<Self> {
        let pem = fs::read_to_string(dir.pki_file(&format!("{}.key", authority.file())))?;
        let key = KeyPair::from_pem(&pem).map_err(io::Error::other)?;
        Ok(Self { issuer: Issuer::new(authority_params(authority), key) })
    }

    fn issue(&self, user: &str, groups: &[&str], purpose: Purpose) -> io::Result<Identity> {
        let (names, usages) = match purpose {
            Purpose::Client => (Vec::new(), vec![ExtendedKeyUsagePurpose::ClientAuth]),
            Purpose::Server(names) => (names, vec![ExtendedKeyUsagePurpose::ServerAuth]),
            Purpose::Peer(names) => {
                (names, vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth])
            }
        };
        let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
        params.distinguished_name = subject(user, groups)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = usages;
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params);
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?;
        Ok(Identity { user: user.to_owned(), cert_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }

    fn write(
        &self,
        dir: &ClusterDir,
        file: &str,
        user: &str,
        groups: &[&str],
        purpose: Purpose,
    ) -> io::Result<()> {
        let identity = self.issue(user, groups, purpose)?;
        write_secret(&dir.pki_file(&format!("{file}.crt")), &identity.cert_pem)?;
        write_secret(&dir.pki_file(&format!("{file}.key")), &identity.key_pem)
    }
}

fn subject(user: &str, groups: &[&str]) -> io::Result<DistinguishedName> {
    let mut name = DistinguishedName::new();
    // The name is a map by attribute, and the same attribute can be spelt in two ways.
    let kinds = [DnType::OrganizationName, DnType::CustomDnType(ORGANIZATION.to_vec())];
    if groups.len() > kinds.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a certificate carries at most two groups"));
    }
    for (kind, group) in kinds.into_iter().zip(groups) {
        name.push(kind, *group);
    }
    name.push(DnType::CommonName, user);
    Ok(name)
}

/// The same for every cluster, so that a signer can be opened from its key alone.
fn authority_params(authority: Authority) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, authority.common_name());
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params);
    params
}

/// From the first day of the last year, so that a wall clock that is set back
/// within a drill leaves the certificates valid.
fn set_validity(params: &mut CertificateParams) {
    let year = jiff::Timestamp::from_nanosecond(SystemClock::new().wall_ns())
        .map_or(2026, |now| i32::from(jiff::tz::TimeZone::UTC.to_datetime(now).year()));
    params.not_before = date_time_ymd(year - 1, 1, 1);
    params.not_after = date_time_ymd(year + VALID_YEARS, 1, 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_carries_two_groups_and_refuses_a_third() {
        let two = subject("u", &["a", "b"]).unwrap();
        assert_eq!(two.iter().count(), 3);
        assert!(subject("u", &["a", "b", "c"]).is_err());
    }

    #[test]
    fn identities_can_be_issued_by_another_process_later() {
        let temp = tempfile::tempdir().unwrap();
        let dir = ClusterDir::new(temp.path());
        fs::create_dir(dir.pki()).unwrap();
        Signer::create(&dir, Authority::Kubernetes).unwrap();
        let identity = issue(&dir, Authority::Kubernetes, "someone", &[]).unwrap();

        let mut roots = rustls::RootCertStore::empty();
        roots.add(der(&authority_pem(&dir, Authority::Kubernetes).unwrap())).unwrap();
        let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
            std::sync::Arc::new(roots),
            std::sync::Arc::new(rustls::crypto::ring::default_provider()),
        )
        .build()
        .unwrap();
        let now = rustls::pki_types::UnixTime::now();
        verifier.verify_client_cert(&der(&identity.cert_pem), &[], now).unwrap();
    }

    fn der(pem: &str) -> rustls::pki_types::CertificateDer<'static> {
        use rustls::pki_types::pem::PemObject;
        rustls::pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }
}
