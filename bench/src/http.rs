//! A client that sends prepared bytes and reads just enough of the reply: it shares the machine with the server, so what
//! it costs is missing there.

use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A kept-alive connection with one request at a time.
pub(crate) struct Http {
    stream: TcpStream,
    received: Vec<u8>,
}

pub(crate) struct Reply<'h> {
    pub(crate) status: u16,
    pub(crate) body: &'h [u8],
}

/// A whole request; `body` is JSON.
pub(crate) fn request(method: &str, path: &str, key: &str, body: Option<&Value>) -> Vec<u8> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\nx-api-key: {key}\r\n{kind}content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

impl Http {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::with_capacity(4096) })
    }

    /// Sends a request and waits for the whole reply.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<Reply<'_>> {
        self.stream.write_all(request).await?;
        self.received.clear();
        let (status, body) = loop {
            let read = self.stream.read_buf(&mut self.received).await?;
            ensure!(read > 0, "the server closed the connection");
            if let Some((status, start, length)) = head(&self.received)?
                && self.received.len() >= start + length
            {
                break (status, start..start + length);
            }
        };
        Ok(Reply { status, body: self.received.get(body).unwrap_or_default() })
    }
}

/// Status, where the body starts and how long it is; none while the head is not complete.
fn head(received: &[u8]) -> Result<Option<(u16, usize, usize)>> {
    let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&received[..end])?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).ok_or_else(|| anyhow!("no HTTP reply"))?;
    let mut length = 0;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            bail!("a reply in chunks, which this client does not read");
        }
    }
    Ok(Some((status.parse()?, end + 4, length)))
}

/// A connection with a key, for setting things up.
pub(crate) struct Api {
    http: Http,
    key: String,
}

impl Api {
    pub(crate) async fn connect(address: SocketAddr, key: &str) -> Result<Self> {
        Ok(Self { http: Http::connect(address).await?, key: key.to_owned() })
    }

    /// The reply's `data`.
    pub(crate) async fn call(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let reply = self.http.send(&request(method, path, &self.key, body)).await;
        let Reply { status, body } = reply.with_context(|| format!("{method} {path}"))?;
        ensure!((200..300).contains(&status), "{method} {path}: {status} {}", String::from_utf8_lossy(body));
        if body.is_empty() {
            return Ok(Value::Null);
        }
        let mut reply: Value = serde_json::from_slice(body)?;
        Ok(reply.get_mut("data").map(Value::take).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_to_its_end() {
        assert_eq!(head(b"HTTP/1.1 200 OK\r\nContent-Le").unwrap(), None);
        assert_eq!(head(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nab").unwrap(), Some((201, 43, 2)));
        assert_eq!(head(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap(), Some((204, 27, 0)));
        assert!(head(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }
}
