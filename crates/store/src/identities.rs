//! Users and agents.

use std::sync::LazyLock;

use bandstand_domain::event::Event;
use bandstand_domain::identity::{Agent, Profile, User, UserRole};
use bandstand_wire::ids::IdentityId;
use bandstand_wire::time::Timestamp;

use crate::columns::{PROFILE_COLUMNS, profile, profile_columns, unknown};
use crate::{Param, Reader, Row, StoreError, Writer, params};

/// Columns of an [`Agent`]: a profile and what follows.
macro_rules! agent_columns {
    () => {
        concat!(
            profile_columns!("a"),
            ", o.id, a.slug, a.is_global, a.shared_with_organization, a.listed_in_directory, a.registry_access, \
             a.inserted_at, a.updated_at, a.key"
        )
    };
}

fn read_agent(row: &mut Row) -> Result<(Agent, i64), StoreError> {
    let profile = profile(row, 0)?;
    let at = PROFILE_COLUMNS;
    let agent = Agent {
        profile,
        owner: IdentityId(row.id(at)?),
        slug: row.take_text(at + 1)?,
        is_global: row.bool(at + 2)?,
        shared_with_organization: row.bool(at + 3)?,
        listed_in_directory: row.bool(at + 4)?,
        registry_access: row.bool(at + 5)?,
        inserted_at: Timestamp::from_micros(row.int(at + 6)?),
        updated_at: Timestamp::from_micros(row.int(at + 7)?),
    };
    Ok((agent, row.int(at + 8)?))
}

/// Columns of a [`User`]: a profile and what follows.
macro_rules! user_columns {
    () => {
        concat!(
            profile_columns!("u"),
            ", u.email, u.first_name, u.last_name, u.role, u.listed_in_directory, u.inserted_at, u.updated_at, \
             u.disabled_at, u.key"
        )
    };
}

/// How many columns [`user_columns`] names, the key being the last.
const USER_COLUMNS: usize = PROFILE_COLUMNS + 9;

fn read_user(row: &mut Row) -> Result<User, StoreError> {
    let profile = profile(row, 0)?;
    let at = PROFILE_COLUMNS;
    let role = row.text(at + 3)?;
    Ok(User {
        profile,
        role: UserRole::parse(role).ok_or_else(|| unknown("role", role))?,
        email: row.take_opt_text(at)?.unwrap_or_default(),
        first_name: row.take_text(at + 1)?,
        last_name: row.take_text(at + 2)?,
        listed_in_directory: row.bool(at + 4)?,
        inserted_at: Timestamp::from_micros(row.int(at + 5)?),
        updated_at: Timestamp::from_micros(row.int(at + 6)?),
        disabled_at: row.opt_int(at + 7)?.map(Timestamp::from_micros),
    })
}

/// Stores a new user; false when the handle is taken.
pub async fn insert_user(tx: &mut Writer, user: &User) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO identities (id, kind, handle, name, name_folded, email, first_name, last_name, role, \
                       listed_in_directory, inserted_at, updated_at) \
                       VALUES (?1, 0, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10) ON CONFLICT DO NOTHING";
    let inserted = tx
        .execute(
            SQL,
            params![
                user.profile.id,
                &user.profile.handle,
                &user.profile.name,
                &user.profile.name.to_lowercase(),
                &user.email,
                &user.first_name,
                &user.last_name,
                user.role.as_str(),
                user.listed_in_directory,
                user.inserted_at.as_micros(),
            ],
        )
        .await?;
    Ok(inserted == 1)
}

/// Stores a new agent; false when its handle or its name is taken.
pub async fn insert_agent(tx: &mut Writer, agent: &Agent) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO identities (id, kind, handle, name, name_folded, description, owner_key, slug, is_global, \
                       inserted_at, updated_at) \
                       SELECT ?1, 1, ?2, ?3, ?4, ?5, key, ?7, ?8, ?9, ?9 FROM identities \
                       WHERE id = ?6 AND deleted_at IS NULL ON CONFLICT DO NOTHING";
    let inserted = tx
        .execute(
            SQL,
            params![
                agent.profile.id,
                &agent.profile.handle,
                &agent.profile.name,
                &agent.profile.name.to_lowercase(),
                agent.profile.description.as_ref(),
                agent.owner,
                &agent.slug,
                agent.is_global,
                agent.inserted_at.as_micros(),
            ],
        )
        .await?;
    Ok(inserted == 1)
}

