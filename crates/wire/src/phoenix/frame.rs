//! What a client sends: text to frame.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::close_code;

/// Which serializer a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Objects without `join_ref`.
    V1,
    /// Arrays of five.
    V2,
}

impl Version {
    /// Reads the `vsn` of an upgrade: a dotted number that starts with 1 or 2. None means version 1, as in Phoenix.
    pub fn from_vsn(vsn: Option<&str>) -> Option<Self> {
        let Some(vsn) = vsn else { return Some(Self::V1) };
        let mut parts = vsn.split('.');
        let major = parts.next();
        let dotted = parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
        match (major, dotted) {
            (Some("1"), true) => Some(Self::V1),
            (Some("2"), true) => Some(Self::V2),
            _ => None,
        }
    }
}

/// A `ref` or `join_ref` exactly as the client wrote it, so that it is echoed unchanged: JavaScript compares strictly,
/// and nobody may depend on how we would have written it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ref(Option<Box<str>>);

impl Ref {
    /// Longest ref, in bytes of JSON. Clients count from 1; the bound keeps what a socket remembers small.
    pub const MAX_BYTES: usize = 128;

    /// No ref: `null`.
    pub const NONE: Self = Self(None);

    /// The JSON token.
    pub fn as_json(&self) -> &str {
        self.0.as_deref().unwrap_or("null")
    }

    /// Whether it is `null`.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// A string, a number or null; anything else is the wrong shape.
    fn from_raw(raw: &RawValue) -> Result<Self, FrameError> {
        let token = raw.get();
        match token.as_bytes().first() {
            Some(b'n') => Ok(Self::NONE),
            Some(b'"' | b'-' | b'0'..=b'9') if token.len() <= Self::MAX_BYTES => Ok(Self(Some(token.into()))),
            _ => Err(FrameError::WrongShape),
        }
    }
}

/// One frame of a client.
#[derive(Clone, Debug)]
pub struct ClientFrame<'a> {
    /// The join that the frame belongs to; always `null` in version 1.
    pub join_ref: Ref,
    /// What the reply repeats.
    pub reference: Ref,
    /// Which channel.
    pub topic: String,
    /// What the client wants.
    pub event: String,
    /// A JSON object, unread: no event of a client carries anything that we use.
    pub payload: &'a RawValue,
}

/// Why a text is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Not JSON.
    #[error("the frame is not JSON")]
    NotJson,
    /// JSON, but not a frame of this version.
    #[error("the frame does not have the parts of the negotiated version")]
    WrongShape,
}

impl FrameError {
    /// The code that the connection is closed with.
    pub fn close_code(self) -> u16 {
        match self {
            Self::NotJson | Self::WrongShape => close_code::INVALID_PAYLOAD,
        }
    }
}

impl From<serde_json::Error> for FrameError {
    fn from(error: serde_json::Error) -> Self {
        match error.classify() {
            serde_json::error::Category::Data => Self::WrongShape,
            serde_json::error::Category::Io
            | serde_json::error::Category::Syntax
            | serde_json::error::Category::Eof => Self::NotJson,
        }
    }
}

/// Version 1 on the wire.
#[derive(Deserialize)]
struct ObjectFrame<'a> {
    topic: String,
    event: String,
    #[serde(borrow)]
    payload: &'a RawValue,
    #[serde(borrow, rename = "ref", default)]
    reference: Option<&'a RawValue>,
}

