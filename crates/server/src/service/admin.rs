//! Administration: what the command line does, with or without a running server.

use bandstand_domain::handle::{self, UsernameError};
use bandstand_domain::identity::{Agent, Profile, User, UserRole, user_name};
use bandstand_store::keys::KeyInfo;
use bandstand_store::quotas::LimitReached;
use bandstand_store::{Reader, StoreError, Writer, identities, keys};
use bandstand_wire::ids::{IdentityId, IdentityKind, KeyId};
use serde_json::json;

use crate::secret::{ApiKey, KeyKind};
use crate::service::agents::{DeleteAgentError, DeletedAgent, RegisterError, Registration};
use crate::service::audit::Noting;
use crate::state::Services;

/// A user to be added.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// Username, with or without `@`.
    pub handle: String,
    /// First name, may be empty.
    pub first_name: String,
    /// Last name, may be empty.
    pub last_name: String,
    /// E-mail address; `<handle>@localhost` when absent.
    pub email: Option<String>,
    /// What the user may do on this server.
    pub role: UserRole,
}

/// An agent to be added.
#[derive(Clone, Debug)]
pub struct NewAgent {
    /// The owner's handle; the server's owner when absent.
    pub owner: Option<String>,
    /// Its name.
    pub name: String,
    /// What it does; a plain sentence is made when absent, since band-sdk refuses an agent without one.
    pub description: Option<String>,
    /// Visible to every user.
    pub is_global: bool,
}

