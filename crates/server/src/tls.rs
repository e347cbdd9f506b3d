//! TLS on the public listener.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bandstand_wire::time::Timestamp;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Certificate and key, ready to serve with.
pub type TlsConfig = Arc<ServerConfig>;

/// Why certificate and key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate file is missing or no PEM file.
    #[error("cannot read the certificate {}: {cause}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: pem::Error,
    },
    /// There is no certificate in the file.
    #[error("{} holds no certificate", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The key file is missing or holds no key.
    #[error("cannot read the private key {}: {cause}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: pem::Error,
    },
    /// They do not belong together, or are of a kind that is not supported.
    #[error("certificate and private key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// Reads a certificate chain and its key.
///
/// # Errors
/// [`TlsError`], which names the file.
pub fn load(certificate: &Path, key: &Path) -> Result<TlsConfig, TlsError> {
    let chain = read_chain(certificate)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|cause| TlsError::Key { path: key.to_owned(), cause })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    // The socket needs HTTP/1.1's upgrade; a client that offers HTTP/2 as well must not choose it.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// When the first certificate of a file stops being valid; `None` when it does not say so in a known way.
///
/// # Errors
/// When there is none.
pub fn expiry(certificate: &Path) -> Result<Option<Timestamp>, TlsError> {
    let chain = read_chain(certificate)?;
    Ok(chain.first().and_then(|certificate| not_after(certificate)))
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |cause| TlsError::Certificate { path: path.to_owned(), cause };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(unreadable)?.collect();
    let chain = chain.map_err(unreadable)?;
    if chain.is_empty() { Err(TlsError::Empty { path: path.to_owned() }) } else { Ok(chain) }
}

/// The end of an X.509 certificate's validity.
fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    const SEQUENCE: u8 = 0x30;
    const VERSION: u8 = 0xa0;
    let (tag, certificate, _) = element(certificate)?;
    let (inner, fields, _) = element(certificate)?;
    if (tag, inner) != (SEQUENCE, SEQUENCE) {
        return None;
    }
    let (tag, _, mut rest) = element(fields)?;
    if tag == VERSION {
        rest = element(rest)?.2;
    }
    // The serial number is behind us; signature algorithm and issuer come before the validity.
    for _ in 0..2 {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest)?;
    let (_, _, after_start) = element(validity)?;
    let (tag, end, _) = element(after_start)?;
    moment(tag, std::str::from_utf8(end).ok()?)
}

/// The first DER element: its tag, its content and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        (length.iter().try_fold(0_usize, |sum, byte| sum.checked_mul(256)?.checked_add(usize::from(*byte)))?, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// `YYMMDDhhmmssZ` (until 2049) or `YYYYMMDDhhmmssZ`.
fn moment(tag: u8, text: &str) -> Option<Timestamp> {
    const UTC_TIME: u8 = 0x17;
    const GENERALIZED_TIME: u8 = 0x18;
    let text = match tag {
        UTC_TIME => format!("{}{text}", if text < "50" { "20" } else { "19" }),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| text.get(from..to);
    let iso = format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4)?,
        part(4, 6)?,
        part(6, 8)?,
        part(8, 10)?,
        part(10, 12)?,
        part(12, 14)?
    );
    Timestamp::parse(&iso).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms_of_a_date() {
        assert_eq!(moment(0x17, "491231235959Z").unwrap().to_string(), "2049-12-31T23:59:59.000000Z");
        assert_eq!(moment(0x17, "500101000000Z").unwrap().to_string(), "1950-01-01T00:00:00.000000Z");
        assert_eq!(moment(0x18, "20500101000000Z").unwrap().to_string(), "2050-01-01T00:00:00.000000Z");
        assert_eq!(moment(0x18, "2050"), None);
    }

    #[test]
    fn any_bytes_are_no_panic() {
        for bytes in [&[][..], &[0x30], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30, 0x80], &[0x30, 2, 0x30, 0]] {
            assert_eq!(not_after(bytes), None);
        }
    }
}
