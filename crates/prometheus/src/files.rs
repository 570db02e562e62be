//! The two files: certificates to check servers against, and the token. Both are read for each
//! question, because both are replaced while we run.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use http::HeaderValue;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::trouble::Trouble;

/// No bundle of CAs and no token is larger; a wrong file (`/dev/zero`) may be.
const LARGEST: u64 = 4 << 20;
const CA_FILE: &str = "--prometheus-ca-file";
const TOKEN_FILE: &str = "--prometheus-token-file";

/// How to speak TLS, with the system's certificates where no file is given.
pub(crate) fn tls(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, Trouble> {
    let roots = match ca_file {
        Some(path) => from_file(path)?,
        None => from_system()?,
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

fn from_file(path: &Path) -> Result<RootCertStore, Trouble> {
    let bad = |what| Trouble::BadFile {
        flag: CA_FILE,
        path: path.to_owned(),
        what,
    };
    let pem = read(CA_FILE, path)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|_| bad("is not in PEM"))?;
        let added = roots.add(certificate);
        added.map_err(|_| bad("holds a certificate that cannot be used"))?;
    }
    if roots.is_empty() {
        return Err(bad("holds no certificate"));
    }
    Ok(roots)
}

/// What cannot be used there is left out, as every program does; a server that needs it is refused.
fn from_system() -> Result<RootCertStore, Trouble> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Trouble::NoRoots);
    }
    Ok(roots)
}

/// The `Authorization` header, marked so that nobody prints it.
pub(crate) fn bearer(path: &Path) -> Result<HeaderValue, Trouble> {
    let bad = |what| Trouble::BadFile {
        flag: TOKEN_FILE,
        path: path.to_owned(),
        what,
    };
    let bytes = read(TOKEN_FILE, path)?;
    let token = bytes.trim_ascii();
    if token.is_empty() {
        return Err(bad("is empty"));
    }
    if !token.iter().all(u8::is_ascii_graphic) {
        return Err(bad("holds no token: there is more than one word in it"));
    }
    let header = HeaderValue::from_bytes(&[b"Bearer ", token].concat());
    let mut header = header.expect("made of visible ASCII");
    header.set_sensitive(true);
    Ok(header)
}

fn read(flag: &'static str, path: &Path) -> Result<Vec<u8>, Trouble> {
    let mut bytes = Vec::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|source| Trouble::File {
        flag,
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
