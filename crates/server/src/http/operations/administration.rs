//! What administrators do, with the key of a user who is one. Whoever is none gets 404 for all of it.

use bandstand_domain::audit::Entry;
use bandstand_wire::page::CursorMetadata;
use bandstand_wire::rest::{Data, Page, request};

use crate::admin::{
    AgentRow, HolderRow, IssuedRow, KeyRow, LinkRow, MembershipRow, OrganizationLine, OrganizationRow, QuotaRows,
    RemovedRow, RevokedRow, RotatedRow, SigningKeyRow, UnlinkedRow, UserRow, WithKey,
};
use crate::http::admin::{agents, audit, keys, organizations, quotas, sign_in, users};
use crate::http::operation::{Access, Operation, delete, get, group, patch, post, put};
use crate::http::parameter::{Parameter, cursor, flag, path, text, uuid};

pub(super) fn operations() -> Vec<Operation> {
    [
        group("admin:users", Access::Administrator, user_operations()),
        group("admin:organizations", Access::Administrator, organization_operations()),
        group("admin:agents", Access::Administrator, agent_operations()),
        group("admin:keys", Access::Administrator, key_operations()),
        group("admin:quotas", Access::Administrator, quota_operations()),
        group("admin:sign-in", Access::Administrator, sign_in_operations()),
        group(
            "admin:audit",
            Access::Administrator,
            vec![
                get("/api/v1/admin/audit", "listAuditEntries", audit::list)
                    .summary("What did administrators do?")
                    .description("Oldest first: a chain of hashes, of which the metadata holds the last.")
                    .with(cursor(100))
                    .replies::<Page<Entry, audit::AuditMetadata>>(200),
            ],
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn user() -> Parameter {
    path("who", "The user: its id or its handle.")
}

fn agent() -> Parameter {
    path("who", "The agent: its id or its handle, percent-encoded.")
}

fn organization() -> Parameter {
    path("organization", "The organization: its id or its name, percent-encoded.")
}

fn user_operations() -> Vec<Operation> {
    vec![
        get("/api/v1/admin/users", "listUsers", users::list)
            .summary("Which users are there?")
            .with(cursor(100))
            .replies::<Page<UserRow, CursorMetadata>>(200),
        post("/api/v1/admin/users", "addUser", users::create)
            .summary("Add a user.")
            .description("Its key is in this reply and nowhere else.")
            .takes::<request::NewUser>()
            .replies::<Data<WithKey<UserRow>>>(201),
        get("/api/v1/admin/users/{who}", "getUser", users::show)
            .summary("A user.")
            .with([user()])
            .replies::<Data<UserRow>>(200),
        delete("/api/v1/admin/users/{who}", "deleteUser", users::delete)
            .summary("Delete a user.")
            .with([user(), flag("force", "Its agents as well.").default(false)])
            .replies::<Data<UserRow>>(200),
        post("/api/v1/admin/users/{who}/promote", "promoteUser", users::promote)
            .summary("Make a user an administrator.")
            .with([user()])
            .replies::<Data<UserRow>>(200),
        post("/api/v1/admin/users/{who}/demote", "demoteUser", users::demote)
            .summary("Make an administrator a user.")
            .description("Never the last one.")
            .with([user()])
            .replies::<Data<UserRow>>(200),
        post("/api/v1/admin/users/{who}/disable", "disableUser", users::disable)
            .summary("Refuse a user and its agents.")
            .with([user()])
            .replies::<Data<UserRow>>(200),
        post("/api/v1/admin/users/{who}/enable", "enableUser", users::enable)
            .summary("Let a user and its agents in again.")
            .with([user()])
            .replies::<Data<UserRow>>(200),
    ]
}

fn organization_operations() -> Vec<Operation> {
    vec![
        get("/api/v1/admin/organizations", "listOrganizations", organizations::list)
            .summary("Which organizations are there?")
            .with(cursor(100))
            .replies::<Page<OrganizationLine, CursorMetadata>>(200),
        post("/api/v1/admin/organizations", "addOrganization", organizations::create)
            .summary("Make an organization.")
            .takes::<request::NewOrganization>()
            .replies::<Data<OrganizationRow>>(201),
        get("/api/v1/admin/organizations/{organization}/members", "listOrganizationMembers", organizations::members)
            .summary("Who is in an organization?")
            .with([organization()])
            .with(cursor(100))
            .replies::<Page<HolderRow, CursorMetadata>>(200),
        put("/api/v1/admin/organizations/{organization}/members/{who}", "addOrganizationMember", organizations::add)
            .summary("Put a user in an organization.")
            .description("A user is in one at most.")
            .with([organization(), user()])
            .replies::<Data<MembershipRow>>(200),
        delete(
            "/api/v1/admin/organizations/{organization}/members/{who}",
            "removeOrganizationMember",
            organizations::remove,
        )
        .summary("Take a user out of an organization.")
        .with([organization(), user()])
        .replies::<Data<MembershipRow>>(200),
    ]
}

fn agent_operations() -> Vec<Operation> {
    vec![
        get("/api/v1/admin/agents", "listAgents", agents::list)
            .summary("Which agents are there?")
            .with([
                uuid("owner_id", "Only those of this user."),
                flag("global", "Only those that every user of the server sees.").default(false),
            ])
            .with(cursor(100))
            .replies::<Page<AgentRow, CursorMetadata>>(200),
        post("/api/v1/admin/agents", "addAgent", agents::create)
            .summary("Register an agent of any user.")
            .description("Its key is in this reply and nowhere else.")
            .takes::<request::NewAgentOfUser>()
            .replies::<Data<WithKey<AgentRow>>>(201),
        get("/api/v1/admin/agents/{who}", "getAgent", agents::show)
            .summary("An agent.")
            .with([agent()])
            .replies::<Data<AgentRow>>(200),
        patch("/api/v1/admin/agents/{who}", "changeAgentVisibility", agents::update)
            .summary("Say who sees an agent.")
            .with([agent()])
            .takes::<request::AgentVisibility>()
            .replies::<Data<AgentRow>>(200),
        delete("/api/v1/admin/agents/{who}", "deleteAgent", agents::delete)
            .summary("Delete an agent.")
            .with([agent(), flag("force", "Even if it worked somewhere.").default(false)])
            .replies::<Data<RemovedRow>>(200),
    ]
}

fn key_operations() -> Vec<Operation> {
    vec![
        get("/api/v1/admin/keys", "listKeys", keys::list)
            .summary("Which keys are there?")
            .description("By their first characters.")
            .with([uuid("holder_id", "Only those of this user or agent.")])
            .with(cursor(100))
            .replies::<Page<KeyRow, CursorMetadata>>(200),
        post("/api/v1/admin/keys", "issueKey", keys::issue)
            .summary("Give a user or an agent one more key.")
            .description("It is in this reply and nowhere else.")
            .takes::<request::NewKey>()
            .replies::<Data<WithKey<IssuedRow>>>(201),
        post("/api/v1/admin/keys/{what}/rotate", "rotateKey", keys::rotate)
            .summary("Give a user or an agent a new key; the old ones stop working, at once or after a while.")
            .description("It is in this reply and nowhere else.")
            .with([path("what", "A user or an agent, by id or handle; or a key's id, to replace that one alone.")])
            .may_take::<request::RotateKey>()
            .replies::<Data<WithKey<RotatedRow>>>(200),
        delete("/api/v1/admin/keys/{what}", "revokeKeys", keys::revoke)
            .summary("Revoke a key, or all of a user or an agent.")
            .with([path("what", "The key's id; or a user or an agent, by id or handle.")])
            .replies::<Data<RevokedRow>>(200),
    ]
}

fn quota_operations() -> Vec<Operation> {
    let holder = || path("who", "A user or an agent: its id or its handle, percent-encoded.");
    let resource = || path("resource", "`agents`, `chats`, `participants` or `messages`.");
    vec![
        get("/api/v1/admin/quotas/{who}", "getQuotas", quotas::list)
            .summary("What may somebody have, where that differs from the settings?")
            .with([holder()])
            .replies::<Data<QuotaRows>>(200),
        put("/api/v1/admin/quotas/{who}/{resource}", "setQuota", quotas::set)
            .summary("Give somebody a quota of its own.")
            .with([holder(), resource()])
            .takes::<request::NewQuota>()
            .replies::<Data<QuotaRows>>(200),
        delete("/api/v1/admin/quotas/{who}/{resource}", "unsetQuota", quotas::unset)
            .summary("Let the settings count again.")
            .with([holder(), resource()])
            .replies::<Data<QuotaRows>>(200),
    ]
}

fn sign_in_operations() -> Vec<Operation> {
    vec![
        get("/api/v1/admin/links", "listLinks", sign_in::list)
            .summary("Which accounts of the OpenID Connect issuer are which users?")
            .with([uuid("user_id", "Only those of this user.")])
            .with(cursor(100))
            .replies::<Page<LinkRow, CursorMetadata>>(200),
        post("/api/v1/admin/links", "linkAccount", sign_in::link)
            .summary("Let an account of the issuer sign in as a user.")
            .description("An account is one user's at most.")
            .takes::<request::NewLink>()
            .replies::<Data<LinkRow>>(201)
            .errors(&[409]),
        delete("/api/v1/admin/links", "unlinkAccount", sign_in::unlink)
            .summary("Let an account of the issuer sign in no longer.")
            .description("Its sockets close.")
            .with([
                text("issuer", "The issuer, as its tokens name it (`iss`).").required(),
                text("subject", "The account, as its tokens name it (`sub`).").required(),
            ])
            .replies::<Data<UnlinkedRow>>(200),
        post("/api/v1/admin/signing-keys/rotate", "rotateSigningKey", sign_in::rotate)
            .summary("Sign people's tokens with a new key.")
            .description("Tokens that are out count until they expire, unless they are revoked.")
            .may_take::<request::RotateSigningKey>()
            .replies::<Data<SigningKeyRow>>(200),
    ]
}
