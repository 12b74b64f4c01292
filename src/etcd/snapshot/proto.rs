//! The three protobuf messages in etcd's buckets, decoded by hand without a copy.

/// An `mvccpb.KeyValue`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyValue<'a> {
    /// The key; empty in a bump marker.
    pub key: &'a [u8],
    /// Where the key's length is in the message; meaningless for an empty key.
    pub key_at: usize,
    /// Revision of the key's creation.
    pub create_revision: i64,
    /// Revision of this change.
    pub mod_revision: i64,
    /// Changes since the creation.
    pub version: i64,
    /// The value.
    pub value: &'a [u8],
    /// The lease it is attached to; 0 for none.
    pub lease: i64,
}

/// A `leasepb.Lease`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lease {
    /// Its id.
    pub id: i64,
    /// Seconds that were granted.
    pub ttl: i64,
    /// Seconds that were left at the last checkpoint; 0 when there was none.
    pub remaining_ttl: i64,
}

/// An `etcdserverpb.AlarmMember`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alarm {
    /// The member that raised it.
    pub member: u64,
    /// 1: no space, 2: corrupt.
    pub kind: u64,
}

/// What is wrong with a message.
pub type Malformed = &'static str;

enum Field<'a> {
    Number(u64),
    Bytes { len_at: usize, bytes: &'a [u8] },
    Skipped,
}

const CUT: Malformed = "a field reaches beyond the message";

#[inline]
fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, Malformed> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(CUT)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return if shift == 63 && byte > 1 { Err("a number has more than 64 bits") } else { Ok(number) };
        }
    }
    Err("a number has more than 64 bits")
}

#[inline]
fn sized<'a>(bytes: &'a [u8], at: &mut usize) -> Result<&'a [u8], Malformed> {
    let len = usize::try_from(varint(bytes, at)?).map_err(|_| CUT)?;
    let end = at.checked_add(len).ok_or(CUT)?;
    let slice = bytes.get(*at..end).ok_or(CUT)?;
    *at = end;
    Ok(slice)
}

/// Bytes that follow their length at `at`.
pub(super) fn sized_at(bytes: &[u8], mut at: usize) -> Option<&[u8]> {
    sized(bytes, &mut at).ok()
}

/// Hands out field by field; the last one of a number counts.
#[inline]
fn fields<'a>(message: &'a [u8], mut each: impl FnMut(u64, Field<'a>)) -> Result<(), Malformed> {
    let mut at = 0;
    while at < message.len() {
        let tag = varint(message, &mut at)?;
        let field = match tag & 7 {
            0 => Field::Number(varint(message, &mut at)?),
            1 => skip(message, &mut at, 8)?,
            2 => {
                let len_at = at;
                Field::Bytes { len_at, bytes: sized(message, &mut at)? }
            }
            5 => skip(message, &mut at, 4)?,
            _ => return Err("a field of unknown kind"),
        };
        if !(1..1 << 29).contains(&(tag >> 3)) {
            return Err("a field whose number is none");
        }
        each(tag >> 3, field);
    }
    Ok(())
}

fn skip<'a>(message: &[u8], at: &mut usize, bytes: usize) -> Result<Field<'a>, Malformed> {
    *at += bytes;
    if *at <= message.len() { Ok(Field::Skipped) } else { Err(CUT) }
}

impl<'a> KeyValue<'a> {
    /// Decodes a message; the empty one is a bump marker's.
    ///
    /// # Errors
    /// When it is no protobuf message, or a field is of another kind.
    pub fn decode(message: &'a [u8]) -> Result<Self, Malformed> {
        let mut kv = Self::default();
        let mut other_kind = false;
        fields(message, |number, field| match (number, field) {
            (1, Field::Bytes { len_at, bytes }) => (kv.key, kv.key_at) = (bytes, len_at),
            (2, Field::Number(n)) => kv.create_revision = n.cast_signed(),
            (3, Field::Number(n)) => kv.mod_revision = n.cast_signed(),
            (4, Field::Number(n)) => kv.version = n.cast_signed(),
            (5, Field::Bytes { bytes, .. }) => kv.value = bytes,
            (6, Field::Number(n)) => kv.lease = n.cast_signed(),
            (1..=6, _) => other_kind = true,
            _ => {}
        })?;
        if other_kind { Err("a field is of another kind than etcd's") } else { Ok(kv) }
    }
}

