//! A server that answers each connection with bytes that a test chooses, and keeps the requests.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What the server does after the request's head.
#[derive(Clone)]
pub enum Then {
    /// Sends these bytes and closes.
    Answer(String),
    /// Sends these bytes, and then nothing for ever.
    Hang(String),
    /// Sends these bytes, and then others for ever.
    Flood(String),
}

/// Ends with the test's runtime.
pub struct Served {
    /// `http://127.0.0.1:PORT`, or with `https`.
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Served {
    pub async fn http(then: Then) -> Self {
        Self::start("http", None, then).await
    }

    pub async fn https(acceptor: TlsAcceptor, then: Then) -> Self {
        Self::start("https", Some(acceptor), then).await
    }

    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    async fn start(scheme: &str, tls: Option<TlsAcceptor>, then: Then) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heads = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, then, heads) = (tls.clone(), then.clone(), Arc::clone(&heads));
                tokio::spawn(async move {
                    match tls {
                        None => answer(stream, then, &heads).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                answer(stream, then, &heads).await;
                            }
                        }
                    }
                });
            }
        });
        Self { url, asked }
    }
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    then: Then,
    heads: &Mutex<Vec<String>>,
) {
    let mut head = String::new();
    while !head.contains("\r\n\r\n") {
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(read) => head.push_str(&String::from_utf8_lossy(&bytes[..read])),
        }
    }
    heads.lock().unwrap().push(head);
    // The client may disconnect at any time.
    let (Then::Answer(first) | Then::Hang(first) | Then::Flood(first)) = &then;
    let _ = stream.write_all(first.as_bytes()).await;
    match then {
        Then::Answer(_) => drop(stream.shutdown().await),
        Then::Hang(_) => std::future::pending().await,
        Then::Flood(_) => while stream.write_all(&[b' '; 1 << 12]).await.is_ok() {},
    }
}

pub fn whole(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

/// A Prometheus' answer without results.
pub const EMPTY: &str = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
