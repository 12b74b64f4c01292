//! Scalar values of a drill file that carry a unit.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// In a file such a value stands as its text.
macro_rules! as_text {
    ($($value:ty),+) => {$(
        impl Serialize for $value {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(de::Error::custom)
            }
        }
    )+};
}

as_text!(Span, Rate, Percent);

/// A duration with its unit, as `90s`, `1m 30s` or `250ms`. A bare number is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

impl Span {
    /// Whole nanoseconds; saturates after 584 years.
    #[must_use]
    pub fn as_ns(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// `n` seconds.
    #[must_use]
    pub const fn secs(n: u64) -> Self {
        Self(Duration::from_secs(n))
    }

    /// `n` milliseconds.
    #[must_use]
    pub const fn millis(n: u64) -> Self {
        Self(Duration::from_millis(n))
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits_only = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if digits_only {
            return Err(format!("duration `{text}` has no unit; write `{text}s` or `{text}ms`"));
        }
        humantime::parse_duration(text)
            .map(Span)
            .map_err(|e| format!("duration `{text}`: {e}; write it like `90s`, `1m 30s` or `250ms`"))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", humantime::format_duration(self.0))
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A duration with its unit: 250ms, 90s, 1m 30s, 2h.",
            "pattern": r"^\s*\d+\s*[a-zA-Z]+(\s*\d+\s*[a-zA-Z]+)*\s*$"
        })
    }
}

/// Operations per second, as `50/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(pub u32);

impl Rate {
    /// Largest rate that one client is asked to hold.
    pub const MAX: u32 = 10_000;

    /// The time between two operations.
    #[must_use]
    pub fn interval(self) -> Duration {
        Duration::from_nanos(1_000_000_000 / u64::from(self.0.max(1)))
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hint = "write it like `50/s`";
        let number = text.strip_suffix("/s").ok_or_else(|| format!("rate `{text}` has no unit; {hint}"))?;
        let n: u32 =
            number.trim().parse().map_err(|_| format!("rate `{text}` is not a whole number; {hint}"))?;
        if n == 0 || n > Self::MAX {
            return Err(format!("rate `{text}` is outside 1/s to {}/s", Self::MAX));
        }
        Ok(Rate(n))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> Cow<'static, str> {
        "Rate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Operations per second: 50/s. From 1/s to 10000/s.",
            "pattern": r"^\d+\s*/s$"
        })
    }
}

/// A part of a whole, as `99.9%`: thousandths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percent(u32);

impl Percent {
    const ALL: u32 = 100_000;

    /// What is missing to the whole.
    #[must_use]
    pub fn rest(self) -> Self {
        Self(Self::ALL - self.0)
    }

    /// So much of `total`, rounded down.
    #[must_use]
    pub fn of(self, total: u64) -> u64 {
        let part = u128::from(total) * u128::from(self.0) / u128::from(Self::ALL);
        u64::try_from(part).unwrap_or(total)
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hint = "write it like `99.9%`";
        let number = text.strip_suffix('%').ok_or_else(|| format!("`{text}` has no percent sign; {hint}"))?;
        let (whole, part) = number.trim().split_once('.').unwrap_or((number.trim(), "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 3 {
            return Err(format!("`{text}` is no percentage with at most three decimals; {hint}"));
        }
        let thousandths = format!("{whole}{part:0<3}").parse().ok().filter(|n| *n <= Self::ALL);
        thousandths.map(Percent).ok_or_else(|| format!("`{text}` is outside 0% to 100%"))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1000, format!("{:03}", self.0 % 1000));
        match part.trim_end_matches('0') {
            "" => write!(f, "{whole}%"),
            part => write!(f, "{whole}.{part}%"),
        }
    }
}

impl JsonSchema for Percent {
    fn schema_name() -> Cow<'static, str> {
        "Percent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A part of a whole: 99.9%. From 0% to 100%, at most three decimals.",
            "pattern": r"^\d+(\.\d{1,3})?%$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_read_exactly_and_written_as_read() {
        for (text, of_ten_thousand) in
            [("99.9%", 9990), ("0.01%", 1), ("0.001%", 0), ("100%", 10_000), ("7%", 700)]
        {
            let percent: Percent = text.parse().unwrap();
            assert_eq!((percent.of(10_000), percent.to_string().as_str()), (of_ten_thousand, text));
            assert_eq!(percent.rest().of(100_000) + percent.of(100_000), 100_000);
        }
        for wrong in ["99.9", "%", "1.%", ".5%", "100.001%", "-1%", "1.0001%", "99999999999%"] {
            wrong.parse::<Percent>().unwrap_err();
        }
    }

    #[test]
    fn a_duration_without_unit_is_refused_with_the_fix() {
        let error = "30".parse::<Span>().unwrap_err();
        assert!(error.contains("`30s`"), "{error}");
        assert_eq!("1m 30s".parse::<Span>().unwrap(), Span::secs(90));
        assert_eq!("250ms".parse::<Span>().unwrap().to_string(), "250ms");
    }

    #[test]
    fn a_rate_needs_its_unit_and_range() {
        assert_eq!("50/s".parse::<Rate>().unwrap(), Rate(50));
        assert!("50".parse::<Rate>().unwrap_err().contains("no unit"));
        assert!("0/s".parse::<Rate>().unwrap_err().contains("outside"));
        assert!("99999/s".parse::<Rate>().unwrap_err().contains("outside"));
    }
}