impl Lease {
    /// Decodes a message.
    ///
    /// # Errors
    /// When it is no protobuf message.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let mut lease = Self::default();
        fields(message, |number, field| match (number, field) {
            (1, Field::Number(n)) => lease.id = n.cast_signed(),
            (2, Field::Number(n)) => lease.ttl = n.cast_signed(),
            (3, Field::Number(n)) => lease.remaining_ttl = n.cast_signed(),
            _ => {}
        })?;
        Ok(lease)
    }
}

impl Alarm {
    /// Decodes a message.
    ///
    /// # Errors
    /// When it is no protobuf message.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let mut alarm = Self::default();
        fields(message, |number, field| match (number, field) {
            (1, Field::Number(n)) => alarm.member = n,
            (2, Field::Number(n)) => alarm.kind = n,
            _ => {}
        })?;
        Ok(alarm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_value_as_etcd_writes_it() {
        let message = b"\x0a\x03foo\x10\x02\x18\x83\x01\x20\x02\x2a\x03bar\x30\x07";
        let kv = KeyValue::decode(message).unwrap();
        assert_eq!((kv.key, kv.value, kv.create_revision), (&b"foo"[..], &b"bar"[..], 2));
        assert_eq!((kv.mod_revision, kv.version, kv.lease), (131, 2, 7));
        assert_eq!(sized_at(message, kv.key_at), Some(&b"foo"[..]));
        assert_eq!(KeyValue::decode(b"").unwrap(), KeyValue::default());
    }

    #[test]
    fn an_unknown_field_is_skipped_and_a_cut_one_is_an_error() {
        assert_eq!(KeyValue::decode(b"\x39________\x0a\x01k").unwrap().key, b"k");
        for bad in [
            &b"\x0a\x05foo"[..],
            b"\x10",
            b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
            b"\x0b",
            b"\x08\x01",
        ] {
            assert!(KeyValue::decode(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Lease::decode(b"\x08\x05\x10\x3c").unwrap(), Lease { id: 5, ttl: 60, remaining_ttl: 0 });
        assert_eq!(Alarm::decode(b"\x08\x05\x10\x01").unwrap(), Alarm { member: 5, kind: 1 });
    }

    #[test]
    fn a_number_has_up_to_64_bits() {
        let largest = b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(KeyValue::decode(largest).unwrap().create_revision, -1);
        assert!(KeyValue::decode(b"\x10\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00").is_err());
    }

    #[test]
    fn a_field_that_is_skipped_may_end_with_the_message() {
        for (whole, key) in
            [(&b"\x3d____"[..], &b""[..]), (b"\x39________", b""), (b"\x3d____\x0a\x01k", b"k")]
        {
            assert_eq!(KeyValue::decode(whole).unwrap().key, key);
        }
        for cut in [&b"\x3d___"[..], b"\x39_______"] {
            assert!(KeyValue::decode(cut).is_err(), "{cut:?}");
        }
    }

    #[test]
    fn a_field_has_a_number_of_29_bits_and_not_0() {
        assert!(KeyValue::decode(b"\xf8\xff\xff\xff\x0f\x00").is_ok());
        for none in [&b"\x00\x00"[..], b"\x80\x80\x80\x80\x10\x00"] {
            assert!(KeyValue::decode(none).is_err(), "{none:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes: Vec<u8>) {
            if let Ok(kv) = KeyValue::decode(&bytes) {
                prop_assert!(kv.key.len() + kv.value.len() <= bytes.len());
            }
        }
    }
}
