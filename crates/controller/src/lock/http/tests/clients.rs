//! Clients that disconnect, are slow, send too much or send nonsense.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::rig::{Rig, answer, config, post, within};
use crate::lock::http::{LockAuthMode, LockProtocol};

const WAITS: &str = "hostname=waiter";

async fn with_limits(change: impl FnOnce(&mut crate::lock::http::LockApiLimits)) -> Rig {
    let mut config = config(LockAuthMode::None);
    change(&mut config.limits);
    Rig::start(config).await
}

#[tokio::test]
async fn a_client_that_hangs_up_while_it_waits_leaves_nothing() {
    let rig = Rig::open().await;
    assert_eq!(rig.lock("hostname=holder").await.status, 200);
    for extra in ["", "\r\n", "POST /api/v1/lock HTTP/1.1\r\n"] {
        let mut stream = rig.connect().await;
        let request = post("/api/v1/lock", &[], WAITS) + extra;
        stream.write_all(request.as_bytes()).await.unwrap();
        rig.lock
            .until("waits", |state| state.queue.len() == 1)
            .await;
        drop(stream);
        rig.lock
            .until("gives up", |state| state.queue.is_empty())
            .await;
    }
    rig.unlock("hostname=holder").await;
    assert!(rig.lock.now().holders.is_empty());
    assert_eq!(rig.counts.of(LockProtocol::Api, "gone"), 3);
}

#[tokio::test]
async fn a_client_that_resets_its_connection_while_it_waits_leaves_nothing() {
    let rig = Rig::open().await;
    rig.lock("hostname=holder").await;
    let mut stream = rig.connect().await;
    stream
        .write_all(post("/api/v1/lock", &[], WAITS).as_bytes())
        .await
        .unwrap();
    rig.lock
        .until("waits", |state| state.queue.len() == 1)
        .await;
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    rig.lock
        .until("gives up", |state| state.queue.is_empty())
        .await;
}

#[tokio::test]
async fn a_client_that_talks_on_while_it_waits_is_cut_off() {
    let rig = Rig::open().await;
    rig.lock("hostname=holder").await;
    let mut stream = rig.connect().await;
    let request = post("/api/v1/lock", &[], WAITS);
    stream.write_all(request.as_bytes()).await.unwrap();
    rig.lock
        .until("waits", |state| state.queue.len() == 1)
        .await;
    stream.write_all(&vec![b'x'; 64 * 1024]).await.unwrap();
    rig.lock
        .until("is cut off", |state| state.queue.is_empty())
        .await;
    assert_eq!(answer(&mut stream).await.status, 408);
}

