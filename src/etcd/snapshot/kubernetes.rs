//! What Kubernetes keeps in a snapshot, told by keys and by how values begin: objects per
//! resource and namespace, the largest, the oldest, which are encrypted and by which key's name.
//!
//! Keys are `/registry/<group>/<resource>/<namespace>/<name>` (`--etcd-prefix` at its default).
//! Built-in resources have no group; a group has a dot. Values begin with `k8s\0` (protobuf), `{`
//! (JSON, custom resources), or `k8s:enc:<provider>:v<n>:<key name>:`.

use super::keyspace::Live;
use std::collections::HashMap;

/// Prefix of every object's key.
pub const PREFIX: &[u8] = b"/registry/";
/// Most groups that are told apart; a cluster has a few per namespace.
pub const MAX_GROUPS: usize = 200_000;
/// Most largest and oldest objects that are kept.
const EXTREMES: usize = 10;
/// No key name is longer.
const MAX_KEY_NAME: usize = 253;

/// Where an object is stored, from its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place<'a> {
    /// `<group>/<resource>` or `<resource>`.
    pub resource: &'a [u8],
    /// Its namespace; `None` for a cluster-scoped object.
    pub namespace: Option<&'a [u8]>,
}

/// How a value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form<'a> {
    /// Kubernetes' protobuf envelope.
    Protobuf,
    /// JSON.
    Json,
    /// Encrypted at rest.
    Encrypted {
        /// `aescbc`, `aesgcm`, `secretbox`, `kms`, …
        provider: &'a [u8],
        /// Name of the key, or of the KMS plugin.
        key: &'a [u8],
    },
    /// Nothing that Kubernetes writes.
    Other,
}

/// Objects and their size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub objects: u64,
    /// Bytes of their values as stored.
    pub bytes: u64,
}

/// What was counted.
#[derive(Debug, Default)]
pub struct Objects<'a> {
    places: Counter<Place<'a>>,
    forms: Counter<(&'a [u8], Form<'a>)>,
    /// Objects that are not told apart any more, see [`MAX_GROUPS`].
    pub beyond: Tally,
    /// Keys outside of [`PREFIX`].
    pub other_keys: u64,
    /// Largest values first.
    pub largest: Extremes<'a>,
    /// Lowest revision of creation first.
    pub oldest: Extremes<'a>,
}

impl<'a> Place<'a> {
    /// The place of a key; `None` outside of [`PREFIX`], and for what has no resource.
    #[must_use]
    pub fn of(key: &'a [u8]) -> Option<Self> {
        let path = key.strip_prefix(PREFIX)?;
        let slash = |from: usize| Some(from + path.get(from..)?.iter().position(|&byte| byte == b'/')?);
        let first = slash(0)?;
        // `services/specs` and `services/endpoints` are two resources of one folder.
        let folder = path[..first].contains(&b'.') || matches!(&path[..first], b"services" | b"ranges");
        let resource = if folder { slash(first + 1).unwrap_or(first) } else { first };
        let namespace = slash(resource + 1).map(|end| &path[resource + 1..end]);
        Some(Self { resource: &path[..resource], namespace })
    }
}

impl<'a> Form<'a> {
    /// The form of a value.
    #[must_use]
    pub fn of(value: &'a [u8]) -> Self {
        if value.starts_with(b"k8s\0") {
            return Self::Protobuf;
        }
        let Some(rest) = value.strip_prefix(b"k8s:enc:") else {
            return if value.first() == Some(&b'{') { Self::Json } else { Self::Other };
        };
        let mut parts = rest[..rest.len().min(2 * MAX_KEY_NAME)].split(|&byte| byte == b':');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(provider), Some(version), Some(key), Some(_)) if version.starts_with(b"v") => {
                Self::Encrypted { provider, key }
            }
            _ => Self::Other,
        }
    }
}

