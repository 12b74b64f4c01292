//! The table of pinned versions: which go together, and the Go modules that build them.

use std::fmt;

/// One of the two upstream projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Product {
    /// `k8s.io/kubernetes`.
    Kubernetes,
    /// `go.etcd.io/etcd`.
    Etcd,
}

impl Product {
    /// `kubernetes` or `etcd`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Product::Kubernetes => "kubernetes",
            Product::Etcd => "etcd",
        }
    }

    /// The commands that a drill needs of it.
    #[must_use]
    pub fn binaries(self) -> &'static [&'static str] {
        match self {
            Product::Kubernetes => {
                &["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"]
            }
            Product::Etcd => &["etcd", "etcdctl", "etcdutl"],
        }
    }
}

/// A product at a version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Release {
    /// Which project.
    pub product: Product,
    /// As `v1.37.2`.
    pub version: String,
}

impl Release {
    /// `version` as `v1.37.2`.
    #[must_use]
    pub fn new(product: Product, version: &str) -> Self {
        Self { product, version: version.to_owned() }
    }

    /// Name of the directory that holds it: `kubernetes-v1.37.2`.
    #[must_use]
    pub fn dir_name(&self) -> String {
        format!("{}-{}", self.product.name(), self.version)
    }

    /// What an explicit directory must hold, in words.
    pub(super) fn layout(&self) -> String {
        format!("{}/{{{}}}", self.dir_name(), self.product.binaries().join(","))
    }

    /// The Go module that pins it.
    pub(super) fn module(&self) -> Option<&'static Module> {
        MODULES.iter().find(|m| m.product == self.product && m.version == self.version)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.product.name(), self.version)
    }
}

/// A Go module of `toolchain/`, carried along so that an installed binary needs no source tree.
pub(super) struct Module {
    pub product: Product,
    pub version: &'static str,
    /// Name and text of each file.
    pub files: [(&'static str, &'static str); 3],
}

macro_rules! module {
    ($product:ident, $dir:literal, $version:literal) => {
        Module {
            product: Product::$product,
            version: $version,
            files: [
                ("go.mod", include_str!(concat!("../../../toolchain/", $dir, "-", $version, "/go.mod"))),
                ("go.sum", include_str!(concat!("../../../toolchain/", $dir, "-", $version, "/go.sum"))),
                ("tools.go", include_str!(concat!("../../../toolchain/", $dir, "-", $version, "/tools.go"))),
            ],
        }
    };
}

static MODULES: [Module; 4] = [
    module!(Kubernetes, "kubernetes", "v1.37.2"),
    module!(Etcd, "etcd", "v3.7.3"),
    module!(Kubernetes, "kubernetes", "v1.30.4"),
    module!(Etcd, "etcd", "v3.5.21"),
];

/// Kubernetes and etcd versions that are used together; the first is the default.
const PAIRS: [(&str, &str); 2] = [("v1.37.2", "v3.7.3"), ("v1.30.4", "v3.5.21")];

/// Kubernetes and etcd versions that are built, tested and predicted together,
/// newest first; the first is the default.
#[must_use]
pub fn pinned_pairs() -> &'static [(&'static str, &'static str)] {
    &PAIRS
}

/// The pair that is used when nothing else is asked for.
#[must_use]
pub fn newest_pair() -> (&'static str, &'static str) {
    PAIRS[0]
}

/// The pinned Kubernetes versions, for messages.
#[must_use]
pub fn known_kubernetes() -> String {
    PAIRS.iter().map(|(kubernetes, _)| *kubernetes).collect::<Vec<_>>().join(", ")
}

/// The etcd version that goes with a Kubernetes version.
#[must_use]
pub fn etcd_for(kubernetes: &str) -> Option<&'static str> {
    PAIRS.iter().find(|(k, _)| *k == kubernetes).map(|(_, e)| *e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pinned_version_has_a_module_that_requires_exactly_it() {
        for (kubernetes, etcd) in pinned_pairs() {
            let module = Release::new(Product::Kubernetes, kubernetes).module().expect("a module");
            assert!(module.files[0].1.contains(&format!("k8s.io/kubernetes {kubernetes}")));
            let module = Release::new(Product::Etcd, etcd).module().expect("a module");
            for part in ["server", "etcdutl", "etcdctl"] {
                assert!(module.files[0].1.contains(&format!("go.etcd.io/etcd/{part}/v3 {etcd}")), "{part}");
            }
        }
        assert_eq!(MODULES.len(), 2 * PAIRS.len());
    }

    #[test]
    fn etcd_is_known_for_pinned_versions_only() {
        assert_eq!(etcd_for("v1.37.2"), Some("v3.7.3"));
        assert_eq!(etcd_for("v1.37.1"), None);
    }
}
