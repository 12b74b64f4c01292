//! A day.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A day of the calendar, written as `2027-01-31`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date(jiff::civil::Date);

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = |(index, byte): (usize, u8)| match index {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        };
        let formed = text.len() == 10 && text.bytes().enumerate().all(form);
        let date = formed.then(|| text.parse().ok()).flatten();
        date.map(Self).ok_or_else(|| format!("`{text}` is not a day; write it like `2027-01-31`"))
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Date {
    fn schema_name() -> Cow<'static, str> {
        "Date".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A day: 2027-01-31.",
            "pattern": r"^\d{4}-\d{2}-\d{2}$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_written_in_one_way() {
        assert_eq!("2028-02-29".parse::<Date>().unwrap().to_string(), "2028-02-29");
        for wrong in
            ["2027-02-29", "2027-1-31", "31.01.2027", "20270131", "2027-01-31T00:00", "", "２027-01-31"]
        {
            assert!(wrong.parse::<Date>().unwrap_err().contains("write it like"), "{wrong}");
        }
    }
}
