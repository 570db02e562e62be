//! What strangers cost the lock API. A test program of its own, with one test: memory is the process'.
//! Source: specification §6.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_controller::lock::http::{Access, Config, LockAuth, Nobody, Parts, Protocol, Server};
use dogwatch_controller::lock::service::{
    Client, LockAnswer, LockRequest, LockService, UnlockAnswer,
};
use dogwatch_k8s::Error;
use dogwatch_k8s::access::Caller;
use futures::future::{BoxFuture, pending};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// What one may cost before it is known. Source: specification §6.
const MOST: usize = 16 * 1024;

/// Below what many hosts let a process open: each is a socket at both ends here.
const STRANGERS: usize = 400;

/// An API server that has not said yet whose token it is.
struct Silent;

impl Access for Silent {
    fn owner(&self, _: String) -> BoxFuture<'static, Result<Option<Caller>, Error>> {
        Box::pin(pending())
    }
    fn may_lock(&self, _: Caller, _: String) -> BoxFuture<'static, Result<bool, Error>> {
        Box::pin(async { Ok(false) })
    }
}

/// Is never asked.
struct Unreached;

impl LockService for Unreached {
    fn lock(&self, _: LockRequest) -> BoxFuture<'static, LockAnswer> {
        Box::pin(pending())
    }
    fn unlock(&self, _: Client) -> BoxFuture<'static, UnlockAnswer> {
        Box::pin(pending())
    }
}

async fn started() -> SocketAddr {
    let mut config = Config::new("127.0.0.1:0".parse().unwrap(), LockAuth::Kubernetes);
    // What they cost is looked at, and not for how long.
    config.limits.body = Duration::from_mins(10);
    config.limits.idle_per_peer = 2 * STRANGERS;
    let parts = Parts {
        service: Arc::new(Unreached),
        access: Arc::new(Silent),
        record: Arc::new(Nobody),
    };
    let server = Server::bind(config, parts).await.unwrap();
    let address = server.address(Protocol::Api).unwrap();
    tokio::spawn(server.serve(pending()));
    address
}

/// Resident, in bytes.
fn memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let mut words = line.unwrap().split_whitespace();
    words.nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// As much as is taken of a header and of a body, the body a byte at a time, and never its end.
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
    // What is made once, for the first of them.
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

/// Everything that was sent is read: there is one thread, and it has nothing left to do.
async fn settle() {
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
}
