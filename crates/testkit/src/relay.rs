//! A socket between a client and the server, whose pushes can be lost, doubled, swapped and delayed.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message as Down, WebSocket};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message as Up};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::faults::{Faults, PushFault};

/// How long a swapped push waits for another to overtake it.
const SWAP: Duration = Duration::from_secs(1);

pub(crate) type Upstream = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Opens the server's side; a refusal is passed on as it is.
pub(crate) async fn connect(server: SocketAddr, target: &str, headers: &HeaderMap) -> Result<Upstream, Response> {
    let mut request =
        format!("ws://{server}{target}").into_client_request().map_err(|_| StatusCode::BAD_REQUEST.into_response())?;
    for name in ["x-api-key", "authorization", "user-agent"] {
        if let Some(value) = headers.get(name) {
            request.headers_mut().insert(name, value.clone());
        }
    }
    match tokio_tungstenite::connect_async(request).await {
        Ok((stream, _)) => Ok(stream),
        Err(tungstenite::Error::Http(refused)) => {
            let (parts, body) = refused.into_parts();
            let mut response = Response::new(body.unwrap_or_default().into());
            *response.status_mut() = parts.status;
            *response.headers_mut() = parts.headers;
            Err(response)
        }
        Err(_) => Err(StatusCode::BAD_GATEWAY.into_response()),
    }
}

/// Passes frames both ways until one side ends or the test cuts it. Dropping both ends is the cut.
pub(crate) async fn run(faults: Faults, mut downstream: WebSocket, mut upstream: Upstream) {
    let cut = faults.socket_cut();
    tokio::pin!(cut);
    let mut held: Option<(String, Instant, Up)> = None;
    loop {
        let deadline = held.as_ref().map(|(_, until, _)| *until);
        tokio::select! {
            () = &mut cut => return,
            () = async { sleep_until(deadline.unwrap_or_else(Instant::now)).await }, if deadline.is_some() => {
                if let Some((_, _, frame)) = held.take()
                    && !pass_down(&mut downstream, frame).await
                {
                    return;
                }
            }
            frame = downstream.recv() => {
                let Some(Ok(frame)) = frame else { return };
                let Some(frame) = up(frame) else { continue };
                if upstream.send(frame).await.is_err() {
                    return;
                }
            }
            frame = upstream.next() => {
                let Some(Ok(frame)) = frame else { return };
                let event = event_of(&frame);
                let fault = event.as_deref().and_then(|event| faults.of_push(event));
                let overtaken = match (&held, &event) {
                    (Some((waiting, ..)), Some(event)) if waiting == event => held.take().map(|(_, _, frame)| frame),
                    _ => None,
                };
                let passed = match (fault, event) {
                    (Some(PushFault::Drop), _) => true,
                    (Some(PushFault::Swap), Some(event)) => {
                        held = Some((event, Instant::now() + SWAP, frame));
                        true
                    }
                    (Some(PushFault::Double), _) => {
                        pass_down(&mut downstream, frame.clone()).await && pass_down(&mut downstream, frame).await
                    }
                    (Some(PushFault::Delay(time)), _) => {
                        sleep(time).await;
                        pass_down(&mut downstream, frame).await
                    }
                    (Some(PushFault::Swap) | None, _) => pass_down(&mut downstream, frame).await,
                };
                if !passed {
                    return;
                }
                if let Some(overtaken) = overtaken && !pass_down(&mut downstream, overtaken).await {
                    return;
                }
            }
        }
    }
}

/// The event of a push; replies and control frames have none.
fn event_of(frame: &Up) -> Option<String> {
    let Up::Text(text) = frame else { return None };
    let Ok(Value::Array(parts)) = serde_json::from_str::<Value>(text.as_str()) else { return None };
    let event = parts.get(3)?.as_str()?;
    (!event.starts_with("phx_")).then(|| event.to_owned())
}

async fn pass_down(downstream: &mut WebSocket, frame: Up) -> bool {
    let last = matches!(frame, Up::Close(_));
    let Some(frame) = down(frame) else { return true };
    downstream.send(frame).await.is_ok() && !last
}

fn up(frame: Down) -> Option<Up> {
    Some(match frame {
        Down::Text(text) => Up::text(text.as_str()),
        Down::Binary(bytes) => Up::Binary(bytes),
        Down::Close(frame) => Up::Close(frame.map(|frame| tungstenite::protocol::CloseFrame {
            code: frame.code.into(),
            reason: frame.reason.as_str().into(),
        })),
        // Each side answers its own pings.
        Down::Ping(_) | Down::Pong(_) => return None,
    })
}

fn down(frame: Up) -> Option<Down> {
    Some(match frame {
        Up::Text(text) => Down::Text(text.as_str().into()),
        Up::Binary(bytes) => Down::Binary(bytes),
        Up::Close(frame) => {
            Down::Close(frame.map(|frame| CloseFrame { code: frame.code.into(), reason: frame.reason.as_str().into() }))
        }
        Up::Ping(_) | Up::Pong(_) | Up::Frame(_) => return None,
    })
}
