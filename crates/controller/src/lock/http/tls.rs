//! The certificates of both listeners, read again when they change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use dogwatch_runtime::mutex::lock_ignoring_poison;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::config::TlsFiles;

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} contains no {what} in PEM format", path.display())]
    Pem {
        path: PathBuf,
        /// What the file should contain.
        what: &'static str,
    },
    /// The files do not belong together, or rustls does not accept them.
    #[error("the certificate, the key or the client authority cannot be used")]
    Unfit(#[source] rustls::Error),
    /// The file holds no usable client authority.
    #[error("the client authority cannot be used")]
    Authority(#[source] rustls::server::VerifierBuilderError),
}

#[derive(PartialEq, Eq)]
struct TlsFileContents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Option<Vec<u8>>,
}

pub(super) struct ReloadingTls {
    files: TlsFiles,
    authenticate: bool,
    now: Mutex<(TlsFileContents, Arc<ServerConfig>)>,
}

impl ReloadingTls {
    /// Clients are asked for certificates only if `authenticate` is set: a FleetLock client has
    /// none.
    pub(super) fn read_files(files: &TlsFiles, authenticate: bool) -> Result<Self, TlsError> {
        let contents = TlsFileContents::read_files(files)?;
        let config = contents.build_server_config(files, authenticate)?;
        Ok(Self {
            files: files.clone(),
            authenticate,
            now: Mutex::new((contents, config)),
        })
    }

    /// For the next connection.
    pub(super) fn server_config(&self) -> Arc<ServerConfig> {
        let now = lock_ignoring_poison(&self.now);
        Arc::clone(&now.1)
    }

    /// Reads the files again and uses them, if they have changed and are valid. Files are compared
    /// by content: a Secret in a pod is changed by swapping a link. Blocks.
    pub(super) fn reload_if_changed(&self) -> Result<bool, TlsError> {
        let contents = TlsFileContents::read_files(&self.files)?;
        let unchanged = {
            let now = lock_ignoring_poison(&self.now);
            now.0 == contents
        };
        if unchanged {
            return Ok(false);
        }
        let config = contents.build_server_config(&self.files, self.authenticate)?;
        *lock_ignoring_poison(&self.now) = (contents, config);
        Ok(true)
    }
}

impl TlsFileContents {
    fn read_files(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self {
            certificate: read_pem_file(&files.certificate)?,
            key: read_pem_file(&files.key)?,
            authority: files
                .client_authority
                .as_deref()
                .map(read_pem_file)
                .transpose()?,
        })
    }

    fn build_server_config(
        &self,
        files: &TlsFiles,
        authenticate: bool,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unfit)?;
        let builder = match (&self.authority, &files.client_authority) {
            (Some(pem), Some(path)) if authenticate => {
                let roots = Arc::new(parse_root_store(pem, path)?);
                // A client without a certificate sends a token.
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(TlsError::Authority)?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let chain = parse_certificates(&self.certificate, &files.certificate)?;
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

fn parse_root_store(pem: &[u8], path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in parse_certificates(pem, path)? {
        roots.add(certificate).map_err(TlsError::Unfit)?;
    }
    Ok(roots)
}

fn parse_certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
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

fn read_pem_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}
