//! `bandstand status`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use bandstand_server::admin::About;

use crate::admin::AdminSocket;
use crate::cli::StatusArguments;
use crate::environment;
use crate::output::{Failure, say, say_json};
use crate::settings::{Settings, load};

/// A server that takes longer than this to say who it is, is not well.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    let settings = load(&arguments.flags.0, &environment)?.settings;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(anyhow::Error::from)?;
    let asked = runtime.block_on(async { tokio::time::timeout(PATIENCE, ask(&settings)).await });
    let about = asked.map_err(|_| anyhow!("the server does not answer within {} s", PATIENCE.as_secs()))??;
    if arguments.json {
        say_json(&about)?;
    } else {
        say(&line(&about));
    }
    Ok(if about.status == "ready" { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn ask(settings: &Settings) -> anyhow::Result<About> {
    let data = settings.data.display();
    let socket = AdminSocket::connect(settings).await?;
    let mut socket = socket.with_context(|| {
        format!("no server runs on {data}; `bandstand up --data {data}` starts one, --data names another folder")
    })?;
    socket.about().await
}

fn line(about: &About) -> String {
    let About { pid, version, url, status } = about;
    format!("{status}: {url} (version {version}, pid {pid})")
}
