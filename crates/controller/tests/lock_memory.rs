//! Measures the memory that strangers cost the lock API. A test program of its own with one test,
//! because memory is counted for the whole process. Source: specification §6.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_controller::lock::http::{
    LockAccess, LockApiConfig, LockApiDeps, LockApiServer, LockAuthMode, LockProtocol,
    NoRequestMetrics,
};
use dogwatch_controller::lock::service::{
    LockAnswer, LockRequest, LockRequester, LockService, UnlockAnswer,
};
use dogwatch_k8s::Error;
use dogwatch_k8s::access::ApiCaller;
use futures::future::{BoxFuture, pending};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// Bytes that one caller may cost before it is authenticated. Source: specification §6.
const MOST: usize = 16 * 1024;

/// Fewer files than many hosts let a process open: each stranger is a socket at both ends here.
const STRANGERS: usize = 400;

/// An API server that never answers whose token it is.
struct Silent;

impl LockAccess for Silent {
    fn find_token_owner(&self, _: String) -> BoxFuture<'static, Result<Option<ApiCaller>, Error>> {
        Box::pin(pending())
    }
    fn may_lock(&self, _: ApiCaller, _: String) -> BoxFuture<'static, Result<bool, Error>> {
        Box::pin(async { Ok(false) })
    }
}

struct Unreached;

impl LockService for Unreached {
    fn lock_host(&self, _: LockRequest) -> BoxFuture<'static, LockAnswer> {
        Box::pin(pending())
    }
    fn unlock_host(&self, _: LockRequester) -> BoxFuture<'static, UnlockAnswer> {
        Box::pin(pending())
    }
}

async fn started() -> SocketAddr {
    let mut config = LockApiConfig::new("127.0.0.1:0".parse().unwrap(), LockAuthMode::Kubernetes);
    // The test measures the cost of strangers, so the time limit must not end them.
    config.limits.body = Duration::from_mins(10);
    config.limits.idle_per_peer = 2 * STRANGERS;
    let parts = LockApiDeps {
        service: Arc::new(Unreached),
        access: Arc::new(Silent),
        record: Arc::new(NoRequestMetrics),
    };
    let server = LockApiServer::bind(config, parts).await.unwrap();
    let address = server.address_of(LockProtocol::Api).unwrap();
    tokio::spawn(server.serve_until(pending()));
    address
}

/// Resident memory, in bytes.
fn memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let mut words = line.unwrap().split_whitespace();
    words.nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Sends as much of a header and a body as the server reads, the body a byte at a time, and never
/// ends it.
async fn stranger(address: SocketAddr, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/v1/lock HTTP/1.1\r\nhost: it\r\nauthorization: Bearer {}\r\n\
         content-type: application/x-www-form-urlencoded\r\ntransfer-encoding: chunked\r\n\r\n",
        "x".repeat(7_000)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    stream
}

#[tokio::test]
async fn before_a_caller_is_known_it_costs_at_most_16_kib() {
    let address = started().await;
    let body = "1\r\nX\r\n".repeat(4_000);
    // Allocates what is needed once, before the measurement.
    let first = strangers(address, &body, 20).await;
    settle().await;
    let before = memory();
    let more = strangers(address, &body, STRANGERS).await;
    settle().await;
    let each = memory().saturating_sub(before) / STRANGERS;
    assert!(each <= MOST, "{each} bytes each");
    drop((first, more));
}

async fn strangers(address: SocketAddr, body: &str, count: usize) -> Vec<TcpStream> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(stranger(address, body.as_bytes()).await);
    }
    all
}

/// Waits until the server has read everything that was sent: there is one thread, and it has
/// nothing left to do.
async fn settle() {
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
}