/// Why an act of administration is refused. The messages are for people.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The username cannot be used.
    #[error("the handle {handle:?} cannot be used: it {why}")]
    Handle {
        /// What was asked for.
        handle: String,
        /// What is wrong.
        why: UsernameError,
    },
    /// The username is taken.
    #[error("the handle {0:?} has already been taken")]
    HandleTaken(String),
    /// The agent's name is empty, too long, or holds something that cannot be stored.
    #[error("the name {0}")]
    Name(String),
    /// The agent's description is too short or too long.
    #[error("the description {0}")]
    Description(String),
    /// The owner has an agent of that name.
    #[error("{owner} already has an agent named {name:?}")]
    NameTaken {
        /// The owner's handle.
        owner: String,
        /// The name.
        name: String,
    },
    /// There is no such user, agent or key.
    #[error("there is no {what} {name:?}")]
    NotFound {
        /// `user`, `agent`, `user or agent`, `key, user or agent`, or `organization`.
        what: &'static str,
        /// What was asked for.
        name: String,
    },
    /// An organization of that name exists.
    #[error("there already is an organization named {0:?}")]
    OrganizationTaken(String),
    /// The user is in an organization, and may be in one only.
    #[error("{user} already belongs to {organization:?}; a user is in one organization at most")]
    HasOrganization {
        /// The user's handle.
        user: String,
        /// Its organization's name.
        organization: String,
    },
    /// The user is not in that organization.
    #[error("{user} does not belong to {organization:?}")]
    NotInOrganization {
        /// The user's handle.
        user: String,
        /// The organization's name.
        organization: String,
    },
    /// Nobody could administer the server any more.
    #[error("{0} is the last administrator; promote somebody else first")]
    LastAdministrator(String),
    /// The user has agents, and `force` was not given.
    #[error("{0} has agents; add --force to remove them as well")]
    HasAgents(String),
    /// There is no user yet.
    #[error("this server has no owner yet; start it once with `bandstand up`")]
    NoOwner,
    /// The agent worked, and `force` was not given.
    #[error("the agent {0:?} has execution history; add --force to remove it all the same")]
    HasHistory(String),
    /// An issuer or a subject that no account has.
    #[error("the {what} of an account must have at most {most} bytes, be not blank and have no control characters")]
    Account {
        /// `issuer` or `subject`.
        what: &'static str,
        /// Its longest, in bytes.
        most: usize,
    },
    /// The account is somebody's, be it of a user who was deleted.
    #[error("the account {subject:?} of {issuer} is linked to a user already; `bandstand user unlink` ends that")]
    AccountTaken {
        /// Its issuer.
        issuer: String,
        /// Its subject.
        subject: String,
    },
    /// There is no signing key, and none can be made.
    #[error("the signing key cannot be made")]
    SigningKey,
    /// The owner has as many agents as it may have.
    #[error(transparent)]
    Quota(LimitReached),
    /// There is no randomness for a key.
    #[error("no randomness for a key: {0}")]
    Randomness(getrandom::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checks a new agent's name as both APIs and the command line take it; returns it trimmed.
///
/// # Errors
/// What is wrong, as a sentence's end: "can't be blank".
pub fn check_agent_name(name: &str, max: usize) -> Result<String, String> {
    let name = name.trim();
    if !bandstand_domain::content::is_visible(name) {
        return Err("can't be blank".into());
    }
    if name.chars().any(char::is_control) {
        return Err("must not contain control characters".into());
    }
    if name.chars().count() > max {
        return Err(format!("should be at most {max} character(s)"));
    }
    Ok(name.to_owned())
}

/// Checks a new agent's description; returns it trimmed.
///
/// # Errors
/// What is wrong, as a sentence's end.
pub fn check_agent_description(description: &str, min: usize, max: usize) -> Result<String, String> {
    let description = description.trim();
    let length = description.chars().count();
    if description.contains('\0') {
        return Err("must not contain the character NUL".into());
    }
    if length < min {
        return Err(format!("should be at least {min} character(s)"));
    }
    if length > max {
        return Err(format!("should be at most {max} character(s)"));
    }
    Ok(description.to_owned())
}

impl Services {
    /// Makes the server's owner unless there is a user already; `None` then.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn bootstrap_owner(
        &self,
        owner_handle: &str,
        preset: Option<ApiKey>,
    ) -> Result<Option<(User, ApiKey)>, AdminError> {
        let first: Option<User> = self
            .store
            .read("first_user", |tx| Box::pin(identities::first_user(tx)))
            .await
            .map_err(AdminError::Store)?;
        if first.is_some() {
            return Ok(None);
        }
        let owner = NewUser {
            handle: owner_handle.to_owned(),
            first_name: String::new(),
            last_name: String::new(),
            email: None,
            role: UserRole::Admin,
        };
        self.add_user_with(owner, preset, self.noting("server.set_up")).await.map(Some)
    }

    /// Adds a user and makes its key, which is in the answer and nowhere else.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn add_user(&self, new: NewUser) -> Result<(User, ApiKey), AdminError> {
        self.add_user_with(new, None, self.noting("user.add")).await
    }

    async fn add_user_with(
        &self,
        new: NewUser,
        preset: Option<ApiKey>,
        noting: Noting,
    ) -> Result<(User, ApiKey), AdminError> {
        let handle =
            handle::username(&new.handle).map_err(|why| AdminError::Handle { handle: new.handle.clone(), why })?;
        let is_preset = preset.is_some();
        let api_key = match preset {
            Some(key) => key,
            None => ApiKey::generate(KeyKind::User, getrandom::fill).map_err(AdminError::Randomness)?,
        };
        let (id, key_id, now) = (self.ids.identity(), self.ids.key(), self.clock.now());
        let (first_name, last_name) = (new.first_name.trim().to_owned(), new.last_name.trim().to_owned());
        let user = User {
            profile: Profile {
                id,
                kind: IdentityKind::User,
                name: user_name(&first_name, &last_name, &handle),
                description: None,
                handle: handle.clone(),
            },
            email: new.email.unwrap_or_else(|| format!("{handle}@localhost")),
            first_name,
            last_name,
            role: new.role,
            listed_in_directory: false,
            disabled_at: None,
            inserted_at: now,
            updated_at: now,
        };
        let (hash, hint) = (api_key.hash(), api_key.hint());
        let user = self
            .store
            .write("add_user", move |tx| {
                Box::pin(async move {
                    if !identities::insert_user(tx, &user).await? {
                        return Err(AdminError::HandleTaken(user.profile.handle));
                    }
                    keys::insert(tx, key_id, id, hash, &hint, now).await?;
                    let details =
                        json!({ "id": id, "role": user.role.as_str(), "key_id": key_id, "preset_key": is_preset });
                    noting.note(tx, &user.profile.handle, details).await?;
                    Ok(user)
                })
            })
            .await?;
        Ok((user, api_key))
    }

    /// All users, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_users(&self) -> Result<Vec<User>, AdminError> {
        self.store.read("list_users", |tx| Box::pin(identities::users(tx))).await.map_err(AdminError::Store)
    }

    /// Adds an agent and makes its key, which is in the answer and nowhere else.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn add_agent(&self, new: NewAgent) -> Result<(Agent, ApiKey), AdminError> {
        let limits = &self.limits;
        let name = check_agent_name(&new.name, limits.name_max).map_err(AdminError::Name)?;
        let description = new.description.unwrap_or_else(|| format!("{name}, an agent on this Bandstand server"));
        let description = check_agent_description(&description, limits.description_min, limits.description_max)
            .map_err(AdminError::Description)?;
        let owner = match new.owner {
            Some(wanted) => {
                let folded = handle::folded(&wanted);
                let found = self.find(folded).await?.filter(|profile| profile.kind == IdentityKind::User);
                found.ok_or(AdminError::NotFound { what: "user", name: wanted })?
            }
            None => {
                let first: Option<User> = self
                    .store
                    .read("first_user", |tx| Box::pin(identities::first_user(tx)))
                    .await
                    .map_err(AdminError::Store)?;
                first.ok_or(AdminError::NoOwner)?.profile
            }
        };
        let registration = Registration { owner: owner.id, name: name.clone(), description, is_global: new.is_global };
        self.register_agent_noting(registration, Some(self.noting("agent.add"))).await.map_err(|why| match why {
            RegisterError::NameTaken => AdminError::NameTaken { owner: owner.handle, name },
            RegisterError::NoOwner => AdminError::NoOwner,
            RegisterError::Quota(reached) => AdminError::Quota(reached),
            RegisterError::Randomness(why) => AdminError::Randomness(why),
            RegisterError::Store(why) => AdminError::Store(why),
        })
    }

    /// All agents, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_agents(&self) -> Result<Vec<Agent>, AdminError> {
        self.store.read("list_agents", |tx| Box::pin(identities::agents(tx))).await.map_err(AdminError::Store)
    }

    /// Removes an agent, named by its id or handle.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn remove_agent(&self, who: &str, force: bool) -> Result<DeletedAgent, AdminError> {
        let not_found = || AdminError::NotFound { what: "agent", name: who.to_owned() };
        let profile = self.find(who.to_owned()).await?.filter(|profile| profile.kind == IdentityKind::Agent);
        let profile = profile.ok_or_else(not_found)?;
        let noting = Some(self.noting("agent.remove"));
        self.delete_agent_noting(None, profile.id, force, noting).await.map_err(|why| match why {
            DeleteAgentError::NotFound => not_found(),
            DeleteAgentError::HasHistory => AdminError::HasHistory(profile.handle),
            DeleteAgentError::Store(why) => AdminError::Store(why),
        })
    }

    /// Gives a user or agent, named by id or handle, a new key and revokes all it had.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn rotate_key(&self, who: &str) -> Result<(Profile, ApiKey), AdminError> {
        self.make_key(who, true, self.noting("key.rotate")).await.map(|(profile, _, key)| (profile, key))
    }

    /// Gives a user or agent, named by id or handle, one more key.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn issue_key(&self, who: &str) -> Result<(Profile, KeyId, ApiKey), AdminError> {
        self.make_key(who, false, self.noting("key.issue")).await
    }

    async fn make_key(
        &self,
        who: &str,
        revoke_others: bool,
        noting: Noting,
    ) -> Result<(Profile, KeyId, ApiKey), AdminError> {
        let not_found = AdminError::NotFound { what: "user or agent", name: who.to_owned() };
        let Some(profile) = self.find(who.to_owned()).await? else { return Err(not_found) };
        let kind = match profile.kind {
            IdentityKind::User => KeyKind::User,
            IdentityKind::Agent => KeyKind::Agent,
        };
        let api_key = ApiKey::generate(kind, getrandom::fill).map_err(AdminError::Randomness)?;
        let (id, key_id, now) = (profile.id, self.ids.key(), self.clock.now());
        let (hash, hint, handle) = (api_key.hash(), api_key.hint(), profile.handle.clone());
        self.store
            .write("make_key", move |tx: &mut Writer| {
                Box::pin(async move {
                    let revoked = if revoke_others { keys::revoke_all(tx, id, now).await? } else { 0 };
                    if !keys::insert(tx, key_id, id, hash, &hint, now).await? {
                        return Err(not_found);
                    }
                    noting.note(tx, handle, json!({ "id": id, "key_id": key_id, "revoked": revoked })).await?;
                    Ok(())
                })
            })
            .await?;
        Ok((profile, key_id, api_key))
    }

    /// Revokes one key by its id, or all keys of a user or agent named by id or handle; how many.
    ///
    /// # Errors
    /// [`AdminError`]; a key that is revoked already counts as none.
    pub async fn revoke_key(&self, what: &str) -> Result<usize, AdminError> {
        let now = self.clock.now();
        let noting = self.noting("key.revoke");
        let not_found = AdminError::NotFound { what: "key, user or agent", name: what.to_owned() };
        if let Some(profile) = self.find(what.to_owned()).await? {
            return self
                .store
                .write("revoke_keys", move |tx| {
                    Box::pin(async move {
                        let revoked = keys::revoke_all(tx, profile.id, now).await?;
                        noting.note(tx, profile.handle, json!({ "id": profile.id, "revoked": revoked })).await?;
                        Ok(revoked)
                    })
                })
                .await;
        }
        let Ok(key) = what.trim().parse::<KeyId>() else { return Err(not_found) };
        self.store
            .write("revoke_key", move |tx| {
                Box::pin(async move {
                    if !keys::revoke(tx, key, now).await? {
                        return Err(not_found);
                    }
                    noting.note(tx, key.to_string(), json!({ "revoked": 1 })).await?;
                    Ok(1)
                })
            })
            .await
    }

    /// All keys, oldest first: never the keys themselves.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_keys(&self) -> Result<Vec<KeyInfo>, AdminError> {
        self.store.read("list_keys", |tx| Box::pin(keys::list(tx))).await.map_err(AdminError::Store)
    }

    /// Somebody, by id or handle.
    pub(super) async fn find(&self, who: String) -> Result<Option<Profile>, AdminError> {
        self.store
            .read("find_identity", move |tx: &mut Reader| {
                Box::pin(async move {
                    match who.trim().parse::<IdentityId>() {
                        Ok(id) => identities::by_id(tx, id).await,
                        Err(_) => identities::by_handle(tx, &handle::folded(&who)).await,
                    }
                })
            })
            .await
            .map_err(AdminError::Store)
    }
}
