//! API keys: made here, shown once, kept only as a hash.

use std::fmt;

use sha2::{Digest, Sha256};

/// An API key in clear. It prints as `[REDACTED]`; [`Self::reveal`] is called only where a key is shown once.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// Whose key: it starts the key's text, so that a person sees which is which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// `band_u_…`
    User,
    /// `band_a_…`
    Agent,
}

impl KeyKind {
    fn prefix(self) -> &'static str {
        match self {
            Self::User => "band_u_",
            Self::Agent => "band_a_",
        }
    }
}

/// Characters after the prefix of a key that was made here: 43 of 62 are worth just over 256 bits.
const SECRET_CHARACTERS: usize = 43;

/// Fewest characters after the prefix of a key that an operator presets.
const PRESET_MIN_CHARACTERS: usize = 32;

/// Why a preset key is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a preset owner's key must be `band_u_` followed by at least 32 characters of A-Z, a-z, 0-9, `_` and `-`")]
pub struct WeakKey;

impl ApiKey {
    /// Makes a fresh key from `random`, which fills a buffer.
    ///
    /// # Errors
    /// When there is no randomness to be had.
    pub fn generate<E>(kind: KeyKind, mut random: impl FnMut(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let mut key = kind.prefix().to_owned();
        let wanted = key.len() + SECRET_CHARACTERS;
        let mut bytes = [0_u8; 64];
        while key.len() < wanted {
            random(&mut bytes)?;
            // Bytes from 248 up are thrown away: 62 does not divide 256, and the first letters would come more often.
            let even = bytes.iter().filter(|byte| **byte < 248).map(|byte| ALPHABET[usize::from(byte % 62)]);
            key.extend(even.map(char::from).take(wanted - key.len()));
        }
        Ok(Self(key))
    }

    /// Takes an operator's own key for the owner.
    ///
    /// # Errors
    /// [`WeakKey`] when it is too short or of another form.
    pub fn preset(text: &str) -> Result<Self, WeakKey> {
        let secret = text.strip_prefix(KeyKind::User.prefix()).ok_or(WeakKey)?;
        let fits = secret.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !fits || secret.len() < PRESET_MIN_CHARACTERS {
            return Err(WeakKey);
        }
        Ok(Self(text.to_owned()))
    }

    /// The key in clear: for showing it once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is stored.
    pub fn hash(&self) -> [u8; 32] {
        Self::hash_of(&self.0)
    }

    /// What a shown key is looked up by. The key is random, so one round of SHA-256 is enough; and since the lookup is
    /// by hash, how long it takes tells nothing about the key.
    pub fn hash_of(text: &str) -> [u8; 32] {
        Sha256::digest(text.as_bytes()).into()
    }

    /// The start of the key: it tells keys apart in lists and is no help in guessing.
    pub fn hint(&self) -> String {
        self.0.chars().take(11).collect()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[REDACTED]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_prefix_and_256_bits_and_never_prints() {
        let mut next = 0_u8;
        let key = ApiKey::generate(KeyKind::Agent, |bytes: &mut [u8]| -> Result<(), ()> {
            bytes.iter_mut().for_each(|byte| {
                next = next.wrapping_add(37);
                *byte = next;
            });
            Ok(())
        })
        .unwrap();
        assert!(key.reveal().starts_with("band_a_"));
        assert_eq!(key.reveal().len(), 7 + SECRET_CHARACTERS);
        assert_eq!(format!("{key:?}"), "[REDACTED]");
    }

    #[test]
    fn a_preset_key_must_be_long_enough() {
        assert!(ApiKey::preset(&format!("band_u_{}", "x".repeat(32))).is_ok());
        for weak in ["", "band_u_short", &format!("band_a_{}", "x".repeat(40)), &format!("band_u_{}", " ".repeat(40))] {
            assert_eq!(ApiKey::preset(weak), Err(WeakKey), "{weak}");
        }
    }
}
