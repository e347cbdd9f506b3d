//! Organizations and the users in them.

use bandstand_domain::identity::Profile;
use bandstand_domain::organization::Organization;
use bandstand_wire::ids::{IdentityId, OrganizationId};
use bandstand_wire::time::Timestamp;

use crate::columns::{PROFILE_COLUMNS, profile, profile_columns};
use crate::{Reader, StoreError, Writer, params};

/// Stores a new organization; false when one is called alike.
pub async fn insert(tx: &mut Writer, id: OrganizationId, name: &str, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO organizations (id, name, name_folded, inserted_at) VALUES (?1, ?2, ?3, ?4) \
                       ON CONFLICT DO NOTHING";
    Ok(tx.execute(SQL, params![id, name, &name.to_lowercase(), at.as_micros()]).await? == 1)
}

/// All organizations by name, each with its members.
pub async fn list(tx: &mut Reader) -> Result<Vec<Organization>, StoreError> {
    const ORGANIZATIONS: &str = "SELECT id, name, inserted_at FROM organizations ORDER BY name_folded";
    const MEMBERS: &str = concat!(
        "SELECT ",
        profile_columns!("i"),
        ", g.id FROM organization_members m JOIN identities i ON i.key = m.user_key \
         JOIN organizations g ON g.key = m.organization_key WHERE i.deleted_at IS NULL ORDER BY m.inserted_at, m.user_key"
    );
    let mut organizations = Vec::new();
    for mut row in tx.query(ORGANIZATIONS, params![]).await? {
        organizations.push(Organization {
            id: OrganizationId(row.id(0)?),
            name: row.take_text(1)?,
            members: Vec::new(),
            inserted_at: Timestamp::from_micros(row.int(2)?),
        });
    }
    for mut row in tx.query(MEMBERS, params![]).await? {
        let id = OrganizationId(row.id(PROFILE_COLUMNS)?);
        let member = profile(&mut row, 0)?;
        if let Some(organization) = organizations.iter_mut().find(|organization| organization.id == id) {
            organization.members.push(member);
        }
    }
    Ok(organizations)
}

/// An organization without its members: for pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: OrganizationId,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub inserted_at: Timestamp,
}

/// A page of all organizations, oldest first: those after a key, each with its own.
pub async fn list_after(tx: &mut Reader, key: i64, limit: i64) -> Result<Vec<(Listed, i64)>, StoreError> {
    const SQL: &str = "SELECT id, name, inserted_at, key FROM organizations WHERE key > ?1 ORDER BY key LIMIT ?2";
    let mut rows = tx.query(SQL, params![key, limit]).await?;
    rows.iter_mut()
        .map(|row| {
            let id = OrganizationId(row.id(0)?);
            let inserted_at = Timestamp::from_micros(row.int(2)?);
            Ok((Listed { id, name: row.take_text(1)?, inserted_at }, row.int(3)?))
        })
        .collect()
}

/// A page of an organization's users by their keys: those after a key, each with its own.
pub async fn members_after(
    tx: &mut Reader,
    organization: OrganizationId,
    key: i64,
    limit: i64,
) -> Result<Vec<(Profile, i64)>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        profile_columns!("i"),
        ", i.key FROM organization_members m JOIN identities i ON i.key = m.user_key \
         WHERE m.organization_key = (SELECT key FROM organizations WHERE id = ?1) AND m.user_key > ?2 \
         AND i.deleted_at IS NULL ORDER BY m.user_key LIMIT ?3"
    );
    let mut rows = tx.query(SQL, params![organization, key, limit]).await?;
    rows.iter_mut().map(|row| Ok((profile(row, 0)?, row.int(PROFILE_COLUMNS)?))).collect()
}

/// Takes a user out of whichever organization it is in.
pub async fn leave(tx: &mut Writer, user: IdentityId) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM organization_members WHERE user_key = (SELECT key FROM identities WHERE id = ?1)";
    tx.execute(SQL, params![user]).await.map(drop)
}

/// The id and name of an organization, by its id or else by its name without regard to case.
pub async fn find(tx: &mut Reader, wanted: &str) -> Result<Option<(OrganizationId, String)>, StoreError> {
    const BY_ID: &str = "SELECT id, name FROM organizations WHERE id = ?1";
    const BY_NAME: &str = "SELECT id, name FROM organizations WHERE name_folded = ?1";
    let wanted = wanted.trim();
    let by_id = match wanted.parse::<OrganizationId>() {
        Ok(id) => tx.query_opt(BY_ID, params![id]).await?,
        Err(_) => None,
    };
    let row = match by_id {
        Some(row) => Some(row),
        None => tx.query_opt(BY_NAME, params![&wanted.to_lowercase()]).await?,
    };
    row.map(|mut row| Ok((OrganizationId(row.id(0)?), row.take_text(1)?))).transpose()
}

/// The organization that a user is in.
pub async fn of_user(tx: &mut Reader, user: IdentityId) -> Result<Option<(OrganizationId, String)>, StoreError> {
    const SQL: &str = "SELECT g.id, g.name FROM organization_members m JOIN identities i ON i.key = m.user_key \
                       JOIN organizations g ON g.key = m.organization_key WHERE i.id = ?1";
    let row = tx.query_opt(SQL, params![user]).await?;
    row.map(|mut row| Ok((OrganizationId(row.id(0)?), row.take_text(1)?))).transpose()
}

/// Puts a user into an organization; false when it is in one already, be it this.
pub async fn add_member(
    tx: &mut Writer,
    organization: OrganizationId,
    user: IdentityId,
    at: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO organization_members (user_key, organization_key, inserted_at) \
                       SELECT i.key, g.key, ?3 FROM identities i JOIN organizations g ON g.id = ?1 \
                       WHERE i.id = ?2 AND i.kind = 0 AND i.deleted_at IS NULL ON CONFLICT DO NOTHING";
    Ok(tx.execute(SQL, params![organization, user, at.as_micros()]).await? == 1)
}

/// Takes a user out of an organization; false when it is not in it.
pub async fn remove_member(
    tx: &mut Writer,
    organization: OrganizationId,
    user: IdentityId,
) -> Result<bool, StoreError> {
    const SQL: &str = "DELETE FROM organization_members WHERE user_key = (SELECT key FROM identities WHERE id = ?2) \
                       AND organization_key = (SELECT key FROM organizations WHERE id = ?1)";
    Ok(tx.execute(SQL, params![organization, user]).await? == 1)
}
