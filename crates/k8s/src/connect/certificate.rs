//! Builds a client that authenticates by a certificate which another program renews.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use k8s_openapi::ByteString;
use kube::client::Body;
use kube::config::AuthInfo;
use kube::{Client, Config};
use serde_json::json;
use tower::{BoxError, Service};

use super::{ConnectError, build_connection, load_config};

/// Reads certificate and key as PEM, or returns what is wrong and what to do.
type ReadCertificate = dyn Fn() -> Result<Vec<u8>, String> + Send + Sync;

/// Connects to the cluster that the environment names, with this certificate in place of the
/// credentials there. The certificate is read for each request, so the first request after a
/// renewal uses the new one.
pub async fn connect_by_certificate(
    read: impl Fn() -> Result<Vec<u8>, String> + Send + Sync + 'static,
) -> Result<Client, ConnectError> {
    let config = load_config(None).await?;
    let namespace = config.default_namespace.clone();
    let shared = Arc::new(CertificateClient {
        config,
        read: Box::new(read),
        current: Mutex::new(None),
    });
    Ok(Client::new(CertificateService(shared), namespace))
}

/// The PEM text that was read, and the client built from it.
type CachedClient = Option<(Vec<u8>, Client)>;

struct CertificateClient {
    config: Config,
    read: Box<ReadCertificate>,
    current: Mutex<CachedClient>,
}

impl CertificateClient {
    fn current_client(&self) -> Result<Client, BoxError> {
        let pem = (self.read)()?;
        let mut current = self.current.lock().expect("nothing panics with it");
        if let Some((_, client)) = current.as_ref().filter(|(read, _)| *read == pem) {
            return Ok(client.clone());
        }
        let mut config = self.config.clone();
        config.auth_info = auth_info_of(&pem)?;
        let client = build_connection(config)?.client;
        *current = Some((pem, client.clone()));
        Ok(client)
    }
}

/// kube concatenates key and certificate, and tells them apart by their PEM headers.
fn auth_info_of(pem: &[u8]) -> Result<AuthInfo, serde_json::Error> {
    serde_json::from_value(json!({
        "client-key-data": ByteString(pem.to_vec()),
        "client-certificate-data": ByteString(b"\n".to_vec()),
    }))
}

#[derive(Clone)]
struct CertificateService(Arc<CertificateClient>);

impl Service<Request<Body>> for CertificateService {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.current_client();
        Box::pin(async move { Ok(client?.send(request).await?) })
    }
}
