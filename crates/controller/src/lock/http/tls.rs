//! The certificates of both listeners, read again when they change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::config::TlsFiles;

/// Why certificates are of no use.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file has not what it should have.
    #[error("{} has no {what} in PEM form", path.display())]
    Pem {
        /// Which.
        path: PathBuf,
        /// What is missed.
        what: &'static str,
    },
    /// The files do not belong together, or are not fit for TLS.
    #[error("the certificate, the key or the client authority cannot be used")]
    Unfit(#[source] rustls::Error),
    /// The authorities of clients are none.
    #[error("the client authority cannot be used")]
    Authority(#[source] rustls::server::VerifierBuilderError),
}

/// What the files said when they were read.
#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Option<Vec<u8>>,
}

/// The certificates in use.
pub(super) struct Tls {
    files: TlsFiles,
    authenticate: bool,
    now: Mutex<(Contents, Arc<ServerConfig>)>,
}

impl Tls {
    /// Reads the files. Certificates are asked of clients only where `authenticate` is set: a FleetLock
    /// client has none.
    pub(super) fn read(files: &TlsFiles, authenticate: bool) -> Result<Self, TlsError> {
        let contents = Contents::read(files)?;
        let config = contents.config(files, authenticate)?;
        Ok(Self {
            files: files.clone(),
            authenticate,
            now: Mutex::new((contents, config)),
        })
    }

    /// For the next connection.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&now.1)
    }

    /// Reads the files again and takes what they say, if it has changed and is fit. Files are compared by what
    /// is in them: a Secret in a pod is changed by swapping a link. Blocks.
    pub(super) fn reread(&self) -> Result<bool, TlsError> {
        let contents = Contents::read(&self.files)?;
        let unchanged = {
            let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
            now.0 == contents
        };
        if unchanged {
            return Ok(false);
        }
        let config = contents.config(&self.files, self.authenticate)?;
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = (contents, config);
        Ok(true)
    }
}

impl Contents {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
            authority: files.client_authority.as_deref().map(read).transpose()?,
        })
    }

    fn config(&self, files: &TlsFiles, authenticate: bool) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unfit)?;
        let builder = match (&self.authority, &files.client_authority) {
            (Some(pem), Some(path)) if authenticate => {
                let roots = Arc::new(roots(pem, path)?);
                // Those without a certificate send a token.
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(TlsError::Authority)?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let chain = certificates(&self.certificate, &files.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| TlsError::Pem {
            path: files.key.clone(),
            what: "private key",
        })?;
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(TlsError::Unfit)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn roots(pem: &[u8], path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, path)? {
        roots.add(certificate).map_err(TlsError::Unfit)?;
    }
    Ok(roots)
}

fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let missing = || TlsError::Pem {
        path: path.to_owned(),
        what: "certificate",
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|_| missing())?;
    if found.is_empty() {
        return Err(missing());
    }
    Ok(found)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}
