//! Administration from the command line: through the running server's admin socket, or on the store itself while no
//! server runs.

use std::io;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use bandstand_domain::clock::Clock;
use bandstand_server::admin::{ABOUT, About, BACKUP, OPERATIONS, Operation, Outcome, Refusal};
use bandstand_server::service::admin::AdminError;
use bandstand_server::start::{AppOptions, StartError, services_only};
use bandstand_server::state::Services;
use bandstand_server::system::{SystemClock, SystemIds};
use bandstand_store::StoreError;
use bytes::Bytes;
use futures_util::Stream;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::settings::Settings;

/// A running server's admin socket.
pub(crate) struct AdminSocket {
    requests: SendRequest<Full<Bytes>>,
}

impl AdminSocket {
    /// Connects; `None` when no server runs on this data.
    pub(crate) async fn connect(settings: &Settings) -> anyhow::Result<Option<Self>> {
        let path = settings.admin_socket();
        let stream = match UnixStream::connect(&path).await {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                bail!("{} is for another user; run this command as the user who runs the server", path.display());
            }
            Err(error) => return Err(error).with_context(|| format!("cannot connect to {}", path.display())),
        };
        let (requests, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends when `requests` is dropped.
        tokio::spawn(connection);
        Ok(Some(Self { requests }))
    }

    /// What it says about its server.
    pub(crate) async fn about(&mut self) -> anyhow::Result<About> {
        self.call(Method::GET, ABOUT, Bytes::new()).await
    }

    /// Has an operation done.
    pub(crate) async fn perform(&mut self, operation: &Operation) -> anyhow::Result<Outcome> {
        self.call(Method::POST, OPERATIONS, serde_json::to_vec(operation)?.into()).await
    }

    /// Has a backup taken; its bytes as they come.
    pub(crate) async fn backup(&mut self) -> anyhow::Result<impl Stream<Item = Result<Bytes, hyper::Error>> + use<>> {
        let request = Request::builder().uri(BACKUP).header("host", "bandstand").body(Full::new(Bytes::new()))?;
        self.requests.ready().await.context("the server ended")?;
        let reply = self.requests.send_request(request).await.context("the server did not answer")?;
        let (status, body) = (reply.status(), reply.into_body());
        if status == StatusCode::OK {
            return Ok(body.into_data_stream());
        }
        let body = body.collect().await.context("the server did not answer")?.to_bytes();
        match serde_json::from_slice::<Refusal>(&body) {
            Ok(refusal) => Err(anyhow!(refusal.error)),
            Err(_) => Err(anyhow!("the server answered {status}; is it another version?")),
        }
    }

    async fn call<T: DeserializeOwned>(&mut self, method: Method, path: &str, body: Bytes) -> anyhow::Result<T> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "bandstand")
            .header("content-type", "application/json")
            .body(Full::new(body))?;
        self.requests.ready().await.context("the server ended")?;
        let reply = self.requests.send_request(request).await.context("the server did not answer")?;
        let status = reply.status();
        let body = reply.into_body().collect().await.context("the server did not answer")?.to_bytes();
        if status == StatusCode::OK {
            return serde_json::from_slice(&body)
                .context("the server answered something unknown; is it another version?");
        }
        match serde_json::from_slice::<Refusal>(&body) {
            Ok(refusal) => Err(anyhow!(refusal.error)),
            Err(_) => Err(anyhow!("the server answered {status}; is it another version?")),
        }
    }
}

/// What came of an operation, and the address of the server if one runs.
pub(crate) struct Performed {
    pub(crate) outcome: Outcome,
    pub(crate) url: Option<String>,
}

/// Does an operation, through the running server or without one.
pub(crate) fn perform(settings: &Settings, operation: Operation) -> anyhow::Result<Performed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if let Some(mut socket) = AdminSocket::connect(settings).await? {
            let url = socket.about().await?.url;
            let outcome = socket.perform(&operation).await?;
            return Ok(Performed { outcome, url: Some(url) });
        }
        Ok(Performed { outcome: perform_alone(settings, operation).await?, url: None })
    })
}

/// Does it on the store itself.
pub(crate) async fn perform_alone(settings: &Settings, operation: Operation) -> anyhow::Result<Outcome> {
    let data = settings.data.display();
    if settings.database.is_none() && !settings.database_file().is_file() {
        bail!(
            "there is no Bandstand data in {data}; start the server once with `bandstand up --data {data}`, \
             or name another folder with --data"
        );
    }
    let services = services_only(app_options(settings)).await.map_err(|error| {
        let locked = "it does not answer on its admin socket: when it is starting or stopping, try again in a moment";
        explain(&error, settings, locked)
    })?;
    let outcome = perform_owned(&services, operation).await;
    services.store.close().await;
    Ok(outcome?)
}

/// The first person is the owner, whom only the first start makes: nobody else may take that place.
async fn perform_owned(services: &Services, operation: Operation) -> Result<Outcome, AdminError> {
    if matches!(operation, Operation::AddUser { .. }) && services.list_users().await?.is_empty() {
        return Err(AdminError::NoOwner);
    }
    operation.perform(services).await
}

/// The parts of a server on these settings.
pub(crate) fn app_options(settings: &Settings) -> AppOptions {
    let clock = Arc::new(SystemClock);
    AppOptions {
        store: settings.store_options(clock.now().as_micros()),
        files: settings.file_options(|name| std::env::var(name).ok()),
        limits: settings.limits_in_force(),
        clock,
        ids: Arc::new(SystemIds::default()),
    }
}

/// Adds what to do to an error from opening the store; `locked` is what to do when a server has the data.
pub(crate) fn explain(error: &StartError, settings: &Settings, locked: &str) -> anyhow::Error {
    let StartError::Store(cause) = error else {
        return anyhow!("{error}; `bandstand doctor` says more");
    };
    match cause {
        StoreError::Locked { .. } => anyhow!("{error}; {locked}"),
        StoreError::DatabaseLocked { .. } => anyhow!(
            "{error}; to go through that server, name its data folder with --data (now {}) on its machine",
            settings.data.display()
        ),
        _ => anyhow!("{error}; `bandstand doctor` says more"),
    }
}