#[tokio::test]
async fn the_next_request_may_come_before_the_first_is_answered() {
    let rig = Rig::open().await;
    let mut stream = rig.connect().await;
    let lock = "POST /api/v1/lock HTTP/1.1\r\nhost: it\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 11\r\n\r\nhostname=n1";
    let both = lock.to_owned() + &post("/api/v1/unlock", &[], "hostname=n1");
    stream.write_all(both.as_bytes()).await.unwrap();
    let mut text = String::new();
    within("both answers", stream.read_to_string(&mut text))
        .await
        .unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let rig = Rig::open().await;
    let mut stream = rig.connect().await;
    let head = "host: it\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 11\r\n\r\nhostname=n1";
    for call in ["lock", "unlock", "lock"] {
        let request = format!("POST /api/v1/{call} HTTP/1.1\r\n{head}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut heard = [0; 1024];
        let length = within("an answer", stream.read(&mut heard)).await.unwrap();
        assert!(heard[..length].starts_with(b"HTTP/1.1 200 OK"));
    }
}

#[tokio::test]
async fn a_slow_header_is_cut_off_with_a_line() {
    let rig = with_limits(|limits| limits.header = Duration::from_secs(2)).await;
    let mut stream = rig.connect().await;
    stream
        .write_all(b"POST /api/v1/lock HTTP/1.1\r\nhost:")
        .await
        .unwrap();
    let answer = answer(&mut stream).await;
    assert_eq!(answer.status, 408);
    assert!(
        answer.is_one_line() && answer.body.contains("header"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_slow_body_is_cut_off_though_it_never_stops() {
    let rig = with_limits(|limits| limits.body = Duration::from_secs(2)).await;
    let (mut from, mut to) = rig.connect().await.into_split();
    let head = post("/api/v1/lock", &[], &"x".repeat(4_000));
    let head = head.split_once("xxx").unwrap().0.to_owned();
    to.write_all(head.as_bytes()).await.unwrap();
    let dribble = tokio::spawn(async move {
        while to.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut text = String::new();
    let heard = within("an answer", from.read_to_string(&mut text)).await;
    heard.unwrap();
    dribble.abort();
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
}

#[tokio::test]
async fn a_silent_connection_is_closed_after_its_time_and_a_waiting_one_is_not() {
    let rig = with_limits(|limits| {
        limits.idle = Duration::from_millis(200);
        limits.header = Duration::from_millis(100);
    })
    .await;
    rig.lock("hostname=holder").await;
    let mut waiter = rig.connect().await;
    waiter
        .write_all(post("/api/v1/lock", &[], WAITS).as_bytes())
        .await
        .unwrap();
    rig.lock
        .until("waits", |state| state.queue.len() == 1)
        .await;
    for _ in 0..3 {
        let mut silent = rig.connect().await;
        let heard = within("is closed", silent.read_to_end(&mut Vec::new())).await;
        assert_eq!(heard.unwrap(), 0);
    }
    rig.unlock("hostname=holder").await;
    assert_eq!(answer(&mut waiter).await.status, 200);
}

#[tokio::test]
async fn a_client_that_takes_no_answers_is_cut_off() {
    let rig = with_limits(|limits| limits.idle = Duration::from_millis(300)).await;
    let mut stream = rig.connect().await;
    let request = "GET /api/openapi.json HTTP/1.1\r\nhost: it\r\n\r\n".repeat(100);
    let flood = async { while stream.write_all(request.as_bytes()).await.is_ok() {} };
    within("is cut off", flood).await;
}

#[tokio::test]
async fn a_body_without_end_is_refused_before_it_is_read() {
    let rig = Rig::open().await;
    let head = "POST /api/v1/lock HTTP/1.1\r\nhost: it\r\ncontent-type: application/x-www-form-urlencoded\r\n";
    let announced = format!("{head}content-length: 10000000000\r\n\r\nhostname=");
    assert_eq!(rig.raw(announced).await.status, 413);
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    let chunked = format!(
        "{head}transfer-encoding: chunked\r\n\r\n{}",
        chunk.repeat(100)
    );
    let answer = rig.raw(chunked).await;
    assert_eq!(answer.status, 413);
    assert!(answer.is_one_line());
}

#[tokio::test]
async fn a_client_that_sends_a_long_body_to_its_end_still_reads_why_it_is_refused() {
    let rig = Rig::open().await;
    let mut stream = rig.connect().await;
    let head = "POST /api/v1/lock HTTP/1.1\r\nhost: it\r\ncontent-type: application/x-www-form-urlencoded\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..160 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    assert_eq!(answer(&mut stream).await.status, 413);
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_a_line() {
    let rig = Rig::open().await;
    let long_path = format!(
        "POST /{} HTTP/1.1\r\nhost: it\r\nconnection: close\r\n\r\n",
        "a".repeat(7_000)
    );
    let long_header = format!("POST / HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(40_000));
    let many_headers = format!("POST / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(200));
    for (request, statuses) in [
        ("hello?\r\n\r\n", [400, 400]),
        ("POST /api/v1/lock HTTP/9.9\r\n\r\n", [400, 400]),
        (
            "POST /api/v1/lock HTTP/1.1\r\nbad header\r\n\r\n",
            [400, 400],
        ),
        (
            "POST /api/v1/lock HTTP/1.1\r\ncontent-length: x\r\n\r\n",
            [400, 400],
        ),
        (
            "POST /api/v1/lock HTTP/1.1\r\nhost: it\r\ntransfer-encoding: chunked\r\ncontent-type: application/x-www-form-urlencoded\r\nconnection: close\r\n\r\nzz\r\n",
            [400, 400],
        ),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [505, 505]),
        (
            "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\r\n\r\n",
            [400, 400],
        ),
        (long_path.as_str(), [404, 414]),
        (long_header.as_str(), [431, 431]),
        (many_headers.as_str(), [431, 431]),
    ] {
        let answer = rig.raw(request).await;
        let what = request.get(..60).unwrap_or(request);
        assert!(statuses.contains(&answer.status), "{what:?} {answer:?}");
        assert!(answer.is_one_line(), "{what:?} {answer:?}");
    }
}

#[tokio::test]
async fn half_a_request_and_a_hang_up_are_nothing() {
    let rig = Rig::open().await;
    let whole = post("/api/v1/lock", &[], "hostname=n1");
    for length in [0, 1, 20, whole.len() - 5, whole.len() - 1] {
        let mut stream = rig.connect().await;
        stream.write_all(&whole.as_bytes()[..length]).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut heard = String::new();
        within("is closed", stream.read_to_string(&mut heard))
            .await
            .unwrap();
        assert!(!heard.contains("200 OK"), "{heard}");
    }
    assert_eq!(*rig.lock.asked.lock().unwrap(), []);
}