impl<'a> Objects<'a> {
    /// Counts an object, unless its key is another program's.
    pub fn add(&mut self, live: &Live<'a>) {
        let kv = &live.kv;
        let Some(place) = Place::of(kv.key) else {
            self.other_keys += 1;
            return;
        };
        let bytes = kv.value.len() as u64;
        if !self.places.add(place, bytes) {
            self.beyond.objects += 1;
            self.beyond.bytes += bytes;
        }
        self.forms.add((place.resource, Form::of(kv.value)), bytes);
        self.largest.offer(kv.value.len() as u64, kv.key);
        self.oldest.offer(u64::MAX - kv.create_revision.cast_unsigned(), kv.key);
    }

    /// Objects per place.
    pub fn places(&self) -> impl Iterator<Item = (&Place<'a>, &Tally)> {
        self.places.all.iter().map(|(place, tally)| (place, tally))
    }

    /// Objects per resource and form.
    pub fn forms(&self) -> impl Iterator<Item = (&(&'a [u8], Form<'a>), &Tally)> {
        self.forms.all.iter().map(|(form, tally)| (form, tally))
    }
}

/// Counts by something of which neighbours are mostly alike.
#[derive(Debug)]
struct Counter<K> {
    all: Vec<(K, Tally)>,
    index: HashMap<K, usize>,
    last: usize,
}

impl<K> Default for Counter<K> {
    fn default() -> Self {
        Self { all: Vec::new(), index: HashMap::new(), last: 0 }
    }
}

impl<K: Copy + Eq + std::hash::Hash> Counter<K> {
    /// False when there are too many to tell this one apart.
    fn add(&mut self, of: K, bytes: u64) -> bool {
        if self.all.get(self.last).is_none_or(|(last, _)| *last != of) {
            let next = self.all.len();
            if next == MAX_GROUPS && !self.index.contains_key(&of) {
                return false;
            }
            self.last = *self.index.entry(of).or_insert(next);
            if self.last == next {
                self.all.push((of, Tally::default()));
            }
        }
        let tally = &mut self.all[self.last].1;
        tally.objects += 1;
        tally.bytes += bytes;
        true
    }
}

/// The few keys with the highest figure.
#[derive(Debug, Default)]
pub struct Extremes<'a>(Vec<(u64, &'a [u8])>);

impl<'a> Extremes<'a> {
    fn offer(&mut self, figure: u64, key: &'a [u8]) {
        if self.0.len() == EXTREMES && self.0.last().is_some_and(|last| last.0 >= figure) {
            return;
        }
        // Of equals the one that was offered first stays first.
        let at = self.0.partition_point(|(other, _)| *other >= figure);
        self.0.insert(at, (figure, key));
        self.0.truncate(EXTREMES);
    }

