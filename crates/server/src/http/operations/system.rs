//! What needs no key.

use crate::health;
use crate::http::operation::{Access, Operation, get, group};
use crate::http::{api_document, docs_page, system};

pub(super) fn operations() -> Vec<Operation> {
    group(
        "system",
        Access::Anybody,
        vec![
            get("/api/version", "getApiVersion", system::version)
                .summary("Which server is this?")
                .replies::<system::Version>(200),
            get("/api/v1/test", "testConnection", system::test)
                .summary("Does anybody answer?")
                .description("What the credential of n8n checks.")
                .replies::<system::Status>(200),
            get("/api/openapi.json", "getApiDocument", api_document::serve)
                .summary("This document.")
                .replies::<serde_json::Map<String, serde_json::Value>>(200),
            get("/api/docs", "getApiDocsPage", docs_page::serve)
                .summary("This document, as a page to read.")
                .replies_bytes(200, "text/html"),
            get("/healthz", "getHealth", health::live).summary("Is the process alive?").replies::<system::Status>(200),
            get("/readyz", "getReadiness", health::ready)
                .summary("Would requests be served now?")
                .replies::<system::Status>(200)
                .replies::<system::Status>(503),
        ],
    )
}
