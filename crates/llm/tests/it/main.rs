//! Models over real HTTP, and runs of the tool loop with them.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod client;
mod runs;

use std::time::Duration;

use bandstand_llm::client::{ModelClient, ModelOptions};
use bandstand_llm::transcript::Format;
use bandstand_testkit::model::ModelServer;

/// Each API, streamed and not.
pub(crate) fn ways() -> impl Iterator<Item = (Format, bool)> {
    Format::ALL.into_iter().flat_map(|api| [(api, false), (api, true)])
}

pub(crate) fn options(server: &ModelServer, api: Format, stream: bool) -> ModelOptions {
    let mut options = ModelOptions::new(api, "scripted");
    options.base_url = server.url(api);
    options.key = Some("sk-secret-0123456789".into());
    options.stream = stream;
    options.proxies = false;
    options.retry_base = Duration::from_millis(1);
    options
}

pub(crate) fn client(server: &ModelServer, api: Format, stream: bool) -> ModelClient {
    ModelClient::new(options(server, api, stream)).expect("a client")
}
