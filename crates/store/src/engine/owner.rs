//! One owner of a PostgreSQL database: an advisory lock, held by a connection of its own for the store's life.
//!
//! Losing the connection loses the lock, and another server may take it. So writes stop until it is ours again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, Config, NoTls};

use super::postgres::{bring_up_to_date, check_durable, convert, describe};
use crate::error::StoreError;
use crate::migrate::Migration;

pub(super) const LOCK: &str = "SELECT pg_try_advisory_lock(4787018842174058836)";
const UNLOCK: &str = "SELECT pg_advisory_unlock(4787018842174058836)";

/// Who holds it. An advisory lock's number is stored in two halves.
const HOLDER: &str = "SELECT a.pid, COALESCE(host(a.client_addr), 'a local socket'), a.application_name \
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid \
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 \
    AND (l.classid::bigint << 32) | l.objid::bigint = 4787018842174058836 \
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The server notices within half a minute that this machine is gone, so that the lock does not outlive it.
const SESSION: &str = "SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

/// A killed server's lock is gone as soon as PostgreSQL sees its socket close: a restart must not fail over that.
const PATIENCE: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(100);

/// How often, and how long, the connection is asked whether it lives.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Between two attempts to get a lost lock back.
const AGAIN: Duration = Duration::from_millis(500);

pub(super) struct Owner {
    held: Arc<AtomicBool>,
    /// Empty once released.
    watch: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl Owner {
    /// Connects, checks the server's settings, takes the lock, migrates, and keeps the lock in the background.
    pub(super) async fn take(config: Config, migrations: &[Migration], now_micros: i64) -> Result<Self, StoreError> {
        let session = Session::connect(&config).await.map_err(|error| match error {
            StoreError::Unavailable(cause) => StoreError::Setup(cause),
            other => other,
        })?;
        check_durable(&session.client).await?;
        let mut tries = PATIENCE.as_millis() / RETRY.as_millis();
        while !session.lock().await? {
            tries = tries.saturating_sub(1);
            if tries == 0 {
                let holder = session.holder().await;
                let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres").to_owned();
                return Err(StoreError::DatabaseLocked { database, holder });
            }
            sleep(RETRY).await;
        }
        bring_up_to_date(&session.client, migrations, now_micros).await?;
        let held = Arc::new(AtomicBool::new(true));
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(keep(config, session, Arc::clone(&held), stopped));
        Ok(Self { held, watch: Mutex::new(Some((stop, task))) })
    }

    /// Whether the lock is ours, now and later.
    pub(super) fn held(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.held)
    }

    /// Gives the lock back. (Dropping does so as well, a moment later.)
    pub(super) async fn release(&self) {
        let mut watch = self.watch.lock().await;
        if let Some((stop, task)) = watch.take() {
            drop(stop);
            if let Err(error) = task.await {
                tracing::error!(%error, "the task that keeps the database lock had failed");
            }
        }
    }
}

/// The lock's connection.
struct Session {
    client: Client,
    /// Drives the connection; ends when it is lost.
    driver: JoinHandle<()>,
}

impl Session {
    async fn connect(config: &Config) -> Result<Self, StoreError> {
        let unavailable = |error: tokio_postgres::Error| StoreError::Unavailable(describe(&error));
        let (client, connection) = config.connect(NoTls).await.map_err(unavailable)?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = %describe(&error), "the connection of the database lock ended");
            }
        });
        client.batch_execute(SESSION).await.map_err(unavailable)?;
        Ok(Self { client, driver })
    }

    async fn lock(&self) -> Result<bool, StoreError> {
        let row = self.client.query_one(LOCK, &[]).await.map_err(|error| convert(&error))?;
        row.try_get(0).map_err(|error| convert(&error))
    }

    /// Only for a message, so it has an answer for every failure.
    async fn holder(&self) -> String {
        let unknown = || "owner unknown".to_owned();
        let Ok(Some(row)) = self.client.query_opt(HOLDER, &[]).await else { return unknown() };
        match (row.try_get::<_, i32>(0), row.try_get::<_, String>(1), row.try_get::<_, String>(2)) {
            (Ok(pid), Ok(address), Ok(name)) => format!("{name}, connected from {address}, PostgreSQL process {pid}"),
            _ => unknown(),
        }
    }

    /// Returns when the connection is lost.
    async fn lost(&mut self) {
        loop {
            tokio::select! {
                _ = &mut self.driver => return,
                () = sleep(HEARTBEAT) => {
                    if !matches!(timeout(HEARTBEAT, self.client.batch_execute("SELECT 1")).await, Ok(Ok(()))) {
                        return;
                    }
                }
            }
        }
    }
}

async fn keep(config: Config, mut session: Session, held: Arc<AtomicBool>, mut stopped: oneshot::Receiver<()>) {
    loop {
        tokio::select! {
            _ = &mut stopped => {
                held.store(false, Ordering::SeqCst);
                // Said aloud: the end of a connection frees the lock only some time later.
                if let Err(error) = session.client.batch_execute(UNLOCK).await {
                    tracing::debug!(error = %describe(&error), "could not give the database lock back");
                }
                return;
            }
            () = session.lost() => {}
        }
        held.store(false, Ordering::SeqCst);
        tracing::error!("the connection that holds the database lock was lost; nothing is written until it is back");
        session.driver.abort();
        session = loop {
            tokio::select! {
                _ = &mut stopped => return,
                () = sleep(AGAIN) => {}
            }
            match again(&config).await {
                Ok(Some(session)) => break session,
                Ok(None) => tracing::warn!("another server holds the database lock"),
                Err(error) => tracing::debug!(%error, "cannot get the database lock back yet"),
            }
        };
        held.store(true, Ordering::SeqCst);
        tracing::info!("the database lock is held again");
    }
}

async fn again(config: &Config) -> Result<Option<Session>, StoreError> {
    let session = Session::connect(config).await?;
    Ok(session.lock().await?.then_some(session))
}
