//! A server on loopback, and clients that speak to it byte by byte.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_k8s::Error;
use dogwatch_k8s::access::ApiCaller;
use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::semaphore::Semaphore;
use crate::lock::http::{
    LockAccess, LockApiConfig, LockApiDeps, LockApiServer, LockAuthMode, LockProtocol,
    RequestMetrics,
};

pub const LOOPBACK: &str = "127.0.0.1:0";

/// Far longer than anything here takes.
pub const PATIENCE: Duration = Duration::from_mins(2);

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}

pub fn config(auth: LockAuthMode) -> LockApiConfig {
    LockApiConfig::new(LOOPBACK.parse().unwrap(), auth)
}

/// Knows alice, who may lock every host but `foreign`.
pub struct Alice;

impl LockAccess for Alice {
    fn find_token_owner(
        &self,
        token: String,
    ) -> BoxFuture<'static, Result<Option<ApiCaller>, Error>> {
        Box::pin(async move {
            match token.as_str() {
                "of-alice" => Ok(Some(alice())),
                "while-away" => Err(Error::Timeout(Duration::from_secs(30))),
                _ => Ok(None),
            }
        })
    }

    fn may_lock(&self, caller: ApiCaller, host: String) -> BoxFuture<'static, Result<bool, Error>> {
        Box::pin(async move { Ok(caller.name == "alice" && host != "foreign") })
    }
}

pub fn alice() -> ApiCaller {
    ApiCaller::from_certificate("alice", Vec::new()).unwrap()
}

#[derive(Clone, Default)]
pub struct Counts(Arc<Mutex<BTreeMap<(LockProtocol, &'static str), u64>>>);

impl Counts {
    pub fn of(&self, protocol: LockProtocol, answer: &str) -> u64 {
        let counts = self.0.lock().unwrap();
        let of = counts
            .iter()
            .find(|((p, a), _)| *p == protocol && *a == answer);
        of.map_or(0, |(_, count)| *count)
    }
}

impl RequestMetrics for Counts {
    fn record_answer(&self, protocol: LockProtocol, answer: &'static str, _: Duration) {
        *self
            .0
            .lock()
            .unwrap()
            .entry((protocol, answer))
            .or_default() += 1;
    }

    fn set_waiting_count(&self, _: usize) {}
}

pub struct Rig {
    pub address: SocketAddr,
    pub fleetlock: Option<SocketAddr>,
    pub lock: Semaphore,
    pub counts: Counts,
    stop: Option<oneshot::Sender<()>>,
    pub ended: JoinHandle<()>,
}

impl Rig {
    pub async fn start(config: LockApiConfig) -> Self {
        Self::with_access(config, Arc::new(Alice)).await
    }

    pub async fn with_access(config: LockApiConfig, access: Arc<dyn LockAccess>) -> Self {
        let lock = Semaphore::new(1);
        let counts = Counts::default();
        let parts = LockApiDeps {
            service: Arc::new(lock.clone()),
            access,
            record: Arc::new(counts.clone()),
        };
        let server = LockApiServer::bind(config, parts).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        Self {
            address: server.address_of(LockProtocol::Api).unwrap(),
            fleetlock: server.address_of(LockProtocol::FleetLock),
            lock,
            counts,
            stop: Some(stop),
            ended: tokio::spawn(async move {
                server
                    .serve_until(async {
                        let _dropped = stopped.await;
                    })
                    .await;
            }),
        }
    }

    /// Without authentication.
    pub async fn open() -> Self {
        Self::start(config(LockAuthMode::None)).await
    }

    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends these bytes and reads the answer until the server closes.
    pub async fn raw(&self, bytes: impl AsRef<[u8]>) -> Answer {
        raw(self.address, bytes).await
    }

    pub async fn lock(&self, form: &str) -> Answer {
        self.raw(post("/api/v1/lock", &[], form)).await
    }

    pub async fn unlock(&self, form: &str) -> Answer {
        self.raw(post("/api/v1/unlock", &[], form)).await
    }
}

/// A form, after which the connection is closed.
pub fn post(path: &str, headers: &[&str], form: &str) -> String {
    let mut more = headers.join("\r\n");
    if !headers.is_empty() {
        more.push_str("\r\n");
    }
    format!(
        "POST {path} HTTP/1.1\r\nhost: it\r\nconnection: close\r\n{more}\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    )
}

pub async fn raw(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may answer before it has read everything.
    let _sent = stream.write_all(bytes.as_ref()).await;
    answer(&mut stream).await
}

pub async fn answer(stream: &mut TcpStream) -> Answer {
    let mut text = Vec::new();
    within("an answer", stream.read_to_end(&mut text))
        .await
        .unwrap();
    Answer::parse(&String::from_utf8(text).unwrap())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Answer {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.get(9..12).and_then(|code| code.parse().ok());
        Self {
            status: status.unwrap_or_else(|| panic!("no HTTP: {text:?}")),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// One line and its newline, or JSON and its newline.
    pub fn is_one_line(&self) -> bool {
        self.body.len() > 1 && self.body.find('\n') == Some(self.body.len() - 1)
    }
}
