//! Column lists that several queries share, and how their rows are read.

use bandstand_domain::identity::Profile;
use bandstand_wire::ids::{IdentityId, IdentityKind};

use crate::{Row, StoreError};

/// The columns of a [`Profile`] from the identities table under the alias `$alias`: five of them.
macro_rules! profile_columns {
    ($alias:literal) => {
        concat!($alias, ".id, ", $alias, ".kind, ", $alias, ".handle, ", $alias, ".name, ", $alias, ".description")
    };
}
pub(crate) use profile_columns;

/// How many columns [`profile_columns`] names.
pub(crate) const PROFILE_COLUMNS: usize = 5;

/// Reads [`profile_columns`] that start at column `from`.
pub(crate) fn profile(row: &mut Row, from: usize) -> Result<Profile, StoreError> {
    Ok(Profile {
        id: IdentityId(row.id(from)?),
        kind: identity_kind(row.int(from + 1)?)?,
        handle: row.take_text(from + 2)?,
        name: row.take_text(from + 3)?,
        description: row.take_opt_text(from + 4)?,
    })
}

/// The number of an identity's kind. Never change one: old rows hold it.
pub(crate) fn kind_code(kind: IdentityKind) -> i64 {
    match kind {
        IdentityKind::User => 0,
        IdentityKind::Agent => 1,
    }
}

/// Reads [`kind_code`].
pub(crate) fn identity_kind(code: i64) -> Result<IdentityKind, StoreError> {
    match code {
        0 => Ok(IdentityKind::User),
        1 => Ok(IdentityKind::Agent),
        other => Err(unknown("identity kind", other)),
    }
}

/// A stored word or number that this program does not know.
pub(crate) fn unknown(what: &str, found: impl std::fmt::Display) -> StoreError {
    StoreError::Decode(format!("unknown {what}: {found}"))
}
