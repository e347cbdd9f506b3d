//! `bandstand demo`: a server, three agents in processes of their own, a conversation, and a crash that loses nothing.
//! No keys and no network are needed, and nothing is left behind.

mod agents;
mod crew;
mod print;
mod story;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use bandstand_server::serve::{ServeOptions, serve_with};
use bandstand_server::start::App;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use agents::{Part, run as run_agent};

use crate::admin::app_options;
use crate::cli::DemoArguments;
use crate::output::{Failure, say};
use crate::people::account::Credentials;
use crate::people::client::Client;
use crate::settings::Settings;
use story::Story;

/// What the person of the demo is called.
const PERSON: &str = "you";
/// So long after its last sign of life nobody says any more that an agent works.
const ACTIVITY_TTL: Duration = Duration::from_secs(1);
/// Requests in flight have so long to end.
const DRAIN: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &DemoArguments) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(anyhow::Error::from)?;
    Ok(runtime.block_on(Box::pin(demo(arguments)))?)
}

async fn demo(arguments: &DemoArguments) -> anyhow::Result<ExitCode> {
    // Before anything is started, so that whatever is started is ended.
    let mut stop = Stop::new()?;
    let stage = Stage::build().await?;
    let played = tokio::select! {
        played = Box::pin(play(&stage, arguments)) => played.map(Some),
        () = stop.asked() => Ok(None),
    };
    let code = match played {
        Ok(Some((_crew, room))) if arguments.keep => {
            say(&format!(
                "\nIt stays up until Ctrl-C. In another terminal:\n\n  \
                   export BANDSTAND_URL={} BANDSTAND_KEY={}\n  \
                   bandstand tail {room}\n  \
                   bandstand send {room} '@researcher are you still there?'",
                stage.credentials.url, stage.credentials.key
            ));
            stop.asked().await;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Some(_)) => Ok(ExitCode::SUCCESS),
        Ok(None) => Err(anyhow!("interrupted; nothing is left of it")),
        Err(error) => Err(error),
    };
    stage.strike().await;
    code
}

async fn play(stage: &Stage, arguments: &DemoArguments) -> anyhow::Result<(crew::Crew, bandstand_wire::ids::RoomId)> {
    let client = Client::new(stage.credentials.clone())?;
    let pace = Duration::from_millis(arguments.pace);
    let mut story = Story::open(client, pace).await?;
    story.tell().await?;
    Ok(story.into_parts())
}

/// The server and its folder.
struct Stage {
    app: Arc<App>,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
    credentials: Credentials,
    /// Goes away with the value.
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn build() -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("bandstand-demo-").tempdir();
        let folder = folder.context("cannot make a folder for the demo's data")?;
        let mut settings = Settings { data: folder.path().to_owned(), ..Settings::default() };
        // Nobody waits ten seconds here to hear that an agent is gone.
        settings.limits.activity_ttl = ACTIVITY_TTL;
        let app = Arc::new(App::start(app_options(&settings)).await?);
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on this machine")?;
        let url = format!("http://{}", listener.local_addr()?);
        let shutdown = CancellationToken::new();
        let options = ServeOptions::new(listener, shutdown.clone(), DRAIN);
        let serving = tokio::spawn({
            let app = Arc::clone(&app);
            async move {
                serve_with(&app, options).await;
            }
        });
        let owner = app.state().services.bootstrap_owner(PERSON, None).await?;
        let (_, key) = owner.context("the demo's database is not new")?;
        let credentials = Credentials { url, key: key.reveal().to_owned() };
        Ok(Self { app, shutdown, serving, credentials, _folder: folder })
    }

    /// Ends the server and removes what it wrote.
    async fn strike(self) {
        self.shutdown.cancel();
        let _ = self.serving.await;
        self.app.shutdown(Instant::now() + DRAIN).await;
    }
}

/// SIGINT, SIGTERM or a terminal that was closed.
struct Stop {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl Stop {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
