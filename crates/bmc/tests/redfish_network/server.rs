//! A server on loopback that treats its clients as a test requires.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// What the server does after it has read a request.
#[derive(Clone, Copy)]
pub enum Then {
    /// Answers as a BMC without sessions, and keeps the connection.
    Serves,
    /// Sends these bytes and closes the connection.
    Ends(&'static str),
    /// Sends these bytes, then nothing.
    Hangs(&'static str),
    /// Resets the connection.
    Resets,
    /// Sends an endless answer.
    Floods,
}

/// The server; it ends with the test's runtime.
pub struct Server {
    pub port: u16,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Server {
    pub async fn http(then: Then) -> Self {
        Self::start(None, then).await
    }

    pub async fn https(authority: &Authority, name: &str) -> Self {
        Self::start(Some(authority.acceptor(name)), Then::Serves).await
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    async fn start(tls: Option<TlsAcceptor>, then: Then) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            connections: Arc::default(),
            requests: Arc::default(),
        };
        let connections = Arc::clone(&server.connections);
        let requests = Arc::clone(&server.requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(connection(stream, tls.clone(), then, Arc::clone(&requests)));
            }
        });
        server
    }
}

async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    then: Then,
    requests: Arc<AtomicUsize>,
) {
    if matches!(then, Then::Resets) {
        stream.set_zero_linger().unwrap();
    }
    match tls {
        None => requests_of(stream, then, &requests).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                requests_of(stream, then, &requests).await;
            }
        }
    }
}

/// Errors are ignored: the client may close the connection at any time.
async fn requests_of(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    then: Then,
    requests: &AtomicUsize,
) {
    while let Some(head) = head(&mut stream).await {
        requests.fetch_add(1, Ordering::SeqCst);
        match then {
            Then::Serves => {
                let _ = stream.write_all(bmc(&head).as_bytes()).await;
            }
            Then::Ends(bytes) => return drop(stream.write_all(bytes.as_bytes()).await),
            Then::Hangs(bytes) => {
                let _ = stream.write_all(bytes.as_bytes()).await;
                std::future::pending::<()>().await;
            }
            Then::Resets => return,
            Then::Floods => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                while stream.write_all(&[b' '; 4096]).await.is_ok() {}
                return;
            }
        }
    }
}

async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    stream.read_exact(&mut body).await.ok()?;
    Some(head)
}

/// A BMC without sessions, with one system that is on.
fn bmc(head: &str) -> String {
    let body = match head.split(' ').nth(1).unwrap_or_default() {
        "/redfish/v1/systems/1" => r#"{"PowerState": "On"}"#,
        _ => "{}",
    };
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
}

pub struct Authority {
    params: CertificateParams,
    key: KeyPair,
    pub pem: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { params, key, pem }
    }

    /// A TLS acceptor with a certificate for this name.
    fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
