//! Version numbers of Kubernetes.

/// Minor number of a version such as `v1.37.2`.
#[must_use]
pub fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}
