//! Finds out who is meant by a handle, a name or an id. One rule for mentions, participants and peers: without regard
//! to case, with or without `@`; handles before names before ids; a name that several have is no answer.

use bandstand_wire::ids::IdentityId;

use crate::roster::Member;

/// Why nobody was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Nobody is called so.
    #[error("Unknown participant '{identifier}'")]
    Unknown {
        /// What was looked for.
        identifier: String,
    },
    /// Several are.
    #[error("'{identifier}' is the name of several participants: {}. Use one of these handles or an exact ID.", candidates.join(", "))]
    Ambiguous {
        /// What was looked for.
        identifier: String,
        /// Who they are.
        candidates: Vec<String>,
    },
}

/// Who is meant.
pub(super) fn find<'a>(
    members: impl IntoIterator<Item = &'a Member>,
    identifier: &str,
) -> Result<&'a Member, ResolveError> {
    let wanted = identifier.trim().trim_start_matches('@').to_lowercase();
    let (mut named, mut by_id) = (Vec::new(), None);
    for member in members {
        if member.handle.as_ref().is_some_and(|handle| handle.to_lowercase() == wanted) {
            return Ok(member);
        }
        if member.name.as_ref().is_some_and(|name| name.to_lowercase() == wanted) {
            named.push(member);
        }
        if member.id.to_string() == wanted {
            by_id = Some(member);
        }
    }
    match (named.as_slice(), by_id) {
        ([only], _) => Ok(only),
        ([], Some(member)) => Ok(member),
        ([], None) => Err(ResolveError::Unknown { identifier: identifier.trim().trim_start_matches('@').to_owned() }),
        (several, _) => Err(ResolveError::Ambiguous {
            identifier: identifier.to_owned(),
            candidates: several.iter().map(|member| format!("{} ({})", member.label(), member.id)).collect(),
        }),
    }
}

/// The handles that the agent may mention: everybody's but its own, as a list in the form that models know from Python.
pub(super) fn mentionable(members: &[Member], own: Option<IdentityId>) -> Option<String> {
    let handles: Vec<String> = members
        .iter()
        .filter(|member| Some(member.id) != own)
        .filter_map(|member| Some(format!("'@{}'", member.handle.as_ref()?)))
        .collect();
    (!handles.is_empty()).then(|| format!("[{}]", handles.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn member(number: u128, name: &str, handle: &str) -> Member {
        Member {
            id: IdentityId(Uuid::from_u128(number)),
            name: Some(name.into()),
            kind: "Agent".into(),
            handle: Some(handle.into()),
            description: None,
        }
    }

    #[test]
    fn handle_before_name_before_id_whatever_the_case() {
        let members = [member(1, "Weather", "ann/weather"), member(2, "ann/weather", "bob"), member(3, "Bob", "cy")];
        let found = |identifier: &str| find(&members, identifier).map(|member| member.id.0.as_u128());
        assert_eq!(found("@@Ann/Weather"), Ok(1));
        assert_eq!(found("weather"), Ok(1));
        assert_eq!(found("BOB"), Ok(2));
        assert_eq!(found("00000000-0000-0000-0000-000000000003"), Ok(3));
        assert_eq!(found("@nobody"), Err(ResolveError::Unknown { identifier: "nobody".into() }));
    }

    #[test]
    fn a_name_of_several_is_reported_with_who_they_are() {
        let members = [member(1, "Bob", "ann/bob"), member(2, "bob", "eve/bob")];
        let error = find(&members, "Bob").unwrap_err().to_string();
        assert!(error.starts_with("'Bob' is the name of several participants: @ann/bob ("), "{error}");
        assert!(error.contains("@eve/bob ("), "{error}");
    }

    #[test]
    fn the_agent_itself_is_not_mentionable() {
        let members = [member(1, "Me", "me"), member(2, "Ann", "ann"), member(3, "Cy", "cy")];
        assert_eq!(mentionable(&members, Some(members[0].id)).as_deref(), Some("['@ann', '@cy']"));
        assert_eq!(mentionable(&members[..1], Some(members[0].id)), None);
    }
}
