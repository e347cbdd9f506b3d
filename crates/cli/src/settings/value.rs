//! How values are written and read: the same text in flags, environment and file.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// A type that a setting may have.
pub(super) trait Value: Sized + PartialOrd {
    /// What to write, for help: `ADDR:PORT`.
    const FORM: &'static str;

    /// Whether TOML writes it without quotes.
    const BARE: bool = false;

    /// Reads it, or says what is wrong.
    fn read(text: &str) -> Result<Self, String>;

    /// Writes it; `None` when it is not set.
    fn write(&self) -> Option<String>;
}

impl Value for SocketAddr {
    const FORM: &'static str = "ADDR:PORT";

    fn read(text: &str) -> Result<Self, String> {
        let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
        if let Some(port) = local {
            return Ok(Self::from((Ipv4Addr::LOCALHOST, port)));
        }
        text.parse()
            .map_err(|_| format!("{text:?} is no address; write ADDR:PORT, such as 127.0.0.1:4000 or [::1]:4000"))
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for String {
    const FORM: &'static str = "TEXT";

    fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
    }

    fn write(&self) -> Option<String> {
        Some(self.clone())
    }
}

impl Value for PathBuf {
    const FORM: &'static str = "PATH";

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(Self::from(text)) }
    }

    fn write(&self) -> Option<String> {
        Some(self.display().to_string())
    }
}

impl<T: Value> Value for Option<T> {
    const FORM: &'static str = T::FORM;
    const BARE: bool = T::BARE;

    fn read(text: &str) -> Result<Self, String> {
        T::read(text).map(Some)
    }

    fn write(&self) -> Option<String> {
        self.as_ref().and_then(T::write)
    }
}

impl Value for bool {
    const FORM: &'static str = "true|false";
    const BARE: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "true" | "1" | "yes" => Ok(true),
            "false" | "0" | "no" => Ok(false),
            _ => Err(format!("{text:?} is neither true nor false")),
        }
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for usize {
    const FORM: &'static str = "NUMBER";
    const BARE: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        text.replace('_', "").parse().map_err(|_| format!("{text:?} is no whole number"))
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for u32 {
    const FORM: &'static str = "NUMBER";
    const BARE: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        text.replace('_', "").parse().map_err(|_| format!("{text:?} is no whole number up to {}", Self::MAX))
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// Reads a duration outside the settings, in the same form.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    Duration::read(text)
}

/// Reads a number of bytes outside the settings, in the same form.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    Bytes::read(text).map(|Bytes(bytes)| u64::try_from(bytes).unwrap_or(u64::MAX))
}

const DURATIONS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

impl Value for Duration {
    const FORM: &'static str = "DURATION";

    fn read(text: &str) -> Result<Self, String> {
        let refused = || format!("{text:?} is no duration; write a number with ms, s, m or h, such as 250ms or 30s");
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| refused())?;
        let (_, millis) = DURATIONS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(refused)?;
        number.checked_mul(*millis).map(Self::from_millis).ok_or_else(refused)
    }

    fn write(&self) -> Option<String> {
        let all = u64::try_from(self.as_millis()).unwrap_or(u64::MAX);
        let (unit, millis) = DURATIONS.into_iter().find(|(_, millis)| all >= *millis && all.is_multiple_of(*millis))?;
        Some(format!("{}{unit}", all / millis))
    }
}

/// A number of bytes: a plain number or one with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bytes(pub(super) usize);

const SIZES: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl Value for Bytes {
    const FORM: &'static str = "SIZE";

    fn read(text: &str) -> Result<Self, String> {
        let refused = || format!("{text:?} is no size; write bytes or a number with KiB, MiB or GiB, such as 64KiB");
        let unit = SIZES.into_iter().find_map(|(name, bytes)| Some((text.strip_suffix(name)?, bytes)));
        let (number, unit) = unit.unwrap_or((text, 1));
        let number: usize = number.trim().replace('_', "").parse().map_err(|_| refused())?;
        number.checked_mul(unit).map(Self).ok_or_else(refused)
    }

    fn write(&self) -> Option<String> {
        let unit = SIZES.into_iter().find(|(_, bytes)| self.0 >= *bytes && self.0.is_multiple_of(*bytes));
        Some(unit.map_or_else(|| self.0.to_string(), |(name, bytes)| format!("{}{name}", self.0 / bytes)))
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl Value for LogFormat {
    const FORM: &'static str = "text|json";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(format!("{text:?} is neither text nor json")),
        }
    }

    fn write(&self) -> Option<String> {
        Some(match self {
            Self::Text => "text".to_owned(),
            Self::Json => "json".to_owned(),
        })
    }
}

/// The address of a PostgreSQL database. It prints without its password.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DatabaseUrl(String);

impl DatabaseUrl {
    /// The address with its password, for connecting.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, query) = match self.0.split_once('?') {
            Some((address, query)) => (address, Some(query)),
            None => (self.0.as_str(), None),
        };
        let password = address.find("://").and_then(|scheme| {
            let start = scheme + 3;
            let at = start + address[start..].rfind('@')?;
            let colon = start + address[start..at].find(':')?;
            Some((colon + 1, at))
        });
        match password {
            Some((start, end)) => write!(f, "{}[REDACTED]{}", &address[..start], &address[end..])?,
            None => f.write_str(address)?,
        }
        for (index, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
            f.write_str(if index == 0 { "?" } else { "&" })?;
            f.write_str(if pair.starts_with("password=") { "password=[REDACTED]" } else { pair })?;
        }
        Ok(())
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Value for DatabaseUrl {
    const FORM: &'static str = "URL";

    fn read(text: &str) -> Result<Self, String> {
        // The text is not repeated: it may hold a password.
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Ok(Self(text.to_owned()))
        } else {
            Err("must look like postgres://USER:PASSWORD@HOST/DATABASE; leave it out for the embedded database"
                .to_owned())
        }
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}
