//! How it stops.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;

use crate::program::{Installation, Server};

fn owner_key() -> String {
    format!("band_u_{}", "o".repeat(40))
}

fn server(installation: &Installation) -> Server {
    let mut command = installation.command(&["up", "--listen", "127.0.0.1:0"]);
    command.env("BANDSTAND_OWNER_KEY", owner_key());
    Server::start(command)
}

/// A request whose body is not complete yet.
struct HalfRequest {
    stream: TcpStream,
    rest: &'static str,
}

impl HalfRequest {
    fn send(server: &Server) -> Self {
        let mut stream = server.connect();
        let (start, rest) = ("{\"chat\":", "{}}");
        let head = format!(
            "POST /api/v1/me/chats HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
             expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
            owner_key(),
            start.len() + rest.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // The server asks for the body: the request is in its hands.
        let mut answer = [0; 25];
        stream.read_exact(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 100 Continue"), "{}", String::from_utf8_lossy(&answer));
        stream.write_all(start.as_bytes()).unwrap();
        Self { stream, rest }
    }

    fn finish(mut self) -> String {
        self.stream.write_all(self.rest.as_bytes()).unwrap();
        let mut reply = String::new();
        self.stream.read_to_string(&mut reply).unwrap();
        reply
    }
}

#[test]
fn a_request_in_flight_is_answered_and_nobody_new_gets_in() {
    let installation = Installation::new();
    let mut server = server(&installation);
    let request = HalfRequest::send(&server);
    server.signal("TERM");
    server.logs("draining");
    let refused = TcpStream::connect(&server.address).map(drop).map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::ConnectionRefused));
    let reply = request.finish();
    assert!(reply.starts_with("HTTP/1.1 201"), "{reply}");
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn an_idle_connection_does_not_delay_the_end() {
    let installation = Installation::new();
    let server = server(&installation);
    let (_silent, mut kept) = (server.connect(), server.connect());
    kept.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut reply = [0; 15];
    kept.read_exact(&mut reply).unwrap();
    server.stop();
}

#[test]
fn sockets_are_closed_with_1012() {
    let installation = Installation::new();
    let server = server(&installation);
    let mut socket = server.connect();
    let request = format!(
        "GET /api/v1/socket/websocket?vsn=2.0.0&api_key={} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        owner_key()
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    server.signal("TERM");
    let mut close = [0; 4];
    socket.read_exact(&mut close).unwrap();
    assert_eq!(close[0], 0x88, "a close frame");
    assert_eq!(u16::from_be_bytes([close[2], close[3]]), 1012);
    drop(socket);
    server.stop_after_signal();
}

impl Server {
    fn stop_after_signal(mut self) {
        assert_eq!(self.ended().code(), Some(0));
    }
}

#[test]
fn a_second_signal_cuts() {
    let installation = Installation::new();
    let mut server = server(&installation);
    let _request = HalfRequest::send(&server);
    server.signal("INT");
    server.logs("draining");
    server.signal("INT");
    server.logs("second signal");
    let ended = server.ended();
    assert_eq!((ended.code(), ended.signal()), (Some(1), None));
    // The store was closed all the same, and its lock is free.
    installation.up().stop();
}

#[test]
fn the_deadline_cuts() {
    let installation = Installation::new();
    let mut command = installation.command(&["up", "--listen", "127.0.0.1:0", "--drain-deadline", "1s"]);
    command.env("BANDSTAND_OWNER_KEY", owner_key());
    let mut server = Server::start(command);
    let _request = HalfRequest::send(&server);
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(1));
}

#[test]
fn a_hangup_is_ignored() {
    let installation = Installation::new();
    let mut server = server(&installation);
    server.signal("HUP");
    server.logs("SIGHUP ignored");
    server.stop();
}

#[test]
fn the_port_is_free_again_at_once() {
    let installation = Installation::new();
    let server = server(&installation);
    let address = server.address.clone();
    let mut kept = server.connect();
    kept.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut byte = [0];
    kept.read_exact(&mut byte).unwrap();
    server.stop();
    drop(TcpListener::bind(&address).unwrap());
    let again = Server::start(installation.command(&["up", "--listen", &address]));
    assert_eq!(again.address, address);
    again.stop();
}
