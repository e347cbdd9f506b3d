//! The line between clients and the server, on which faults happen.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::faults::{Faults, RequestFault};
use crate::relay;

#[derive(Clone)]
pub(crate) struct Line {
    /// Where the server is; nowhere while it is down.
    pub(crate) server: watch::Receiver<Option<SocketAddr>>,
    pub(crate) faults: Faults,
    http: reqwest::Client,
}

/// Serves until the task is aborted.
pub(crate) async fn start(
    server: watch::Receiver<Option<SocketAddr>>,
    faults: Faults,
    http: reqwest::Client,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port for the proxy");
    let address = listener.local_addr().expect("the proxy's address");
    let line = Line { server, faults, http };
    let serving = tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let line = line.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| forward(line.clone(), request));
                // A connection that ends in an error was cut, by the test or by the client.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
            });
        }
    });
    (address, serving)
}

/// The connection ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("cut by the test")]
struct Cut;

async fn forward(line: Line, request: Request<Incoming>) -> Result<Response, Cut> {
    let Some(server) = *line.server.borrow() else { return Err(Cut) };
    if request.headers().contains_key(header::UPGRADE) {
        return Ok(socket(line, server, request).await);
    }
    let path = request.uri().path().to_owned();
    let mut lose = false;
    match line.faults.of_request(request.method(), &path) {
        None => {}
        Some(RequestFault::Cut) => return Err(Cut),
        Some(RequestFault::LoseReply) => lose = true,
        Some(RequestFault::Delay(time)) => tokio::time::sleep(time).await,
        Some(RequestFault::Hold(gate)) => gate.pass().await,
        Some(RequestFault::Answer { status, retry_after }) => return Ok(refusal(status, retry_after)),
    }
    // The server may have been replaced while the request waited.
    let Some(server) = *line.server.borrow() else { return Err(Cut) };
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return Err(Cut) };
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let sent = line
        .http
        .request(parts.method, format!("http://{server}{target}"))
        .headers(end_to_end(&parts.headers))
        .body(body.to_bytes())
        .send()
        .await;
    let Ok(reply) = sent else { return Err(Cut) };
    if lose {
        return Err(Cut);
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = reply.status();
    *response.headers_mut() = end_to_end(reply.headers());
    let Ok(bytes) = reply.bytes().await else { return Err(Cut) };
    *response.body_mut() = Body::from(bytes);
    Ok(response)
}

async fn socket(line: Line, server: SocketAddr, request: Request<Incoming>) -> Response {
    if line.faults.refuses_socket() {
        return refusal(503, None);
    }
    let (mut parts, _) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    match relay::connect(server, &target, &parts.headers).await {
        Err(refused) => refused,
        Ok(upstream) => match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
            Err(rejection) => rejection.into_response(),
            Ok(upgrade) => upgrade.on_upgrade(move |downstream| relay::run(line.faults, downstream, upstream)),
        },
    }
}

fn refusal(status: u16, retry_after: Option<u64>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let code = if status == StatusCode::TOO_MANY_REQUESTS { "rate_limited" } else { "unavailable" };
    let body = json!({ "error": {
        "code": code,
        "message": "refused by the test",
        "request_id": "testkit",
    } });
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response();
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Headers that belong to the message and not to one hop.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    const HOP: [HeaderName; 6] = [
        header::CONNECTION,
        header::HOST,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::TE,
    ];
    headers.iter().filter(|(name, _)| !HOP.contains(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}