/// Whether `owner` has an agent of that name, without regard to case.
pub async fn agent_name_taken(tx: &mut Reader, owner: IdentityId, name: &str) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM identities a JOIN identities o ON o.key = a.owner_key \
                       WHERE o.id = ?1 AND a.name_folded = ?2 AND a.kind = 1 AND a.deleted_at IS NULL";
    Ok(tx.query_opt(SQL, params![owner, &name.to_lowercase()]).await?.is_some())
}

/// A user that is not deleted.
pub async fn user(tx: &mut Reader, id: IdentityId) -> Result<Option<User>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        user_columns!(),
        " FROM identities u WHERE u.id = ?1 AND u.kind = 0 AND u.deleted_at IS NULL"
    );
    tx.query_opt(SQL, params![id]).await?.map(|mut row| read_user(&mut row)).transpose()
}

/// All users, oldest first.
pub async fn users(tx: &mut Reader) -> Result<Vec<User>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        user_columns!(),
        " FROM identities u WHERE u.kind = 0 AND u.deleted_at IS NULL ORDER BY u.key"
    );
    tx.query(SQL, params![]).await?.iter_mut().map(read_user).collect()
}

/// The first user: the owner of this server. `None` before the first start has made one.
pub async fn first_user(tx: &mut Reader) -> Result<Option<User>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        user_columns!(),
        " FROM identities u WHERE u.kind = 0 AND u.deleted_at IS NULL ORDER BY u.key LIMIT 1"
    );
    tx.query_opt(SQL, params![]).await?.map(|mut row| read_user(&mut row)).transpose()
}

/// Changes a user's names; false when there is no such user. `name` is the display name that follows from them.
pub async fn rename_user(
    tx: &mut Writer,
    id: IdentityId,
    first_name: &str,
    last_name: &str,
    name: &str,
    at: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE identities SET first_name = ?2, last_name = ?3, name = ?4, name_folded = ?5, updated_at = ?6 \
                       WHERE id = ?1 AND kind = 0 AND deleted_at IS NULL";
    let folded = name.to_lowercase();
    let values = params![id, first_name, last_name, name, &folded, at.as_micros()];
    let changed = tx.execute(SQL, values).await? == 1;
    if changed {
        tx.emit(Event::IdentityChanged { id });
    }
    Ok(changed)
}

/// An agent that is not deleted.
pub async fn agent(tx: &mut Reader, id: IdentityId) -> Result<Option<Agent>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        agent_columns!(),
        " FROM identities a JOIN identities o ON o.key = a.owner_key WHERE a.id = ?1 AND a.kind = 1 AND a.deleted_at IS NULL"
    );
    tx.query_opt(SQL, params![id]).await?.map(|mut row| read_agent(&mut row).map(|(agent, _)| agent)).transpose()
}

/// All agents, oldest first.
pub async fn agents(tx: &mut Reader) -> Result<Vec<Agent>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        agent_columns!(),
        " FROM identities a JOIN identities o ON o.key = a.owner_key WHERE a.kind = 1 AND a.deleted_at IS NULL ORDER BY a.key"
    );
    tx.query(SQL, params![]).await?.iter_mut().map(|row| read_agent(row).map(|(agent, _)| agent)).collect()
}

/// Lets the organization of an agent's owner find the agent, or no longer; false when there is no such agent.
pub async fn share_agent(tx: &mut Writer, id: IdentityId, shared: bool, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE identities SET shared_with_organization = ?2, updated_at = ?3 \
                       WHERE id = ?1 AND kind = 1 AND deleted_at IS NULL";
    Ok(tx.execute(SQL, params![id, shared, at.as_micros()]).await? == 1)
}

/// Shows an agent to every user, or no longer; false when there is no such agent.
pub async fn globalize_agent(
    tx: &mut Writer,
    id: IdentityId,
    is_global: bool,
    at: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE identities SET is_global = ?2, updated_at = ?3 \
                       WHERE id = ?1 AND kind = 1 AND deleted_at IS NULL";
    Ok(tx.execute(SQL, params![id, is_global, at.as_micros()]).await? == 1)
}

