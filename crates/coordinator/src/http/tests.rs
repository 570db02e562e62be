//! Tests over a real socket, byte by byte.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use dogwatch_runtime::http::HEADER_TIMEOUT;
use dogwatch_runtime::listen::ListenAddress;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;

async fn started(board: &CoordinatorHttpState) -> SocketAddr {
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = HealthServer::bind(&listen).await.unwrap().unwrap();
    let address = server.address();
    tokio::spawn(server.serve_forever(board.clone()));
    address
}

/// A paused clock that does not advance while this value lives. Tokio's paused clock advances when
/// no task can run, and a packet in transit on a busy machine is no task: a time limit would expire
/// before the first byte. A blocked thread stops that.
fn still() -> mpsc::Sender<()> {
    let (end, ended) = mpsc::channel();
    tokio::task::spawn_blocking(move || ended.recv());
    end
}

/// The whole answer to one request.
async fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn metrics_are_what_the_loop_showed_last() {
    let board = CoordinatorHttpState::new();
    let address = started(&board).await;
    board.update_metrics(|metrics| metrics.raise_alarm("RebootFailed"));
    let answer = ask(address, "GET /metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("content-type: text/plain; version=0.0.4"),
        "{answer}"
    );
    assert!(
        answer.contains("\ndogwatch_alarm{reason=\"RebootFailed\"} 1\n"),
        "{answer}"
    );
    board.set_metrics(MetricsView::default());
    assert!(!ask(address, "GET /metrics").await.contains("RebootFailed"));
}

#[tokio::test]
async fn readyz_says_why_not() {
    let board = CoordinatorHttpState::new();
    let address = started(&board).await;
    let answer = ask(address, "GET /readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.ends_with("has not read its Node yet\n"), "{answer}");
    board.set_ready(Ok(()));
    assert!(ask(address, "GET /readyz").await.ends_with("\r\n\r\nok\n"));
}

#[tokio::test(start_paused = true)]
async fn healthz_notices_a_stuck_loop() {
    let _still = still();
    let board = CoordinatorHttpState::new();
    board.heart.mark_working("draining");
    let address = started(&board).await;
    assert!(
        ask(address, "GET /healthz")
            .await
            .starts_with("HTTP/1.1 200 ")
    );
    tokio::time::advance(crate::health::STUCK_AFTER + Duration::from_secs(1)).await;
    let answer = ask(address, "GET /healthz?verbose").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("draining"), "{answer}");
}

#[tokio::test]
async fn other_paths_are_404_and_other_methods_405() {
    let address = started(&CoordinatorHttpState::new()).await;
    assert!(ask(address, "GET /").await.starts_with("HTTP/1.1 404 "));
    assert!(
        ask(address, "POST /nothing")
            .await
            .starts_with("HTTP/1.1 404 ")
    );
    let answer = ask(address, "POST /metrics").await;
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(answer.contains("allow: GET, HEAD"), "{answer}");
    let head = ask(address, "HEAD /metrics").await;
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_finish_its_header_is_cut_off() {
    let _still = still();
    let address = started(&CoordinatorHttpState::new()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    tokio::pin!(read);
    // The server accepts the connection at an unknown moment, and its time limit counts from there.
    let patience = std::time::Instant::now() + Duration::from_mins(1);
    while std::time::Instant::now() < patience {
        tokio::select! {
            biased;
            _ = &mut read => return,
            () = tokio::time::advance(HEADER_TIMEOUT / 10) => {}
        }
    }
    panic!("still open");
}

#[tokio::test]
async fn a_port_in_use_is_said_with_the_way_out() {
    let address = started(&CoordinatorHttpState::new()).await;
    let listen = format!("127.0.0.1:{}", address.port());
    let error = HealthServer::bind(&listen.parse().unwrap())
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&listen) && text.contains("in use"), "{text}");
    assert!(text.contains("--listen"), "{text}");
    let error = HealthServer::bind(&"192.0.2.1:0".parse().unwrap())
        .await
        .unwrap_err();
    assert!(matches!(error, HttpError::Bind { .. }), "{error}");
}

#[tokio::test]
async fn without_a_host_it_listens_everywhere_and_off_is_nowhere() {
    let server = HealthServer::bind(&":0".parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    let port = server.address().port();
    tokio::spawn(server.serve_forever(CoordinatorHttpState::new()));
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    assert!(
        ask(address, "GET /healthz")
            .await
            .starts_with("HTTP/1.1 200 ")
    );
    assert!(
        HealthServer::bind(&ListenAddress::Off)
            .await
            .unwrap()
            .is_none()
    );
}