/// Reads one text frame.
///
/// # Errors
/// [`FrameError`], which names the close code.
pub fn parse(version: Version, text: &str) -> Result<ClientFrame<'_>, FrameError> {
    let frame = match version {
        Version::V1 => {
            // A struct also reads from an array; the version does not allow it.
            if !text.trim_start().starts_with('{') {
                return Err(serde_json::from_str::<serde::de::IgnoredAny>(text)
                    .map_or_else(FrameError::from, |_| FrameError::WrongShape));
            }
            let frame: ObjectFrame<'_> = serde_json::from_str(text)?;
            let reference = frame.reference.map(Ref::from_raw).transpose()?.unwrap_or_default();
            ClientFrame {
                join_ref: Ref::NONE,
                reference,
                topic: frame.topic,
                event: frame.event,
                payload: frame.payload,
            }
        }
        Version::V2 => {
            let (join_ref, reference, topic, event, payload): (&RawValue, &RawValue, String, String, &RawValue) =
                serde_json::from_str(text)?;
            ClientFrame {
                join_ref: Ref::from_raw(join_ref)?,
                reference: Ref::from_raw(reference)?,
                topic,
                event,
                payload,
            }
        }
    };
    if !frame.payload.get().starts_with('{') {
        return Err(FrameError::WrongShape);
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refs_come_back_as_they_were_written() {
        let frame = parse(Version::V2, r#" [ "\u0031" , 7 ,"t","e",{"a":[1]}] "#).unwrap();
        assert_eq!(frame.join_ref.as_json(), r#""\u0031""#);
        assert_eq!(frame.reference.as_json(), "7");
        assert_eq!(frame.payload.get(), r#"{"a":[1]}"#);
    }

    #[test]
    fn what_is_no_frame_names_a_reason() {
        use FrameError::{NotJson, WrongShape};
        for (text, error) in [
            ("", NotJson),
            ("hello", NotJson),
            ("[1,2", NotJson),
            ("{}", WrongShape),
            ("[]", WrongShape),
            (r#"["1","1","t","e"]"#, WrongShape),
            (r#"["1","1","t","e",[]]"#, WrongShape),
            (r#"["1","1","t","e",null]"#, WrongShape),
            (r#"["1","1",5,"e",{}]"#, WrongShape),
            (r#"["1",{},"t","e",{}]"#, WrongShape),
            (r#"["1",true,"t","e",{}]"#, WrongShape),
        ] {
            assert_eq!(parse(Version::V2, text).unwrap_err(), error, "{text}");
        }
        assert!(parse(Version::V2, r#"["1","1","t","e",{},1]"#).is_err());
        let long = format!(r#"["{}","1","t","e",{{}}]"#, "9".repeat(200));
        assert_eq!(parse(Version::V2, &long).unwrap_err(), WrongShape);
    }

    #[test]
    fn version_1_reads_objects_only() {
        let frame = parse(Version::V1, r#"{"topic":"t","event":"e","payload":{},"ref":"4"}"#).unwrap();
        assert_eq!((frame.topic.as_str(), frame.reference.as_json(), frame.join_ref.is_none()), ("t", "\"4\"", true));
        assert!(parse(Version::V1, r#"{"topic":"t","event":"e","payload":{}}"#).unwrap().reference.is_none());
        assert_eq!(parse(Version::V1, r#"["t","e",{},"4"]"#).unwrap_err(), FrameError::WrongShape);
        assert_eq!(parse(Version::V1, "nope").unwrap_err(), FrameError::NotJson);
    }

    #[test]
    fn the_version_is_the_first_number() {
        for (vsn, version) in [
            (None, Some(Version::V1)),
            (Some("1.0.0"), Some(Version::V1)),
            (Some("2.0.0"), Some(Version::V2)),
            (Some("2.1"), Some(Version::V2)),
            (Some("3.0.0"), None),
            (Some(""), None),
            (Some("2."), None),
            (Some("20.0.0"), None),
            (Some("two"), None),
        ] {
            assert_eq!(Version::from_vsn(vsn), version, "{vsn:?}");
        }
    }

    /// Texts that are nearly frames are likelier to find a hole than any text.
    fn nearly_a_frame() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            Just("null".to_owned()),
            Just("{}".to_owned()),
            Just("\"phx_join\"".to_owned()),
            Just("[".repeat(200)),
            "\"[a-z0-9\\\\\"u]{0,6}\"",
            ".{0,4}",
        ];
        proptest::collection::vec(part, 0..7).prop_map(|parts| format!("[{}]", parts.join(",")))
    }

    proptest! {
        #[test]
        fn any_text_gives_a_frame_or_a_close_code(
            text in prop_oneof![".{0,60}", nearly_a_frame()],
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            for version in [Version::V1, Version::V2] {
                for text in [text.as_str(), &String::from_utf8_lossy(&bytes)] {
                    if let Err(error) = parse(version, text) {
                        prop_assert_eq!(error.close_code(), 1007);
                    }
                }
            }
        }
    }
}
