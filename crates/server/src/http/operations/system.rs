//! What needs no key; and signing in, which needs one.

use bandstand_wire::rest::Data;

use crate::health;
use crate::http::operation::{Access, Operation, get, group, post};
use crate::http::{api_document, docs_page, sign_in, system};

pub(super) fn operations() -> Vec<Operation> {
    let signing_in = group(
        "sign-in",
        Access::UserKey,
        vec![
            post("/api/v1/sign-in", "signIn", sign_in::sign_in)
                .summary("Get a token in exchange for a user's key.")
                .description("It counts for a while, and no longer than the key. It is renewed in the same way.")
                .replies::<Data<sign_in::Token>>(200),
        ],
    );
    signing_in.into_iter().chain(public()).collect()
}

fn public() -> Vec<Operation> {
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
            get("/.well-known/jwks.json", "getTokenKeys", sign_in::keys)
                .summary("The keys by which anybody verifies a token of this server.")
                .replies::<sign_in::KeySet>(200)
                .errors(&[503]),
            get("/healthz", "getHealth", health::live).summary("Is the process alive?").replies::<system::Status>(200),
            get("/readyz", "getReadiness", health::ready)
                .summary("Would requests be served now?")
                .replies::<system::Status>(200)
                .replies::<system::Status>(503),
        ],
    )
}
