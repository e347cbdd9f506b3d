//! Encrypted on the public listener. `tls/` holds a certificate for 127.0.0.1 until 2125, one that ended, and their key.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, IpAddr, Ipv4Addr, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::program::{Installation, Said, Server};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls").join(name)
}

fn arguments<'a>(command: &'a str, certificate: &'a Path, key: &'a Path) -> [&'a str; 7] {
    let [certificate, key] = [certificate, key].map(|path| path.to_str().unwrap());
    [command, "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key]
}

fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("cert.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

async fn ask(server: &Server, path: &str) -> std::io::Result<String> {
    let name = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([127, 0, 0, 1])));
    let mut stream = connector().connect(name, TcpStream::connect(&server.address).await?).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut reply = String::new();
    match stream.read_to_string(&mut reply).await {
        // The reply is whole without TLS's own goodbye.
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(reply),
    }
}

#[tokio::test]
async fn a_client_that_never_shakes_hands_delays_neither_others_nor_the_end() {
    let installation = Installation::new();
    let server = Server::start(installation.command(&arguments("up", &file("cert.pem"), &file("key.pem"))));
    assert!(server.said().contains("listening on https://127.0.0.1:"), "{}", server.said());
    let _silent = server.connect();
    assert!(ask(&server, "/readyz").await.unwrap().starts_with("HTTP/1.1 200"));
    server.stop();
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let installation = Installation::new();
    let missing = installation.path("missing.pem");
    let said = installation.run(&arguments("up", &missing, &file("key.pem")));
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains(missing.to_str().unwrap()), "{}", said.err);
}

#[test]
fn the_doctor_looks_at_the_certificate() {
    let installation = Installation::used();
    let examine =
        |certificate: &str| -> Said { installation.run(&arguments("doctor", &file(certificate), &file("key.pem"))) };
    let valid = examine("cert.pem");
    assert!(valid.code == Some(0) && valid.out.contains("valid until 21"), "{}", valid.out);
    let expired = examine("expired.pem");
    assert!(expired.code == Some(1) && expired.out.contains("out of date since"), "{}", expired.out);
}
