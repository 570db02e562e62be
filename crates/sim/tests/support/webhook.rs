//! A validating webhook for evictions, over TLS on loopback.

use std::fs;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The webhook's name on the API server.
pub const NAME: &str = "evictions.test.dogwatch.dev";

/// The answer to every eviction.
#[derive(Debug, Clone, Copy)]
pub enum Verdict {
    Allowed,
    /// Refuses with this code and this message.
    Denied(u16, &'static str),
    /// Closes the connection.
    NoAnswer,
}

/// A webhook that runs until it is dropped.
pub struct Webhook {
    address: SocketAddr,
    authority: PathBuf,
    verdict: Arc<Mutex<Verdict>>,
    serving: JoinHandle<()>,
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Webhook {
    /// Serves with the certificate in this folder: `ca.crt`, `server.crt`, `server.key`.
    pub async fn start(folder: &Path, verdict: Verdict) -> Self {
        let tls = tls(folder);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let verdict = Arc::new(Mutex::new(verdict));
        let serving = tokio::spawn(serve(listener, tls, verdict.clone()));
        Self {
            address,
            authority: folder.join("ca.crt"),
            verdict,
            serving,
        }
    }

    /// Sets the answer from now on.
    pub fn answers(&self, verdict: Verdict) {
        *self.verdict.lock().unwrap() = verdict;
    }

    /// The configuration that makes the API server call it for every eviction in this namespace.
    pub fn configuration(&self, namespace: &str) -> String {
        let authority = k8s_openapi::ByteString(fs::read(&self.authority).unwrap());
        let rule = json!({
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"],
        });
        let namespaces = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
        let webhook = json!({
            "name": NAME,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": {"url": format!("https://{}/", self.address), "caBundle": authority},
            "rules": [rule],
            "namespaceSelector": namespaces,
        });
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": format!("evictions-{namespace}")},
            "webhooks": [webhook],
        })
        .to_string()
    }
}

fn tls(folder: &Path) -> TlsAcceptor {
    let certificate = fs::read(folder.join("server.crt")).unwrap();
    let chain = CertificateDer::pem_reader_iter(BufReader::new(certificate.as_slice()));
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, verdict: Arc<Mutex<Verdict>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(connection(stream, tls.clone(), verdict.clone()));
    }
}

async fn connection(stream: TcpStream, tls: TlsAcceptor, verdict: Arc<Mutex<Verdict>>) {
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    let service = service_fn(|request| answer(request, *verdict.lock().unwrap()));
    let connection = hyper::server::conn::http1::Builder::new();
    // A webhook that closes the connection ends it with an error.
    drop(
        connection
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

async fn answer(
    request: http::Request<Incoming>,
    verdict: Verdict,
) -> Result<http::Response<Full<Bytes>>, &'static str> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let uid = &review["request"]["uid"];
    let response = match verdict {
        Verdict::NoAnswer => return Err("hangs up"),
        Verdict::Allowed => json!({"uid": uid, "allowed": true}),
        Verdict::Denied(code, message) => {
            json!({"uid": uid, "allowed": false, "status": {"code": code, "message": message}})
        }
    };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    let body = Full::new(Bytes::from(review.to_string()));
    Ok(http::Response::builder()
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .unwrap())
}
