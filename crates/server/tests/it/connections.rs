//! Connections that are kept: a refusal does not end one, whatever was still on its way.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{PATIENCE, TestApp, stories};

stories!(a_refusal_leaves_the_connection_usable, a_connection_that_ends_says_so,);

/// Sends bytes and reads one reply to its end.
async fn exchange(stream: &mut TcpStream, parts: &[&str]) -> String {
    for part in parts {
        stream.write_all(part.as_bytes()).await.expect("the server reads");
    }
    let mut reply = Vec::new();
    let read = async {
        loop {
            let mut some = [0; 4096];
            let count = stream.read(&mut some).await.expect("a reply");
            assert!(count > 0, "the connection ended: {}", String::from_utf8_lossy(&reply));
            reply.extend_from_slice(&some[..count]);
            let text = String::from_utf8_lossy(&reply).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= length.parse().expect("a number") {
                return text;
            }
        }
    };
    tokio::time::timeout(PATIENCE, read).await.expect("the server answers")
}

fn post(path: &str, key: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /api/v1/agent/{path} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    )
}

async fn a_refusal_leaves_the_connection_usable(app: TestApp) {
    let ana = app.agent("ana").await;
    let room = app.room_with(&ana, &[]).await;
    let body = r#"{"event": {"content": "hi", "message_type": "thought"}}"#;
    let mut stream = TcpStream::connect(app.address).await.expect("a connection");
    for (path, key, status) in [
        (room.path("/events"), "", "401"),
        (room.path("/events"), app.owner().key.as_str(), "403"),
        ("chats/nowhere/events".to_owned(), ana.key.as_str(), "404"),
        ("nothing".to_owned(), ana.key.as_str(), "404"),
        ("me".to_owned(), ana.key.as_str(), "405"),
        (room.path("/events"), ana.key.as_str(), "201"),
    ] {
        let head = post(&path, key, body);
        // The body comes in a packet of its own, as httpx sends it, or in two.
        for parts in [vec![head.as_str(), body], vec![head.as_str(), &body[..9], &body[9..]]] {
            let reply = exchange(&mut stream, &parts).await;
            assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {reply}");
            assert!(!reply.contains("connection: close"), "{path}: {reply}");
        }
    }
}

async fn a_connection_that_ends_says_so(app: TestApp) {
    // More is announced than this server takes of anything: it does not wait for the rest.
    let large = "x".repeat(100_000);
    let head = post("chats", "", &large).replace("content-length: 100000\r\n", "content-length: 100000000\r\n");
    assert!(head.contains("100000000"), "{head}");
    let expecting = format!("{}expect: 100-continue\r\n\r\n", head.strip_suffix("\r\n").expect("a head"));
    for parts in [vec![head.as_str(), &large], vec![expecting.as_str()]] {
        let mut stream = TcpStream::connect(app.address).await.expect("a connection");
        let reply = exchange(&mut stream, &parts).await;
        assert!(reply.starts_with("HTTP/1.1 401 ") && reply.contains("connection: close"), "{reply}");
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
        // An end or a reset: either way, it is over.
        assert!(ended.is_ok() && rest.is_empty(), "it goes on");
    }
}
