//! Reads the two files: the CA certificates for servers, and the token. Both are read for each
//! query, because both are replaced while the process runs.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use http::HeaderValue;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::query_error::QueryError;

/// No bundle of CAs and no token is larger; a wrong file (`/dev/zero`) may be.
const MAX_FILE_BYTES: u64 = 4 << 20;
const CA_FILE_FLAG: &str = "--prometheus-ca-file";
const TOKEN_FILE_FLAG: &str = "--prometheus-token-file";

/// The TLS configuration; without a file, with the system's certificates.
pub(crate) fn build_tls_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, QueryError> {
    let roots = match ca_file {
        Some(path) => roots_from_file(path)?,
        None => roots_from_system()?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has a cipher suite for each version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn roots_from_file(path: &Path) -> Result<RootCertStore, QueryError> {
    let bad = |what| QueryError::BadFile {
        flag: CA_FILE_FLAG,
        path: path.to_owned(),
        what,
    };
    let pem = read_file(CA_FILE_FLAG, path)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|_| bad("is not in PEM format"))?;
        let added = roots.add(certificate);
        added.map_err(|_| bad("contains an invalid certificate"))?;
    }
    if roots.is_empty() {
        return Err(bad("contains no certificate"));
    }
    Ok(roots)
}

/// Unusable system certificates are skipped, as every program does; a server that needs one is
/// refused.
fn roots_from_system() -> Result<RootCertStore, QueryError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(QueryError::NoRoots);
    }
    Ok(roots)
}

/// The `Authorization` header, marked as sensitive so that it is never printed.
pub(crate) fn read_bearer_header(path: &Path) -> Result<HeaderValue, QueryError> {
    let bad = |what| QueryError::BadFile {
        flag: TOKEN_FILE_FLAG,
        path: path.to_owned(),
        what,
    };
    let bytes = read_file(TOKEN_FILE_FLAG, path)?;
    let token = bytes.trim_ascii();
    if token.is_empty() {
        return Err(bad("is empty"));
    }
    if !token.iter().all(u8::is_ascii_graphic) {
        return Err(bad(
            "contains no valid token: a token is one word of visible ASCII characters",
        ));
    }
    let header = HeaderValue::from_bytes(&[b"Bearer ", token].concat());
    let mut header = header.expect("made of visible ASCII");
    header.set_sensitive(true);
    Ok(header)
}

fn read_file(flag: &'static str, path: &Path) -> Result<Vec<u8>, QueryError> {
    let mut bytes = Vec::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|source| QueryError::File {
        flag,
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
