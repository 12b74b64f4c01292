//! The Kubernetes view of a snapshot, as it is reported.

use super::kubernetes::{Extremes, Form, Objects, Tally};
use super::text::Bytes;
use serde::Serialize;
use std::collections::BTreeMap;

/// What Kubernetes keeps in the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesView {
    /// Objects below `/registry/`.
    pub objects: u64,
    /// Bytes of their values as stored.
    pub bytes: u64,
    /// Keys elsewhere.
    pub other_keys: u64,
    /// Resources, names ascending.
    pub resources: Vec<ResourceView>,
    /// Namespaces, names ascending; namespaced objects only.
    pub namespaces: Vec<NamespaceView>,
    /// Objects that are in none of the lists, because there are too many groups.
    pub beyond: u64,
    /// Objects with the largest values, largest first.
    pub largest: Vec<LargeObject>,
    /// Objects that were created at the lowest revisions, lowest first.
    pub oldest: Vec<OldObject>,
    /// Keys that values are encrypted with, and how many with each.
    pub encryption: Vec<EncryptionView>,
}

/// The objects of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceView {
    /// `<group>/<resource>`, or `<resource>` for built-in ones.
    pub resource: String,
    /// How many.
    pub objects: u64,
    /// Bytes of their values as stored.
    pub bytes: u64,
    /// Of these, values in Kubernetes' protobuf envelope.
    pub protobuf: u64,
    /// Values in JSON.
    pub json: u64,
    /// Values encrypted at rest.
    pub encrypted: u64,
    /// Values in no form that is known.
    pub other: u64,
    /// Objects per namespace; the key "" has those of none.
    pub namespaces: BTreeMap<String, u64>,
}

/// The objects of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceView {
    /// Its name.
    pub namespace: String,
    /// How many.
    pub objects: u64,
    /// Bytes of their values as stored.
    pub bytes: u64,
}

/// An object with a large value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LargeObject {
    /// Its key.
    #[serde(flatten)]
    pub key: Bytes,
    /// Bytes of its value as stored.
    pub value_bytes: u64,
}

/// An object from early on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OldObject {
    /// Its key.
    #[serde(flatten)]
    pub key: Bytes,
    /// Revision of its creation.
    pub create_revision: u64,
}

/// The use of an encryption key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EncryptionView {
    /// `aescbc`, `aesgcm`, `secretbox`, `kms`, …
    pub provider: String,
    /// Name of the key, or of the KMS plugin.
    pub key: String,
    /// Objects encrypted with it, per resource.
    pub resources: BTreeMap<String, u64>,
}

impl KubernetesView {
    /// The view of what was counted.
    #[must_use]
    pub fn of(counted: &Objects<'_>) -> Self {
        let mut resources: BTreeMap<String, ResourceView> = BTreeMap::new();
        let mut namespaces: BTreeMap<String, Tally> = BTreeMap::new();
        for (place, tally) in counted.places() {
            let resource =
                resources.entry(lossy(place.resource)).or_insert_with_key(|name| ResourceView::empty(name));
            resource.objects += tally.objects;
            resource.bytes += tally.bytes;
            let namespace = place.namespace.map(lossy);
            *resource.namespaces.entry(namespace.clone().unwrap_or_default()).or_default() += tally.objects;
            if let Some(namespace) = namespace {
                let sum = namespaces.entry(namespace).or_default();
                sum.objects += tally.objects;
                sum.bytes += tally.bytes;
            }
        }
        let mut encryption: BTreeMap<(String, String), BTreeMap<String, u64>> = BTreeMap::new();
        for ((resource, form), tally) in counted.forms() {
            let name = lossy(resource);
            let Some(view) = resources.get_mut(&name) else { continue };
            match form {
                Form::Protobuf => view.protobuf += tally.objects,
                Form::Json => view.json += tally.objects,
                Form::Other => view.other += tally.objects,
                Form::Encrypted { provider, key } => {
                    view.encrypted += tally.objects;
                    let of_key = encryption.entry((lossy(provider), lossy(key))).or_default();
                    *of_key.entry(name).or_default() += tally.objects;
                }
            }
        }
        let sum = |figure: fn(&Tally) -> u64| counted.places().map(|(_, t)| figure(t)).sum::<u64>();
        let old = |figure: u64| u64::MAX - figure;
        Self {
            objects: sum(|t| t.objects) + counted.beyond.objects,
            bytes: sum(|t| t.bytes) + counted.beyond.bytes,
            other_keys: counted.other_keys,
            resources: resources.into_values().collect(),
            namespaces: namespaces
                .into_iter()
                .map(|(namespace, t)| NamespaceView { namespace, objects: t.objects, bytes: t.bytes })
                .collect(),
            beyond: counted.beyond.objects,
            largest: listed(&counted.largest, |key, value_bytes| LargeObject { key, value_bytes }),
            oldest: listed(&counted.oldest, |key, figure| OldObject { key, create_revision: old(figure) }),
            encryption: encryption
                .into_iter()
                .map(|((provider, key), resources)| EncryptionView { provider, key, resources })
                .collect(),
        }
    }
}

impl ResourceView {
    fn empty(resource: &str) -> Self {
        Self {
            resource: resource.to_owned(),
            objects: 0,
            bytes: 0,
            protobuf: 0,
            json: 0,
            encrypted: 0,
            other: 0,
            namespaces: BTreeMap::new(),
        }
    }
}

fn listed<T>(extremes: &Extremes<'_>, row: impl Fn(Bytes, u64) -> T) -> Vec<T> {
    extremes.highest_first().iter().map(|(figure, key)| row(Bytes::of(key), *figure)).collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
