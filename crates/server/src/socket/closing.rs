//! The end of a connection: a close frame, then a short wait for the client's own.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures_util::StreamExt;

/// How long a client has to take what is on its way to it and the close frame. One that does not read is cut off then.
const TAKE: Duration = Duration::from_secs(5);

/// How long it then has to close its side.
const ANSWER: Duration = Duration::from_secs(1);

/// Why the server closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closing {
    /// One of [`bandstand_wire::phoenix::close_code`].
    pub(crate) code: u16,
    /// For people who read a trace.
    pub(crate) reason: &'static str,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The server closes it.
    Server(Closing),
    /// The client sent a close frame.
    Client,
    /// It broke.
    Lost,
}

/// Finishes the close handshake and drops the connection.
pub(crate) async fn finish(mut socket: WebSocket, end: End) {
    match end {
        End::Server(Closing { code, reason }) => {
            metrics::counter!("socket_closes_total", "code" => code.to_string()).increment(1);
            let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
            // Dropping a connection with unread bytes would reset it, and the client might never see the code: so read
            // on until the client closes its side.
            let taken = tokio::time::timeout(TAKE, socket.send(Message::Close(Some(frame)))).await;
            if matches!(taken, Ok(Ok(()))) {
                read_out(&mut socket).await;
            }
        }
        End::Client => {
            metrics::counter!("socket_closes_total", "code" => "client").increment(1);
            // Reading on sends the answer.
            read_out(&mut socket).await;
        }
        End::Lost => metrics::counter!("socket_closes_total", "code" => "lost").increment(1),
    }
}

/// Reads until the client closes its side, or took too long for it.
async fn read_out(socket: &mut WebSocket) {
    let _ = tokio::time::timeout(ANSWER, async { while let Some(Ok(_)) = socket.next().await {} }).await;
}
