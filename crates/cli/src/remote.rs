//! Administration of a server elsewhere: each operation as requests to `/api/v1/admin`.

use std::fmt::Write as _;

use anyhow::{Context, anyhow, bail};
use bandstand_server::admin::{AuditRows, HolderRow, Operation, OrganizationLine, OrganizationRow, Outcome, QuotaWish};
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A server elsewhere.
struct Server<'a> {
    client: reqwest::Client,
    url: &'a str,
    key: &'a str,
}

/// Has an operation done by the server at an address.
pub(crate) fn perform(url: &str, key: &str, operation: Operation) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Fails only when one is installed already, which then serves.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build()?;
    let server = Server { client, url: url.trim_end_matches('/'), key };
    runtime.block_on(Box::pin(server.perform(operation)))
}

impl Server<'_> {
    async fn perform(&self, operation: Operation) -> anyhow::Result<Outcome> {
        let post = Method::POST;
        Ok(match operation {
            Operation::AddUser { handle, first_name, last_name, email, admin } => {
                let user = json!({ "handle": handle, "first_name": first_name, "last_name": last_name, "email": email,
                                   "administrator": admin });
                Outcome::UserAdded(self.data(post, "users", Some(json!({ "user": user }))).await?)
            }
            Operation::ListUsers => Outcome::Users(self.all("users").await?),
            Operation::ShowUser { who } => {
                Outcome::User(self.data(Method::GET, &format!("users/{}", segment(&who)), None).await?)
            }
            Operation::SetRole { who, admin } => {
                let what = if admin { "promote" } else { "demote" };
                Outcome::User(self.data(post, &format!("users/{}/{what}", segment(&who)), None).await?)
            }
            Operation::DisableUser { who, disabled } => {
                let what = if disabled { "disable" } else { "enable" };
                Outcome::User(self.data(post, &format!("users/{}/{what}", segment(&who)), None).await?)
            }
            Operation::DeleteUser { who, force } => {
                let path = format!("users/{}?force={force}", segment(&who));
                Outcome::UserDeleted(self.data(Method::DELETE, &path, None).await?)
            }
            Operation::AddAgent { owner, name, description, is_global } => {
                let agent = json!({ "owner": owner, "name": name, "description": description, "is_global": is_global });
                Outcome::AgentAdded(self.data(post, "agents", Some(json!({ "agent": agent }))).await?)
            }
            Operation::ListAgents => Outcome::Agents(self.all("agents").await?),
            Operation::RemoveAgent { who, force } => {
                let path = format!("agents/{}?force={force}", segment(&who));
                Outcome::AgentRemoved(self.data(Method::DELETE, &path, None).await?)
            }
            Operation::ShareAgent { who, shared } => {
                let body = json!({ "agent": { "shared_with_organization": shared } });
                let path = format!("agents/{}", segment(&who));
                Outcome::AgentShared(self.data(Method::PATCH, &path, Some(body)).await?)
            }
            Operation::GlobalizeAgent { who, is_global } => {
                let body = json!({ "agent": { "is_global": is_global } });
                let path = format!("agents/{}", segment(&who));
                Outcome::AgentGlobalized(self.data(Method::PATCH, &path, Some(body)).await?)
            }
            Operation::AddOrganization { name } => {
                let body = json!({ "organization": { "name": name } });
                Outcome::OrganizationAdded(self.data(post, "organizations", Some(body)).await?)
            }
            Operation::ListOrganizations => Outcome::Organizations(self.organizations().await?),
            Operation::AddOrganizationMember { organization, user } => {
                let path = format!("organizations/{}/members/{}", segment(&organization), segment(&user));
                Outcome::OrganizationMemberAdded(self.data(Method::PUT, &path, None).await?)
            }
            Operation::RemoveOrganizationMember { organization, user } => {
                let path = format!("organizations/{}/members/{}", segment(&organization), segment(&user));
                Outcome::OrganizationMemberRemoved(self.data(Method::DELETE, &path, None).await?)
            }
            Operation::ListKeys => Outcome::Keys(self.all("keys").await?),
            Operation::IssueKey { who } => {
                Outcome::KeyIssued(self.data(post, "keys", Some(json!({ "key": { "holder": who } }))).await?)
            }
            Operation::RotateKey { who, overlap_seconds } => {
                let body = (overlap_seconds > 0).then(|| json!({ "overlap_seconds": overlap_seconds }));
                Outcome::KeyRotated(self.data(post, &format!("keys/{}/rotate", segment(&who)), body).await?)
            }
            Operation::RotateSigningKey { revoke } => {
                let body = revoke.then(|| json!({ "revoke": true }));
                Outcome::SigningKeyRotated(self.data(post, "signing-keys/rotate", body).await?)
            }
            Operation::LinkUser { who, issuer, subject } => {
                let link = json!({ "user": who, "issuer": issuer, "subject": subject });
                Outcome::UserLinked(self.data(post, "links", Some(json!({ "link": link }))).await?)
            }
            Operation::UnlinkUser { issuer, subject } => {
                let path = format!("links?issuer={}&subject={}", escaped(&issuer), escaped(&subject));
                Outcome::UserUnlinked(self.data(Method::DELETE, &path, None).await?)
            }
            Operation::ListLinks => Outcome::Links(self.all("links").await?),
            Operation::RevokeKey { what } => {
                Outcome::KeysRevoked(self.data(Method::DELETE, &format!("keys/{}", segment(&what)), None).await?)
            }
            Operation::ShowQuotas { who } => {
                Outcome::Quotas(self.data(Method::GET, &format!("quotas/{}", segment(&who)), None).await?)
            }
            Operation::SetQuota { who, resource, quota } => {
                let path = format!("quotas/{}/{}", segment(&who), segment(&resource));
                Outcome::Quotas(match quota {
                    QuotaWish::Most(most) => {
                        self.data(Method::PUT, &path, Some(json!({ "quota": { "most": most } }))).await?
                    }
                    QuotaWish::Unlimited => {
                        self.data(Method::PUT, &path, Some(json!({ "quota": { "most": null } }))).await?
                    }
                    QuotaWish::AsSettings => self.data(Method::DELETE, &path, None).await?,
                })
            }
            Operation::Audit { after, .. } => Outcome::Audit(self.audit(after).await?),
        })
    }

    async fn organizations(&self) -> anyhow::Result<Vec<OrganizationRow>> {
        let lines: Vec<OrganizationLine> = self.all("organizations").await?;
        let mut rows = Vec::with_capacity(lines.len());
        for OrganizationLine { id, name, inserted_at } in lines {
            let members: Vec<HolderRow> = self.all(&format!("organizations/{id}/members")).await?;
            rows.push(OrganizationRow { id, name, members, inserted_at });
        }
        Ok(rows)
    }

    /// All entries after one, to the end of the log: cursors of the API are opaque.
    async fn audit(&self, after: i64) -> anyhow::Result<AuditRows> {
        let (entries, metadata) = self.pages("audit").await?;
        let mut entries: Vec<bandstand_domain::audit::Entry> = entries;
        entries.retain(|entry| entry.sequence > after);
        let head = metadata.get("head").cloned().unwrap_or_default();
        Ok(AuditRows { entries, head: serde_json::from_value(head).context(UNKNOWN)? })
    }

    async fn all<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Vec<T>> {
        self.pages(path).await.map(|(rows, _)| rows)
    }

    /// All rows of a list, and the last page's metadata.
    async fn pages<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<(Vec<T>, Value)> {
        let mut rows = Vec::new();
        let mut from = String::new();
        loop {
            let mut page = self.ask(Method::GET, &format!("{path}?limit=100{from}"), None).await?;
            let data = page.get_mut("data").map(Value::take).unwrap_or_default();
            rows.extend(serde_json::from_value::<Vec<T>>(data).context(UNKNOWN)?);
            let metadata = page.get_mut("metadata").map(Value::take).unwrap_or_default();
            match metadata.get("next_cursor").and_then(Value::as_str) {
                Some(next) => from = format!("&cursor={}", segment(next)),
                None => return Ok((rows, metadata)),
            }
        }
    }

    async fn data<T: DeserializeOwned>(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<T> {
        let mut reply = self.ask(method, path, body).await?;
        let data = reply.get_mut("data").map(Value::take).unwrap_or_default();
        serde_json::from_value(data).context(UNKNOWN)
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        let url = format!("{}/api/v1/admin/{path}", self.url);
        let mut request = self.client.request(method, &url).header("x-api-key", self.key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let reply = request.send().await.with_context(|| format!("cannot reach {}", self.url))?;
        let status = reply.status();
        let text = reply.text().await.context("the server broke off its answer")?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        let Some(error) = body.get("error") else { bail!("{} answered {status}: is it a Bandstand server?", self.url) };
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        Err(match status.as_u16() {
            401 => anyhow!("{} does not know this key", self.url),
            404 => anyhow!("not found: either there is no such thing, or this key is not an administrator's"),
            _ => anyhow!("{message}"),
        })
    }
}

const UNKNOWN: &str = "the server answered something unknown; is it another version?";

/// A name as one part of a path.
fn segment(name: &str) -> String {
    escaped(name.trim())
}

/// A text as it stands in an address, to the letter.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path() {
        assert_eq!(segment(" @ana/writer "), "%40ana%2Fwriter");
        assert_eq!(segment(".."), "%2E%2E");
        assert_eq!(segment("Ä b?c"), "%C3%84%20b%3Fc");
    }
}
