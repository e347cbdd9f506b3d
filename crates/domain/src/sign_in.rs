//! Whether a person's token counts, from what it claims; and what to call a person whom an issuer knows.

use bandstand_wire::time::Timestamp;

use crate::handle;

/// What a token claims. Its signature was verified before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims<'a> {
    /// `iss`
    pub issuer: Option<&'a str>,
    /// `aud`, one or several.
    pub audience: &'a [String],
    /// `sub`
    pub subject: Option<&'a str>,
    /// `exp`
    pub expires: Option<Timestamp>,
    /// `nbf`
    pub not_before: Option<Timestamp>,
    /// `iat`
    pub issued: Option<Timestamp>,
}

/// What a token must claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected<'a> {
    /// Who issued it, exactly.
    pub issuer: &'a str,
    /// For whom it is.
    pub audience: &'a str,
    /// How far the issuer's clock may be from ours, in microseconds.
    pub skew_micros: i64,
}

/// Why a token does not count. For logs: the caller learns none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimFault {
    /// Another issuer, or none.
    #[error("iss is not the expected issuer")]
    Issuer,
    /// For somebody else.
    #[error("aud does not name this server")]
    Audience,
    /// For nobody, or for a name that is longer than [`SUBJECT_MAX_BYTES`] or holds control characters.
    #[error("sub is missing, too long or not printable")]
    Subject,
    /// It would be valid for ever.
    #[error("exp is missing")]
    NoExpiry,
    /// It was valid.
    #[error("it has expired")]
    Expired,
    /// It will be valid.
    #[error("it is not valid yet")]
    NotYet,
}

/// Longest subject, in bytes: what OpenID Connect allows.
pub const SUBJECT_MAX_BYTES: usize = 255;

/// Longest issuer of an account that is linked, in bytes. Both together are the key of an index, which has limits too.
pub const ISSUER_MAX_BYTES: usize = 1024;

/// Whether the claims are for us, now; and until when they count, the skew included.
///
/// # Errors
/// [`ClaimFault`]: the first fault.
pub fn check(claims: &Claims<'_>, expected: Expected<'_>, now: Timestamp) -> Result<Timestamp, ClaimFault> {
    if claims.issuer != Some(expected.issuer) {
        return Err(ClaimFault::Issuer);
    }
    if !claims.audience.iter().any(|audience| audience == expected.audience) {
        return Err(ClaimFault::Audience);
    }
    let fits = |subject: &str| (1..=SUBJECT_MAX_BYTES).contains(&subject.len()) && !subject.contains(char::is_control);
    if !claims.subject.is_some_and(fits) {
        return Err(ClaimFault::Subject);
    }
    let until = claims.expires.ok_or(ClaimFault::NoExpiry)?.plus_micros(expected.skew_micros);
    if until <= now {
        return Err(ClaimFault::Expired);
    }
    let latest = now.plus_micros(expected.skew_micros);
    if [claims.not_before, claims.issued].into_iter().flatten().any(|start| start > latest) {
        return Err(ClaimFault::NotYet);
    }
    Ok(until)
}

