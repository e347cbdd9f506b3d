//! What of a reply came over the wire, for whoever listens.

use super::{ModelKey, WireTap};

/// The body of one answer as it comes. The tap is told of it at its end, however that comes: a future that is dropped
/// ends it too.
pub(super) struct Received<'a> {
    tap: &'a dyn WireTap,
    status: u16,
    streamed: bool,
    body: Vec<u8>,
    key: Option<&'a ModelKey>,
}

impl<'a> Received<'a> {
    pub(super) fn new(tap: &'a dyn WireTap, status: u16, key: Option<&'a ModelKey>) -> Self {
        Self { tap, status, streamed: false, body: Vec::new(), key }
    }

    /// It is a stream of events.
    pub(super) fn streamed(&mut self) {
        self.streamed = true;
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }
}

impl Drop for Received<'_> {
    fn drop(&mut self) {
        let body = std::mem::take(&mut self.body);
        let body = match self.key.map(ModelKey::reveal).filter(|key| key.len() >= 8) {
            Some(key) => without(&body, key.as_bytes()),
            None => body,
        };
        self.tap.on_response(self.status, self.streamed, &body);
    }
}

/// Bytes in which each `secret` is replaced.
fn without(bytes: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(secret) {
            clean.extend_from_slice(b"[REDACTED]");
            at += secret.len();
        } else {
            clean.push(bytes[at]);
            at += 1;
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn secrets_are_replaced_wherever_they_stand() {
        assert_eq!(without(b"sk-1 and sk-1", b"sk-1"), b"[REDACTED] and [REDACTED]");
        assert_eq!(without(b"sk-", b"sk-1"), b"sk-");
    }
}
