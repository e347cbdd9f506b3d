//! Puts the running server together, and takes it apart in order.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use bandstand_domain::audit::Door;
use bandstand_domain::clock::{Clock, IdSource};
use bandstand_store::{Commit, CommitSink, Store, StoreError, StoreOptions};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::auth::{Authenticator, Known};
use crate::health::Draining;
use crate::http;
use crate::rates::Rates;
use crate::service::audit::Actor;
use crate::service::bulk_deletions::{self, BulkDeletionsWaker};
use crate::service::dead_letters;
use crate::service::delivered::DeliveredMarks;
use crate::service::delivery_updates::{self, DeliveryUpdates};
use crate::service::files::{self, FileOptions, FilePlaceError, FileStore};
use crate::service::idempotency;
use crate::service::key_uses::KeyUses;
use crate::service::leases;
use crate::service::quotas::Quotas;
use crate::service::removals::{self, RemovalsWaker};
use crate::service::sightings::{self, Sightings};
use crate::service::sign_in::FirstKeyError;
use crate::settings::Limits;
use crate::sign_in::People;
use crate::sign_in::issuer::Issuer;
use crate::sign_in::tokens::{SigningKeyError, Tokens};
use crate::signs::{LiveSigns, Observed};
use crate::socket::hub::Hub;
use crate::state::{AppState, Services};

/// A background job that has not ended by then, because its database hangs, is left behind.
const JOBS_DEADLINE: Duration = Duration::from_secs(5);

/// What a server is made of.
pub struct AppOptions {
    /// How to open the store.
    pub store: StoreOptions,
    /// Where files of rooms are kept.
    pub files: FileOptions,
    /// What is refused for being too large or too many.
    pub limits: Limits,
    /// Time of day.
    pub clock: Arc<dyn Clock>,
    /// Fresh ids.
    pub ids: Arc<dyn IdSource>,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The place of files cannot be opened.
    #[error(transparent)]
    Files(#[from] FilePlaceError),
    /// There is no key to sign people's tokens with.
    #[error(transparent)]
    SigningKey(SigningKeyError),
}

impl From<FirstKeyError> for StartError {
    fn from(error: FirstKeyError) -> Self {
        match error {
            FirstKeyError::Key(why) => Self::SigningKey(why),
            FirstKeyError::Store(why) => Self::Store(why),
        }
    }
}

/// A server that is ready to serve.
pub struct App {
    state: AppState,
    jobs_stop: CancellationToken,
    jobs: Mutex<Vec<JoinHandle<()>>>,
}

/// Tells everybody who waits for it what was committed: caches first, so that a socket that closes because of a
/// revoked key cannot come back with it.
struct Announcer {
    known: Arc<Known>,
    hub: Hub,
    updates: DeliveryUpdates,
}

impl CommitSink for Announcer {
    fn publish(&self, commits: Vec<Commit>) {
        for event in commits.iter().flat_map(|commit| &commit.events) {
            self.known.observe(event);
        }
        self.updates.observe(&commits);
        self.hub.publish(commits);
    }