/// A page of all users, oldest first: those after a key, each with its own.
pub async fn users_after(tx: &mut Reader, key: i64, limit: i64) -> Result<Vec<(User, i64)>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        user_columns!(),
        " FROM identities u WHERE u.kind = 0 AND u.deleted_at IS NULL AND u.key > ?1 ORDER BY u.key LIMIT ?2"
    );
    let mut rows = tx.query(SQL, params![key, limit]).await?;
    rows.iter_mut().map(|row| Ok((read_user(row)?, row.int(USER_COLUMNS - 1)?))).collect()
}

/// A page of all agents, oldest first: those after a key, each with its own. Of one owner, or of any.
pub async fn agents_after(
    tx: &mut Reader,
    owner: Option<IdentityId>,
    only_global: bool,
    key: i64,
    limit: i64,
) -> Result<Vec<(Agent, i64)>, StoreError> {
    const ALL: &str = concat!(
        "SELECT ",
        agent_columns!(),
        " FROM identities a JOIN identities o ON o.key = a.owner_key \
         WHERE a.kind = 1 AND a.deleted_at IS NULL AND a.key > ?1 ORDER BY a.key LIMIT ?2"
    );
    const GLOBAL: &str = concat!(
        "SELECT ",
        agent_columns!(),
        " FROM identities a JOIN identities o ON o.key = a.owner_key \
         WHERE a.kind = 1 AND a.deleted_at IS NULL AND a.is_global = 1 AND a.key > ?1 ORDER BY a.key LIMIT ?2"
    );
    const OWNED: &str = concat!(
        "SELECT ",
        agent_columns!(),
        " FROM identities a JOIN identities o ON o.key = a.owner_key WHERE o.id = ?3 AND (?4 = 0 OR a.is_global = 1) \
         AND a.kind = 1 AND a.deleted_at IS NULL AND a.key > ?1 ORDER BY a.key LIMIT ?2"
    );
    let mut rows = match owner {
        Some(owner) => tx.query(OWNED, params![key, limit, owner, only_global]).await?,
        None => tx.query(if only_global { GLOBAL } else { ALL }, params![key, limit]).await?,
    };
    rows.iter_mut().map(read_agent).collect()
}

/// Whether somebody else than this user may administer.
pub async fn has_other_administrator(tx: &mut Reader, id: IdentityId) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM identities WHERE role = 'admin' AND deleted_at IS NULL AND kind = 0 \
                       AND disabled_at IS NULL AND id <> ?1 LIMIT 1";
    Ok(tx.query_opt(SQL, params![id]).await?.is_some())
}

/// Changes what a user may do on this server.
pub async fn set_role(tx: &mut Writer, id: IdentityId, role: UserRole, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE identities SET role = ?2, updated_at = ?3 WHERE id = ?1 AND kind = 0 AND deleted_at IS NULL";
    tx.execute(SQL, params![id, role.as_str(), at.as_micros()]).await.map(drop)
}

/// Refuses a user and its agents since then, or takes them again.
pub async fn set_disabled(
    tx: &mut Writer,
    id: IdentityId,
    since: Option<Timestamp>,
    at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE identities SET disabled_at = ?2, updated_at = ?3 WHERE id = ?1 AND kind = 0 AND deleted_at IS NULL";
    tx.execute(SQL, params![id, since.map(Timestamp::as_micros), at.as_micros()]).await.map(drop)
}

/// How a user's agents are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentSort {
    /// By name, without regard to case.
    Name,
    /// By when they were registered.
    InsertedAt,
    /// By when they last changed.
    UpdatedAt,
}

/// The value that an agent is sorted by, as a cursor keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortValue {
    /// A folded name.
    Text(String),
    /// Microseconds.
    Int(i64),
}

/// Which of a user's agents, in which order.
#[derive(Clone, Debug)]
pub struct AgentQuery {
    /// Whose.
    pub owner: IdentityId,
    /// Part of the name, folded; empty means any.
    pub name: String,
    /// Listed in the directory or not; `None` means any.
    pub listed: Option<bool>,
    /// By what.
    pub sort: AgentSort,
    /// Largest first.
    pub descending: bool,
    /// After this row: its sort value and key.
    pub after: Option<(SortValue, i64)>,
    /// Rows to skip (offset pages).
    pub offset: i64,
    /// Most rows.
    pub limit: i64,
}

