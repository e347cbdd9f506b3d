//! Handles: a username, or `<owner>/<agent slug>`. Kept and returned without `@`, compared without regard to case.

/// Longest agent slug, in characters.
pub const SLUG_MAX_CHARACTERS: usize = 50;

/// Longest username, in characters.
pub const USERNAME_MAX_CHARACTERS: usize = 64;

/// A handle as it is looked up: without surrounding space and leading `@`, in lower case.
pub fn folded(handle: &str) -> String {
    let trimmed = handle.trim();
    trimmed.strip_prefix('@').unwrap_or(trimmed).to_lowercase()
}

/// A text is no handle: nobody can have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a handle: a handle is a username, or <owner>/<agent>, with or without @")]
pub struct Malformed;

/// Reads a handle that somebody is looked up by: folded, and of a form that a user or an agent may have.
///
/// # Errors
/// [`Malformed`].
pub fn parse(text: &str) -> Result<String, Malformed> {
    let handle = folded(text);
    let (owner, slug) = match handle.split_once('/') {
        Some((owner, slug)) => (owner, Some(slug)),
        None => (handle.as_str(), None),
    };
    let is_user = username(owner).is_ok_and(|name| name == owner);
    let is_agent = slug.is_none_or(|slug| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !slug.is_empty() && slug.len() <= SLUG_MAX_CHARACTERS && slug.chars().all(fits)
    });
    if is_user && is_agent { Ok(handle) } else { Err(Malformed) }
}

/// The last part of an agent's handle, made from its name: lower case, everything else than `a-z0-9` becomes one dash.
/// A name without a single such character gives `agent`.
pub fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.to_lowercase().chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let cut: String = slug.chars().take(SLUG_MAX_CHARACTERS).collect();
    let cut = cut.trim_matches('-');
    if cut.is_empty() { "agent".to_owned() } else { cut.to_owned() }
}

/// The `attempt`-th choice of a slug that is taken: `name`, `name-2`, `name-3`, …, within the length limit.
pub fn slug_choice(slug: &str, attempt: usize) -> String {
    if attempt <= 1 {
        return slug.to_owned();
    }
    let suffix = format!("-{attempt}");
    let room = SLUG_MAX_CHARACTERS.saturating_sub(suffix.len());
    let head: String = slug.chars().take(room).collect();
    format!("{}{suffix}", head.trim_end_matches('-'))
}

/// Why a username is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsernameError {
    /// Nothing there.
    #[error("can't be blank")]
    Blank,
    /// Longer than [`USERNAME_MAX_CHARACTERS`].
    #[error("should be at most 64 character(s)")]
    TooLong,
    /// Holds something that mention matching in clients does not know.
    #[error("may hold only a-z, 0-9, '.', '-' and '_', and must start with a letter or digit")]
    Characters,
}

/// Folds and checks a new username.
///
/// # Errors
/// [`UsernameError`].
pub fn username(text: &str) -> Result<String, UsernameError> {
    let name = folded(text);
    if name.is_empty() {
        return Err(UsernameError::Blank);
    }
    if name.chars().count() > USERNAME_MAX_CHARACTERS {
        return Err(UsernameError::TooLong);
    }
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
    if !name.chars().all(fits) || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(UsernameError::Characters);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slugs_follow_the_name() {
        assert_eq!(slug("Weather Agent"), "weather-agent");
        assert_eq!(slug("  --A__b  c!"), "a-b-c");
        assert_eq!(slug("天気"), "agent");
        assert_eq!(slug_choice("weather", 3), "weather-3");
        assert_eq!(slug_choice(&"x".repeat(50), 12).len(), 50);
    }

    #[test]
    fn handles_compare_without_at_sign_and_case() {
        assert_eq!(folded(" @Ana.B/Weather "), "ana.b/weather");
        assert_eq!(username("@Ana.B"), Ok("ana.b".into()));
        assert_eq!(username("ana/b"), Err(UsernameError::Characters));
        assert_eq!(username("-ana"), Err(UsernameError::Characters));
        assert_eq!(username("@"), Err(UsernameError::Blank));
    }

    #[test]
    fn only_what_somebody_may_have_is_a_handle() {
        for (text, handle) in [
            ("ana", "ana"),
            ("@Ana.B", "ana.b"),
            (" ana/Weather-2 ", "ana/weather-2"),
            ("@ana_1/a", "ana_1/a"),
            (&"x".repeat(64), &"x".repeat(64)),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(handle), "{text:?}");
        }
        let (long_name, long_slug) = ("x".repeat(65), format!("ana/{}", "x".repeat(51)));
        for text in [
            "", "@", "@@ana", "/", "ana/", "/a", "ana/a/b", "ana/@a", "ana /a", "a b", "-ana", "anä", "ana/a_b",
            "ana/ä", "ana\0", &long_name, &long_slug,
        ] {
            assert_eq!(parse(text), Err(Malformed), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_handle_that_is_given_reads_back(user in "[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}", name in ".*", at in any::<bool>()) {
            let user = username(&user).unwrap();
            let at = if at { "@" } else { "" };
            prop_assert_eq!(parse(&format!("{at}{user}")), Ok(user.clone()));
            for attempt in [1, 2, 1000] {
                let handle = format!("{user}/{}", slug_choice(&slug(&name), attempt));
                prop_assert_eq!(parse(&format!("{at}{}", handle.to_uppercase())), Ok(handle));
            }
        }

        #[test]
        fn any_text_is_answered_without_a_panic(text in ".{0,80}") {
            if let Ok(handle) = parse(&text) {
                prop_assert_eq!(parse(&handle), Ok(handle.clone()));
                prop_assert!(!handle.contains('@'));
            }
        }

        #[test]
        fn any_name_gives_a_usable_slug(name in ".*") {
            let slug = slug(&name);
            prop_assert!(!slug.is_empty() && slug.len() <= SLUG_MAX_CHARACTERS);
            prop_assert!(slug.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
            prop_assert!(!slug.starts_with('-') && !slug.ends_with('-'));
        }
    }
}