    fn uncertain(&self, commits: Vec<Commit>) {
        // What a cache forgets without need it asks for again.
        for event in commits.iter().flat_map(|commit| &commit.events) {
            self.known.observe(event);
        }
        self.hub.uncertain(commits);
    }
}

/// Nobody waits: for administration without a running server.
struct Silence;

impl CommitSink for Silence {
    fn publish(&self, _: Vec<Commit>) {}
}

/// The use cases alone, without sockets and HTTP; refused while a server runs on the same data.
///
/// # Errors
/// When the store cannot be opened.
pub async fn services_only(options: AppOptions) -> Result<Services, StartError> {
    let AppOptions { store, files, limits, clock, ids } = options;
    let store = Store::open(store, Arc::new(Silence)).await?;
    let files = FileStore::open(&files)?;
    // What a removal leaves to be done is in the database: the next server goes on with it.
    let quotas = Quotas::load(&store).await?;
    Ok(Services {
        store,
        sightings: Sightings::new(Arc::clone(&clock)),
        clock,
        ids,
        limits: Arc::new(limits),
        files,
        quotas,
        observed: Observed::default(),
        removals: RemovalsWaker::default(),
        bulk_deletions: BulkDeletionsWaker::default(),
        actor: Arc::new(Actor::local(Door::Offline)),
    })
}

impl App {
    /// Opens the store and builds everything above it.
    ///
    /// # Errors
    /// When the store cannot be opened; for example because another server owns the data.
    pub async fn start(options: AppOptions) -> Result<Self, StartError> {
        let AppOptions { store, files, limits, clock, ids } = options;
        let limits = Arc::new(limits);
        let hub = Hub::new(Arc::clone(&limits), Arc::clone(&clock));
        let known = Arc::new(Known::default());
        let (updates, changed) = DeliveryUpdates::new(hub.clone());
        let announcer = Announcer { known: Arc::clone(&known), hub: hub.clone(), updates };
        let store = Store::open(store, Arc::new(announcer)).await?;
        hub.reads_from(store.clone());
        // After the store: who owns it may empty the spool.
        let files = FileStore::open(&files)?;
        let quotas = Quotas::load(&store).await?;
        let rates = Arc::new(Rates::new(Arc::clone(&limits), Arc::clone(&clock)));
        let services = Services {
            store,
            clock,
            ids,
            limits,
            files,
            quotas,
            observed: hub.observed().clone(),
            removals: RemovalsWaker::default(),
            bulk_deletions: BulkDeletionsWaker::default(),
            actor: Arc::new(Actor::local(Door::Start)),
            sightings: hub.sightings().clone(),
        };
        let run = sightings::begin(&services).await?;
        services.ensure_signing_key().await?;
        let jobs_stop = CancellationToken::new();
        let (uses, key_uses) = KeyUses::start(services.clone(), jobs_stop.clone());
        let tokens = Tokens::new(services.store.clone(), Arc::clone(&services.clock), Arc::clone(&services.limits));
        known.attach(tokens.clone());
        let issuer = Issuer::new(Arc::clone(&services.limits), Arc::clone(&services.clock));
        let people = People::new(services.clone(), tokens.clone(), issuer);
        let auth = Authenticator::new(services.store.clone(), Arc::clone(&services.clock), known, people, uses);
        let (delivered, marks) = DeliveredMarks::start(services.clone(), jobs_stop.clone());
        let removals = removals::start(services.clone(), jobs_stop.clone());
        let bulk = bulk_deletions::start(services.clone(), jobs_stop.clone());
        let forgetting = idempotency::start(services.clone(), jobs_stop.clone());
        let signs = Arc::new(LiveSigns::new(hub.clone()));
        let leases = leases::start(services.clone(), signs, jobs_stop.clone());
        let dead = dead_letters::start(services.clone(), jobs_stop.clone());
        let expiry = files::start(services.clone(), jobs_stop.clone());
        let seen = sightings::start(services.clone(), run, jobs_stop.clone());
        let told = delivery_updates::start(services.clone(), hub.clone(), changed, jobs_stop.clone());
        Ok(Self {
            state: AppState { services, hub, rates, auth, tokens, delivered, draining: Draining::default() },
            jobs_stop,
            jobs: Mutex::new(vec![bulk, marks, expiry, forgetting, key_uses, removals, leases, dead, seen, told]),
        })
    }

    /// What handlers share.
    pub fn state(&self) -> &AppState {
        &self.state
    }

    /// Whether it is going down.
    pub fn draining(&self) -> &Draining {
        &self.state.draining
    }

    /// All routes: both APIs, the socket, `/healthz` and `/readyz`.
    pub fn router(&self) -> Router {
        http::router(self.state.clone())
    }

    /// From now on `/readyz` says no.
    pub fn begin_drain(&self) {
        self.state.draining.begin();
    }

    /// Closes all sockets with 1012.
    pub async fn close_sockets(&self, deadline: Instant) {
        self.state.hub.shutdown(deadline.saturating_duration_since(Instant::now())).await;
    }

    /// Ends the background jobs with what they still have to write, and closes the store.
    pub async fn close_store(&self) {
        self.jobs_stop.cancel();
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        for mut job in jobs {
            match timeout(JOBS_DEADLINE, &mut job).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "a background job failed"),
                Err(_) => {
                    // What it would still have written may be lost in a crash as well.
                    tracing::warn!("a background job did not end in time");
                    job.abort();
                }
            }
        }
        self.state.store.close().await;
    }

    /// Everything in order: sockets, marks, store. For a caller that does not use [`crate::serve::serve`].
    pub async fn shutdown(&self, deadline: Instant) {
        self.begin_drain();
        self.close_sockets(deadline).await;
        self.close_store().await;
    }
}
