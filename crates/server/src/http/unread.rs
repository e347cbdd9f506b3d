//! What is left of a request's body when it is answered before it was read, as most refusals are. HTTP has no way around
//! those bytes: they are read and thrown away, or the connection ends. hyper does the latter without a word, and a client
//! that keeps its connections would find out only with its next request.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::header::EXPECT;

/// A client that sends its rest more slowly than this does not hear why it was refused.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a body is left by whoever did not read it to its end.
type Place = Arc<Mutex<Option<Body>>>;

/// What may be left of a request's body.
pub(crate) struct Unread {
    place: Place,
    /// The client sends the body only once it is asked to.
    waits: bool,
}

/// Lends the request's body to the handler; `None` when it has none.
pub(crate) fn lend(request: Request) -> (Request, Option<Unread>) {
    if request.body().is_end_stream() {
        return (request, None);
    }
    let waits = request.headers().contains_key(EXPECT);
    let place = Place::default();
    let unread = Unread { place: Arc::clone(&place), waits };
    (request.map(|body| Body::new(Lent { body: Some(body), place })), Some(unread))
}

impl Unread {
    /// Reads what is left, as long as it is no more than `most` bytes, which this server would have taken had it liked
    /// the request; whether the connection can go on. Ending it while the client still sends would tear the answer away.
    pub(crate) async fn throw_away(self, most: u64) -> bool {
        let Some(mut rest) = self.place.lock().unwrap_or_else(PoisonError::into_inner).take() else { return true };
        if self.waits || rest.size_hint().lower() > most {
            return false;
        }
        let read = async {
            let mut thrown_away = 0;
            while let Some(frame) = rest.frame().await {
                let Ok(frame) = frame else { return false };
                thrown_away += frame.data_ref().map_or(0, |data| data.len() as u64);
                if thrown_away > most {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(PATIENCE, read).await.unwrap_or(false)
    }
}

/// A body that is left at its place when it is dropped before its end.
struct Lent {
    body: Option<Body>,
    place: Place,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, HttpBody::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let rest = self.body.take().filter(|body| !body.is_end_stream());
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = rest;
    }
}