/// A username made of what an issuer calls somebody: the part before an `@`, in lower case, everything that a username
/// may not hold as one dash. What leaves nothing gives `user`.
pub fn username(claimed: &str) -> String {
    let claimed = claimed.trim().trim_start_matches('@').to_lowercase();
    let local = claimed.split('@').next().unwrap_or_default();
    let mut name = String::new();
    for c in local.chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() || (matches!(c, '.' | '_') && !name.is_empty()) {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = cut(&name, handle::USERNAME_MAX_CHARACTERS);
    if name.is_empty() { "user".to_owned() } else { name.to_owned() }
}

/// The `attempt`-th choice of a username that is taken: `ana`, `ana-2`, `ana-3`, …, within the length limit.
pub fn username_choice(name: &str, attempt: usize) -> String {
    if attempt <= 1 {
        return name.to_owned();
    }
    let suffix = format!("-{attempt}");
    format!("{}{suffix}", cut(name, handle::USERNAME_MAX_CHARACTERS.saturating_sub(suffix.len())))
}

/// The start of an ASCII name, without a dash at its end.
fn cut(name: &str, max: usize) -> &str {
    name.get(..max).unwrap_or(name).trim_end_matches('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: i64 = 1_800_000_000_000_000;
    const SECOND: i64 = 1_000_000;
    const EXPECTED: Expected<'static> = Expected { issuer: "i", audience: "a", skew_micros: 60 * SECOND };

    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp::from_micros(NOW + seconds * SECOND))
    }

    fn checked(change: impl FnOnce(&mut Claims<'_>)) -> Result<i64, ClaimFault> {
        let audience = ["a".to_owned(), "b".to_owned()];
        let mut claims = Claims {
            issuer: Some("i"),
            audience: &audience,
            subject: Some("s"),
            expires: at(10),
            not_before: None,
            issued: None,
        };
        change(&mut claims);
        let until = check(&claims, EXPECTED, Timestamp::from_micros(NOW))?;
        Ok((until.as_micros() - NOW) / SECOND)
    }

    #[test]
    fn every_claim_is_checked() {
        let long: &str = "x".repeat(256).leak();
        let other: &[String] = vec!["A".to_owned(), String::new()].leak();
        assert_eq!(checked(|_| {}), Ok(70));
        assert_eq!(checked(|c| c.issuer = None), Err(ClaimFault::Issuer));
        assert_eq!(checked(|c| c.issuer = Some("i/")), Err(ClaimFault::Issuer));
        assert_eq!(checked(|c| c.audience = &[]), Err(ClaimFault::Audience));
        assert_eq!(checked(|c| c.audience = other), Err(ClaimFault::Audience));
        assert_eq!(checked(|c| c.subject = None), Err(ClaimFault::Subject));
        assert_eq!(checked(|c| c.subject = Some("")), Err(ClaimFault::Subject));
        assert_eq!(checked(|c| c.subject = Some(long)), Err(ClaimFault::Subject));
        assert_eq!(checked(|c| c.subject = Some("s\0")), Err(ClaimFault::Subject));
        assert_eq!(checked(|c| c.expires = None), Err(ClaimFault::NoExpiry));
        assert_eq!(checked(|c| c.expires = at(-59)), Ok(1));
        assert_eq!(checked(|c| c.expires = at(-60)), Err(ClaimFault::Expired));
        for start in [|c: &mut Claims<'_>, t| c.not_before = t, |c: &mut Claims<'_>, t| c.issued = t] {
            assert_eq!(checked(|c| start(c, at(60))), Ok(70));
            assert_eq!(checked(|c| start(c, at(61))), Err(ClaimFault::NotYet));
        }
    }

    #[test]
    fn usernames_follow_the_claim() {
        for (claimed, name) in [
            ("ana", "ana"),
            ("Ana.Lee@example.org", "ana.lee"),
            ("@ana", "ana"),
            ("Ana  Lee!", "ana-lee"),
            ("--_.a", "a"),
            ("天気", "user"),
            ("", "user"),
            ("CORP\\ana", "corp-ana"),
        ] {
            assert_eq!(username(claimed), name, "{claimed:?}");
        }
        assert_eq!(username_choice("ana", 1), "ana");
        assert_eq!(username_choice("ana", 2), "ana-2");
        assert_eq!(username_choice(&"x".repeat(64), 12).len(), 64);
    }

    proptest! {
        #[test]
        fn any_claim_gives_a_username_that_somebody_may_have(claimed in ".*", attempt in 1_usize..2000) {
            let name = username_choice(&username(&claimed), attempt);
            prop_assert_eq!(handle::username(&name), Ok(name));
        }

        #[test]
        fn no_time_is_both_too_early_and_too_late(expires in any::<i64>(), start in any::<i64>(), now in any::<i64>()) {
            let audience = ["a".to_owned()];
            let claims = Claims {
                issuer: Some("i"),
                audience: &audience,
                subject: Some("s"),
                expires: Some(Timestamp::from_micros(expires)),
                not_before: Some(Timestamp::from_micros(start)),
                issued: None,
            };
            let now = Timestamp::from_micros(now);
            if let Ok(until) = check(&claims, EXPECTED, now) {
                prop_assert!(until > now);
                prop_assert!(Timestamp::from_micros(start) <= now.plus_micros(EXPECTED.skew_micros));
            }
        }
    }
}
