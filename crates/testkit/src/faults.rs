//! What goes wrong between an agent and the server, and when.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::Method;
use tokio::sync::{Notify, watch};

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// It never reaches the server; this status is answered, with the server's kind of error body.
    Answer {
        /// For example 503.
        status: u16,
        /// Seconds of a `Retry-After` header.
        retry_after: Option<u64>,
    },
    /// The connection is cut before the server sees it.
    Cut,
    /// The server handles it, and the connection is cut before the answer comes back.
    LoseReply,
    /// It reaches the server later.
    Delay(Duration),
    /// It waits until [`Held::release`].
    Hold(Held),
}

/// What becomes of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushFault {
    /// It is lost.
    Drop,
    /// It comes twice.
    Double,
    /// It comes after the next push of the same event, or when none follows, after a second.
    Swap,
    /// It comes later, and with it all that follow.
    Delay(Duration),
}

/// A gate at which requests wait.
#[derive(Clone, Debug)]
pub struct Held {
    open: Arc<watch::Sender<bool>>,
    arrived: Arc<watch::Sender<usize>>,
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.open, &other.open)
    }
}

impl Eq for Held {}

impl Default for Held {
    fn default() -> Self {
        Self { open: Arc::new(watch::Sender::new(false)), arrived: Arc::new(watch::Sender::new(0)) }
    }
}

impl Held {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everything pass from now on.
    pub fn release(&self) {
        self.open.send_replace(true);
    }

    /// Waits until a request stands before the gate.
    pub async fn arrived(&self) {
        // The sender lives as long as this value, so waiting cannot fail.
        let _ = self.arrived.subscribe().wait_for(|arrived| *arrived > 0).await;
    }

    pub(crate) async fn pass(&self) {
        self.arrived.send_modify(|arrived| *arrived += 1);
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}

#[derive(Clone, Debug)]
struct RequestRule {
    method: Method,
    path: String,
    left: usize,
    skip: usize,
    fault: RequestFault,
}

#[derive(Clone, Debug)]
struct PushRule {
    event: String,
    left: usize,
    fault: PushFault,
}

/// The knobs. Cheap to clone; all clones turn the same ones.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    requests: Mutex<Vec<RequestRule>>,
    pushes: Mutex<Vec<PushRule>>,
    refused_sockets: Mutex<usize>,
    cut_sockets: Notify,
}

impl Faults {
    /// The next `times` requests of a method whose path contains `path` go wrong in this way.
    pub fn on_request(&self, method: Method, path: &str, times: usize, fault: RequestFault) -> &Self {
        self.after_requests(0, method, path, times, fault)
    }

    /// The same after `skip` such requests went well.
    pub fn after_requests(&self, skip: usize, method: Method, path: &str, times: usize, fault: RequestFault) -> &Self {
        let rule = RequestRule { method, path: path.to_owned(), left: times, skip, fault };
        lock(&self.0.requests).push(rule);
        self
    }

    /// The next `times` pushes of an event, on any socket, go wrong in this way.
    pub fn on_push(&self, event: &str, times: usize, fault: PushFault) -> &Self {
        lock(&self.0.pushes).push(PushRule { event: event.to_owned(), left: times, fault });
        self
    }

    /// Cuts every socket that is open now, without a closing handshake.
    pub fn cut_sockets(&self) -> &Self {
        self.0.cut_sockets.notify_waiters();
        self
    }

    /// Answers the next `times` socket handshakes with 503.
    pub fn refuse_sockets(&self, times: usize) -> &Self {
        *lock(&self.0.refused_sockets) = times;
        self
    }

    /// Nothing goes wrong any more. Requests that wait at a gate stay there until it is released.
    pub fn clear(&self) -> &Self {
        lock(&self.0.requests).clear();
        lock(&self.0.pushes).clear();
        *lock(&self.0.refused_sockets) = 0;
        self
    }

    pub(crate) fn of_request(&self, method: &Method, path: &str) -> Option<RequestFault> {
        let mut rules = lock(&self.0.requests);
        let rule =
            rules.iter_mut().find(|rule| rule.method == *method && path.contains(&rule.path) && rule.left > 0)?;
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        rule.left -= 1;
        Some(rule.fault.clone())
    }

    pub(crate) fn of_push(&self, event: &str) -> Option<PushFault> {
        let mut rules = lock(&self.0.pushes);
        let rule = rules.iter_mut().find(|rule| rule.event == event && rule.left > 0)?;
        rule.left -= 1;
        Some(rule.fault)
    }

    pub(crate) fn refuses_socket(&self) -> bool {
        let mut left = lock(&self.0.refused_sockets);
        let refuses = *left > 0;
        *left = left.saturating_sub(1);
        refuses
    }

    /// Resolves when the sockets that are open now are to be cut.
    pub(crate) fn socket_cut(&self) -> tokio::sync::futures::Notified<'_> {
        self.0.cut_sockets.notified()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_strikes_as_often_as_it_says_and_after_what_it_lets_pass() {
        let faults = Faults::default();
        faults.after_requests(1, Method::POST, "/processed", 2, RequestFault::Cut);
        let struck: Vec<bool> = (0..4).map(|_| faults.of_request(&Method::POST, "/x/processed").is_some()).collect();
        assert_eq!(struck, [false, true, true, false]);
        assert_eq!(faults.of_request(&Method::GET, "/x/processed"), None);
    }

    #[test]
    fn the_oldest_rule_that_fits_strikes_first() {
        let faults = Faults::default();
        faults.on_push("message_created", 1, PushFault::Drop).on_push("message_created", 1, PushFault::Double);
        let struck: Vec<_> = (0..3).map(|_| faults.of_push("message_created")).collect();
        assert_eq!(struck, [Some(PushFault::Drop), Some(PushFault::Double), None]);
    }
}
