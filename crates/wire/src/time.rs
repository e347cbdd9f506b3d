//! Timestamps: microseconds since 1970 inside, ISO 8601 in UTC with six decimals and `Z` on the wire.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is no ISO 8601 moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an ISO 8601 date and time with an offset")]
pub struct InvalidTimestamp;

impl Timestamp {
    /// The years 0000 to 9999, what ISO 8601 writes with four digits; anything outside is brought to the nearer end.
    const RANGE: std::ops::RangeInclusive<i64> = -62_167_219_200_000_000..=253_402_207_199_999_999;

    /// From microseconds since 1970.
    pub fn from_micros(micros: i64) -> Self {
        Self(micros.clamp(*Self::RANGE.start(), *Self::RANGE.end()))
    }

    /// Microseconds since 1970.
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// This moment plus `micros` microseconds, staying within the range that can be written.
    pub fn plus_micros(self, micros: i64) -> Self {
        Self::from_micros(self.0.saturating_add(micros))
    }

    /// Reads ISO 8601 with `Z` or a numeric offset; a finer fraction than microseconds is cut.
    ///
    /// # Errors
    /// [`InvalidTimestamp`] when the text is anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidTimestamp> {
        let moment: jiff::Timestamp = text.trim().parse().map_err(|_| InvalidTimestamp)?;
        Ok(Self::from_micros(moment.as_microsecond()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(moment) => write!(f, "{moment:.6}"),
            Err(_) => f.write_str("1970-01-01T00:00:00.000000Z"),
        }
    }
}

impl JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Timestamp")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn writes_six_decimals_and_z() {
        let moment = Timestamp::parse("2025-11-17T12:20:10.284136+01:00").unwrap();
        assert_eq!(moment.to_string(), "2025-11-17T11:20:10.284136Z");
        assert_eq!(Timestamp::from_micros(0).to_string(), "1970-01-01T00:00:00.000000Z");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(micros in any::<i64>()) {
            let moment = Timestamp::from_micros(micros);
            prop_assert_eq!(Timestamp::parse(&moment.to_string()), Ok(moment));
        }

        #[test]
        fn any_text_is_answered_without_a_panic(text in ".{0,40}") {
            let _ = Timestamp::parse(&text);
        }
    }
}
