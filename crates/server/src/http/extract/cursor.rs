//! Opaque cursors: where a page ended, and for which list. They are positions, not secrets.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::http::ApiError;

/// What a cursor's first bytes hold: a hash of the list and its filter.
const FILTER_BYTES: usize = 8;

fn filter_hash(filter: &str) -> [u8; FILTER_BYTES] {
    let digest = Sha256::digest(filter.as_bytes());
    std::array::from_fn(|place| digest[place])
}

/// A cursor for the list that `filter` describes, standing at `position`.
pub(crate) fn encode(filter: &str, position: &impl Serialize) -> Result<String, ApiError> {
    let mut bytes = filter_hash(filter).to_vec();
    serde_json::to_writer(&mut bytes, position).map_err(ApiError::internal)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Reads a cursor of the list that `filter` describes.
///
/// # Errors
/// 422 `validation_error` at `/cursor` when it is damaged, `cursor_filter_mismatch` when it is of another list.
pub(crate) fn decode<T: DeserializeOwned>(filter: &str, cursor: &str) -> Result<T, ApiError> {
    let damaged = || ApiError::invalid_at("/cursor", "is not a cursor of this list");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| damaged())?;
    let (hash, position) = bytes.split_at_checked(FILTER_BYTES).ok_or_else(damaged)?;
    let read: Result<serde_json::Value, _> = serde_json::from_slice(position);
    let value = read.map_err(|_| damaged())?;
    if hash != filter_hash(filter) {
        let message = "the cursor belongs to a list with other filters; start again without it";
        return Err(ApiError::unprocessable("cursor_filter_mismatch", message));
    }
    serde_json::from_value(value).map_err(|_| damaged())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cursor_reads_back_only_for_its_own_list() {
        let cursor = encode("rooms desc", &(5_i64, 7_i64)).unwrap();
        assert_eq!(decode::<(i64, i64)>("rooms desc", &cursor).unwrap(), (5, 7));
        assert_eq!(decode::<(i64, i64)>("rooms asc", &cursor).unwrap_err().code(), "cursor_filter_mismatch");
        assert_eq!(decode::<(i64, i64)>("rooms desc", "nonsense").unwrap_err().code(), "validation_error");
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in ".{0,80}") {
            prop_assert!(decode::<(i64, i64)>("rooms", &text).is_err());
        }
    }
}
