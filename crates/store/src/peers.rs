//! Peers: whom somebody may recruit, because they are in the same network or organization, global, or a contact.

use bandstand_domain::membership::{Peer, PeerSource, Peerage};
use bandstand_wire::ids::{IdentityId, IdentityKind, OrganizationId, RoomId};

use crate::columns::{PROFILE_COLUMNS, identity_kind, kind_code, profile, profile_columns};
use crate::{Param, Reader, Row, StoreError, params};

/// What decides whether somebody may recruit an identity.
pub async fn peerage(tx: &mut Reader, id: IdentityId) -> Result<Option<Peerage>, StoreError> {
    const SQL: &str = "SELECT i.id, i.kind, o.id, i.is_global, g.id, i.shared_with_organization FROM identities i \
                       LEFT JOIN identities o ON o.key = i.owner_key \
                       LEFT JOIN organization_members m ON m.user_key = COALESCE(i.owner_key, i.key) \
                       LEFT JOIN organizations g ON g.key = m.organization_key \
                       WHERE i.id = ?1 AND i.deleted_at IS NULL";
    let Some(row) = tx.query_opt(SQL, params![id]).await? else { return Ok(None) };
    Ok(Some(Peerage {
        id: IdentityId(row.id(0)?),
        kind: identity_kind(row.int(1)?)?,
        owner: row.opt_id(2)?.map(IdentityId),
        is_global: row.bool(3)?,
        organization: row.opt_id(4)?.map(OrganizationId),
        shared_with_organization: row.bool(5)?,
    }))
}

/// Which peers to list.
#[derive(Clone, Copy, Debug)]
pub struct PeerQuery {
    /// Who asks; never listed.
    pub me: IdentityId,
    /// The user in whose network to look: the asker itself, or an agent's owner.
    pub owner: IdentityId,
    /// Leave out who is in this room.
    pub not_in: Option<RoomId>,
    /// People only or programs only.
    pub kind: Option<IdentityKind>,
    /// Rows to skip.
    pub offset: i64,
    /// Most rows.
    pub limit: i64,
}

/// The keys of the owner, the owner's agents, the global agents, and within the organization its shared agents and, for
/// a user, its users.
macro_rules! registry {
    () => {
        "SELECT key FROM identities WHERE id = ?2 \
         UNION SELECT a.key FROM identities a JOIN identities o ON o.key = a.owner_key \
             WHERE o.id = ?2 AND a.kind = 1 AND a.deleted_at IS NULL \
         UNION SELECT key FROM identities WHERE is_global = 1 AND deleted_at IS NULL \
         UNION SELECT a.key FROM identities o JOIN organization_members own ON own.user_key = o.key \
             JOIN organization_members other ON other.organization_key = own.organization_key \
             JOIN identities a ON a.owner_key = other.user_key \
             WHERE o.id = ?2 AND a.kind = 1 AND a.shared_with_organization = 1 AND a.deleted_at IS NULL \
         UNION SELECT other.user_key FROM identities o JOIN organization_members own ON own.user_key = o.key \
             JOIN organization_members other ON other.organization_key = own.organization_key \
             WHERE o.id = ?2 AND ?1 = ?2"
    };
}

/// The keys of the asker's own contacts.
macro_rules! contacts {
    () => {
        "SELECT c.contact_key FROM contacts c JOIN identities m ON m.key = c.identity_key WHERE m.id = ?1"
    };
}

/// The peers under the alias `i`.
macro_rules! from_peers {
    () => {
        concat!(
            " FROM identities i WHERE i.key IN (",
            registry!(),
            " UNION ",
            contacts!(),
            ") AND i.deleted_at IS NULL AND i.id <> ?1 AND (?3 < 0 OR i.kind = ?3) \
             AND NOT EXISTS (SELECT 1 FROM participants p JOIN rooms r ON r.key = p.room_key \
                 WHERE r.id = ?4 AND p.member_key = i.key AND p.left_at IS NULL)"
        )
    };
}

fn conditions(query: &PeerQuery) -> [Param<'static>; 4] {
    [query.me.into(), query.owner.into(), query.kind.map_or(-1, kind_code).into(), query.not_in.into()]
}

fn read_peer(row: &mut Row) -> Result<Peer, StoreError> {
    let in_registry = row.bool(PROFILE_COLUMNS)?;
    Ok(Peer {
        source: if in_registry { PeerSource::Registry } else { PeerSource::Contact },
        is_contact: row.bool(PROFILE_COLUMNS + 1)?,
        profile: profile(row, 0)?,
    })
}

/// Peers: those of the registry first, then who is nothing but a contact; within each, people first, then by name.
pub async fn list(tx: &mut Reader, query: &PeerQuery) -> Result<Vec<Peer>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        profile_columns!("i"),
        ", CASE WHEN i.key IN (",
        registry!(),
        ") THEN 1 ELSE 0 END AS in_registry, CASE WHEN i.key IN (",
        contacts!(),
        ") THEN 1 ELSE 0 END",
        from_peers!(),
        " ORDER BY in_registry DESC, i.kind, i.name_folded, i.key LIMIT ?5 OFFSET ?6"
    );
    let mut values = conditions(query).to_vec();
    values.extend_from_slice(params![query.limit, query.offset]);
    tx.query(SQL, &values).await?.iter_mut().map(read_peer).collect()
}

/// How many peers there are.
pub async fn count(tx: &mut Reader, query: &PeerQuery) -> Result<i64, StoreError> {
    const SQL: &str = concat!("SELECT count(*)", from_peers!());
    tx.query_one(SQL, &conditions(query)).await?.int(0)
}
