//! A WebSocket client that reads what this server sends and no more: five thousand of them have to be cheap, and what a
//! thousand of them cost is part of the time to the last copy.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;

/// Where in a pushed frame the event's name ends at the latest: join_ref, topic and name are shorter.
const NAME_WITHIN: usize = 160;

pub(crate) struct Socket {
    stream: TcpStream,
    received: Vec<u8>,
    /// How much of `received` was returned already.
    taken: usize,
    joins: u32,
}

impl Socket {
    pub(crate) async fn connect(address: SocketAddr, key: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let request = format!(
            "GET /api/v1/socket/websocket?vsn=2.0.0 HTTP/1.1\r\nhost: bench\r\nx-api-key: {key}\r\n\
             connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut socket = Self { stream, received: Vec::new(), taken: 0, joins: 0 };
        let end = loop {
            socket.read().await?;
            if let Some(at) = socket.received.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
        };
        let head = String::from_utf8_lossy(&socket.received[..end]).into_owned();
        ensure!(head.starts_with("HTTP/1.1 101 "), "no upgrade: {head}");
        socket.taken = end;
        Ok(socket)
    }

    /// Joins topics, all at once, and waits for all replies.
    pub(crate) async fn join(&mut self, topics: &[String]) -> Result<()> {
        let mut frames = Vec::new();
        for topic in topics {
            self.joins += 1;
            let number = self.joins;
            frames.extend(text_frame(&format!(r#"["{number}","{number}","{topic}","phx_join",{{}}]"#)));
        }
        self.stream.write_all(&frames).await?;
        for _ in topics {
            let reply = String::from_utf8_lossy(self.next().await?).into_owned();
            ensure!(reply.contains(r#""phx_reply",{"status":"ok""#), "a join was refused: {reply}");
        }
        // A client that is only connected keeps no buffer.
        self.received = Vec::new();
        self.taken = 0;
        Ok(())
    }

    /// The next text.
    pub(crate) async fn next(&mut self) -> Result<&[u8]> {
        loop {
            if let Some((kind, from, to)) = frame(&self.received, self.taken)? {
                self.taken = to;
                match kind {
                    TEXT => return Ok(&self.received[from..to]),
                    CLOSE => bail!("the server closed the socket: {:?}", &self.received[from..to]),
                    _ => continue,
                }
            }
            self.received.drain(..self.taken);
            self.taken = 0;
            self.read().await?;
        }
    }

    async fn read(&mut self) -> Result<()> {
        self.received.reserve(1024);
        ensure!(self.stream.read_buf(&mut self.received).await? > 0, "the server dropped the socket");
        Ok(())
    }
}

/// Reads until `posts` messages were pushed: when each of them arrived.
pub(crate) fn listen(mut socket: Socket, posts: usize) -> JoinHandle<Result<Vec<Instant>>> {
    tokio::spawn(async move {
        let mut arrived = Vec::with_capacity(posts);
        while arrived.len() < posts {
            let text = socket.next().await.with_context(|| format!("after {} of {posts} pushes", arrived.len()))?;
            let start = text.get(..NAME_WITHIN).unwrap_or(text);
            if start.windows(17).any(|window| window == br#""message_created""#) {
                arrived.push(Instant::now());
            }
        }
        Ok(arrived)
    })
}

/// A client must mask; a mask of zeros leaves the text as it is.
fn text_frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x80 | TEXT];
    match u8::try_from(text.len()) {
        Ok(length) if length < 126 => frame.push(0x80 | length),
        _ => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    frame
}

/// Kind of the frame at `at`, and where its payload starts and ends; none while it is not complete.
fn frame(received: &[u8], at: usize) -> Result<Option<(u8, usize, usize)>> {
    let rest = received.get(at..).unwrap_or_default();
    let (kind, header, length) = match rest {
        [first, 127, a, b, c, d, e, f, g, h, ..] => {
            (*first, 10, usize::try_from(u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]))?)
        }
        [first, 126, a, b, ..] => (*first, 4, usize::from(u16::from_be_bytes([*a, *b]))),
        [first, length @ 0..=125, ..] => (*first, 2, usize::from(*length)),
        [_, 128..=255, ..] => bail!("the server sent a masked frame"),
        _ => return Ok(None),
    };
    ensure!(kind & 0x80 != 0, "a frame in parts, which this client does not read");
    let (from, to) = (at + header, at + header + length);
    Ok((received.len() >= to).then_some((kind & 0x0f, from, to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_one_after_the_other() {
        let bytes = [0x81, 2, b'h', b'i', 0x81, 126, 0, 1, b'x', 0x88, 0];
        assert_eq!(frame(&bytes, 0).unwrap(), Some((TEXT, 2, 4)));
        assert_eq!(frame(&bytes, 4).unwrap(), Some((TEXT, 8, 9)));
        assert_eq!(frame(&bytes, 9).unwrap(), Some((CLOSE, 11, 11)));
        assert_eq!(frame(&bytes[..3], 0).unwrap(), None);
        assert_eq!(frame(&bytes[..6], 4).unwrap(), None);
        assert!(frame(&[0x01, 0], 0).is_err());
    }

    #[test]
    fn a_long_text_has_its_length_in_two_bytes() {
        let frame = text_frame(&"x".repeat(300));
        assert_eq!(frame[..8], [0x81, 0xfe, 1, 44, 0, 0, 0, 0]);
        assert_eq!(frame.len(), 308);
    }
}
