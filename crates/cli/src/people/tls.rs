//! TLS towards a server: by the machine's own trust store, with ring.

use std::sync::Arc;

use anyhow::Context;
use rustls::{ClientConfig, RootCertStore};

/// TLS for an address. One without TLS needs no certificates of the machine, and works where there are none.
pub(crate) fn for_address(url: &str) -> anyhow::Result<ClientConfig> {
    use rustls_platform_verifier::BuilderVerifierExt;

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.context("TLS cannot be set up")?;
    if !url.starts_with("https://") {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let builder = builder.with_platform_verifier();
    let builder = builder.context("this machine trusts no certificates; install ca-certificates")?;
    Ok(builder.with_no_client_auth())
}