static MY_AGENTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for column in ["a.name_folded", "a.inserted_at", "a.updated_at"] {
        for (order, comparison) in [("ASC", ">"), ("DESC", "<")] {
            for cursor in [false, true] {
                let after = if cursor { format!("AND ({column}, a.key) {comparison} (?6, ?7)") } else { String::new() };
                all.push(format!(
                    "SELECT {} FROM identities a JOIN identities o ON o.key = a.owner_key \
                     WHERE o.id = ?1 AND a.kind = 1 AND a.deleted_at IS NULL AND a.name_folded LIKE ?2 ESCAPE '\\' \
                     AND (?3 < 0 OR a.listed_in_directory = ?3) {after} \
                     ORDER BY {column} {order}, a.key {order} LIMIT ?4 OFFSET ?5",
                    agent_columns!()
                ));
            }
        }
    }
    all
});

/// A part of a text as a LIKE pattern that matches it anywhere.
fn containing(part: &str) -> String {
    let mut pattern = String::with_capacity(part.len() + 2);
    pattern.push('%');
    for c in part.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

/// A user's agents, each with the key that a cursor needs.
pub async fn agents_of(tx: &mut Reader, query: &AgentQuery) -> Result<Vec<(Agent, i64)>, StoreError> {
    let column = match query.sort {
        AgentSort::Name => 0,
        AgentSort::InsertedAt => 1,
        AgentSort::UpdatedAt => 2,
    };
    let sql: &'static str =
        &MY_AGENTS[column * 4 + usize::from(query.descending) * 2 + usize::from(query.after.is_some())];
    let pattern = containing(&query.name);
    let listed = query.listed.map_or(-1, i64::from);
    let mut values = params![query.owner, &pattern, listed, query.limit, query.offset].to_vec();
    if let Some((value, key)) = &query.after {
        values.push(match value {
            SortValue::Text(text) => Param::Text(text),
            SortValue::Int(number) => Param::Int(*number),
        });
        values.push(Param::Int(*key));
    }
    tx.query(sql, &values).await?.iter_mut().map(read_agent).collect()
}

/// How many agents [`agents_of`] would list without its limit.
pub async fn count_agents_of(tx: &mut Reader, query: &AgentQuery) -> Result<i64, StoreError> {
    const SQL: &str = "SELECT count(*) FROM identities a JOIN identities o ON o.key = a.owner_key \
                       WHERE o.id = ?1 AND a.kind = 1 AND a.deleted_at IS NULL AND a.name_folded LIKE ?2 ESCAPE '\\' \
                       AND (?3 < 0 OR a.listed_in_directory = ?3)";
    let listed = query.listed.map_or(-1, i64::from);
    tx.query_one(SQL, params![query.owner, &containing(&query.name), listed]).await?.int(0)
}

/// The profile of an identity that is not deleted, found by its folded handle.
pub async fn by_handle(tx: &mut Reader, handle: &str) -> Result<Option<Profile>, StoreError> {
    const SQL: &str =
        concat!("SELECT ", profile_columns!("i"), " FROM identities i WHERE i.handle = ?1 AND i.deleted_at IS NULL");
    tx.query_opt(SQL, params![handle]).await?.map(|mut row| profile(&mut row, 0)).transpose()
}

/// The profile of an identity that is not deleted.
pub async fn by_id(tx: &mut Reader, id: IdentityId) -> Result<Option<Profile>, StoreError> {
    const SQL: &str =
        concat!("SELECT ", profile_columns!("i"), " FROM identities i WHERE i.id = ?1 AND i.deleted_at IS NULL");
    tx.query_opt(SQL, params![id]).await?.map(|mut row| profile(&mut row, 0)).transpose()
}

/// Marks an identity as deleted and announces it; its handle and name become free. Its keys and rooms are the caller's
/// to end first.
pub async fn delete(tx: &mut Writer, id: IdentityId, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE identities SET deleted_at = ?2, updated_at = ?2 WHERE id = ?1 AND deleted_at IS NULL";
    let deleted = tx.execute(SQL, params![id, at.as_micros()]).await? == 1;
    if deleted {
        tx.emit(Event::IdentityRemoved { id });
    }
    Ok(deleted)
}
