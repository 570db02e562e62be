//! A client that asks as whoever a certificate names which somebody else renews.

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

use super::{ConnectError, client_of, config};

/// Reads a certificate and its key, both as PEM; or says why it cannot, and what to do.
type ReadCertificate = dyn Fn() -> Result<Vec<u8>, String> + Send + Sync;

/// A client of the cluster that the environment names, with this certificate in place of the
/// credentials that are named there. The certificate is read for each request: once it is renewed, the next
/// request goes by the new one.
pub async fn connect_by_certificate(
    read: impl Fn() -> Result<Vec<u8>, String> + Send + Sync + 'static,
) -> Result<Client, ConnectError> {
    let config = config(None).await?;
    let namespace = config.default_namespace.clone();
    let shared = Arc::new(Shared {
        config,
        read: Box::new(read),
        current: Mutex::new(None),
    });
    Ok(Client::new(ByCertificate(shared), namespace))
}

/// What was read, and the client that was made of it.
type Current = Option<(Vec<u8>, Client)>;

struct Shared {
    config: Config,
    read: Box<ReadCertificate>,
    current: Mutex<Current>,
}

impl Shared {
    fn client(&self) -> Result<Client, BoxError> {
        let pem = (self.read)()?;
        let mut current = self.current.lock().expect("nothing panics with it");
        if let Some((_, client)) = current.as_ref().filter(|(read, _)| *read == pem) {
            return Ok(client.clone());
        }
        let mut config = self.config.clone();
        config.auth_info = presenting(&pem)?;
        let client = client_of(config)?.client;
        *current = Some((pem, client.clone()));
        Ok(client)
    }
}

/// kube joins key and certificate, and sorts them by what each PEM section says it is.
fn presenting(pem: &[u8]) -> Result<AuthInfo, serde_json::Error> {
    serde_json::from_value(json!({
        "client-key-data": ByteString(pem.to_vec()),
        "client-certificate-data": ByteString(b"\n".to_vec()),
    }))
}

#[derive(Clone)]
struct ByCertificate(Arc<Shared>);

impl Service<Request<Body>> for ByCertificate {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.client();
        Box::pin(async move { Ok(client?.send(request).await?) })
    }
}