    /// Figures and keys, highest figure first.
    #[must_use]
    pub fn highest_first(&self) -> &[(u64, &'a [u8])] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::snapshot::page::Entry;
    use crate::etcd::snapshot::proto::KeyValue;
    use crate::etcd::snapshot::view::KubernetesView;

    fn place(key: &str) -> Option<(String, Option<String>)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Place::of(key.as_bytes()).map(|place| (text(place.resource), place.namespace.map(text)))
    }

    #[test]
    fn keys_say_resource_and_namespace() {
        let is = |resource: &str, namespace: Option<&str>| {
            Some((resource.to_owned(), namespace.map(str::to_owned)))
        };
        assert_eq!(place("/registry/pods/a/b"), is("pods", Some("a")));
        assert_eq!(place("/registry/namespaces/a"), is("namespaces", None));
        assert_eq!(place("/registry/services/specs/a/b"), is("services/specs", Some("a")));
        assert_eq!(place("/registry/ranges/serviceips"), is("ranges", None));
        assert_eq!(
            place("/registry/apiregistration.k8s.io/apiservices/v1."),
            is("apiregistration.k8s.io/apiservices", None)
        );
        assert_eq!(place("/registry/example.com/things/a/b"), is("example.com/things", Some("a")));
        assert_eq!(place("/registry/example.com/"), is("example.com", None));
        assert_eq!(place("compact_rev_key"), None);
        assert_eq!(place("/registry/"), None);
        assert_eq!(place("/registry//"), is("", None));
        assert_eq!(place("/registry/services//a/b"), is("services/", Some("a")));
        assert_eq!(place("/registry/pods//b"), is("pods", Some("")));
    }

    #[test]
    fn values_say_their_form() {
        let encrypted = |provider: &'static str, key: &'static str| Form::Encrypted {
            provider: provider.as_bytes(),
            key: key.as_bytes(),
        };
        assert_eq!(Form::of(b"k8s\0\x0a"), Form::Protobuf);
        assert_eq!(Form::of(b"{\"kind\":1}"), Form::Json);
        assert_eq!(Form::of(b"k8s:enc:aescbc:v1:key1:\x01\x02:"), encrypted("aescbc", "key1"));
        assert_eq!(Form::of(b"k8s:enc:kms:v2:plugin:\0"), encrypted("kms", "plugin"));
        let unversioned = b"k8s:enc:aescbc:1:key1:\x01";
        for other in [&b""[..], b"k8s", b"k8s:enc:", b"k8s:enc:aescbc:v1:key1", unversioned, b"\0"] {
            assert_eq!(Form::of(other), Form::Other);
        }
    }

    #[test]
    fn the_highest_figures_stay() {
        let mut extremes = Extremes::default();
        for figure in [5, 1, 9, 9, 3, 7, 2, 8, 0, 4, 6, 11] {
            extremes.offer(figure, b"");
        }
        let figures: Vec<u64> = extremes.highest_first().iter().map(|e| e.0).collect();
        assert_eq!(figures, [11, 9, 9, 8, 7, 6, 5, 4, 3, 2]);
    }

    #[test]
    fn of_equal_figures_the_one_that_was_offered_first_is_first_and_stays() {
        let mut extremes = Extremes::default();
        for key in b"abcdefghijkl".chunks(1) {
            extremes.offer(1, key);
        }
        assert_eq!(
            extremes.highest_first().iter().flat_map(|e| e.1).copied().collect::<Vec<_>>(),
            b"abcdefghij"
        );
    }

    #[test]
    fn a_key_s_name_is_looked_for_in_twice_its_greatest_length() {
        let value = |len: usize| [b"k8s:enc:kms:v1:", &vec![b'n'; len - 8][..], b":sealed"].concat();
        assert!(matches!(Form::of(&value(506)), Form::Encrypted { key, .. } if key.len() == 498));
        assert_eq!(Form::of(&value(507)), Form::Other);
    }

    #[test]
    fn groups_beyond_the_limit_are_counted_together() {
        let keys: Vec<String> = (0..=MAX_GROUPS + 1).map(|n| format!("/registry/pods/{n}/x")).collect();
        let entry = Entry { page: 2, at: 0, key: b"", value: b"", is_bucket: false };
        let mut objects = Objects::default();
        // The last of them is of a group that is there.
        for key in keys.iter().chain([&keys[7]]) {
            let kv = KeyValue { key: key.as_bytes(), value: b"abc", ..KeyValue::default() };
            objects.add(&Live { entry, kv });
        }
        assert_eq!(objects.beyond, Tally { objects: 2, bytes: 6 });
        let (groups, seventh) = (objects.places().count(), objects.places().nth(7).unwrap());
        assert_eq!((groups, *seventh.1), (MAX_GROUPS, Tally { objects: 2, bytes: 6 }));
        let view = KubernetesView::of(&objects);
        let all = MAX_GROUPS as u64 + 3;
        assert_eq!((view.objects, view.bytes, view.beyond), (all, 3 * all, 2));
    }

    #[test]
    fn the_oldest_objects_are_those_of_the_lowest_revisions_of_creation() {
        let entry = Entry { page: 2, at: 0, key: b"", value: b"", is_bucket: false };
        let mut objects = Objects::default();
        for create_revision in [5, 2, 9] {
            let kv = KeyValue { key: b"/registry/pods/a/b", create_revision, ..KeyValue::default() };
            objects.add(&Live { entry, kv });
        }
        let oldest = KubernetesView::of(&objects).oldest;
        assert_eq!(oldest.iter().map(|row| row.create_revision).collect::<Vec<_>>(), [2, 5, 9]);
    }
}
