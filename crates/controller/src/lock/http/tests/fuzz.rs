//! Forms, FleetLock's JSON and whole connections, on mutated bytes.

use bytes::Bytes;
use dogwatch_core::fleetlock::FleetlockGroups;
use dogwatch_fuzz::{ByteMutator, FuzzTarget, assert_one_line, count_of_inputs};
use futures::FutureExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::rig::{LOOPBACK, Rig, config, post, within};
use crate::lock::http::LockAuthMode;
use crate::lock::http::form::{parse_lock_form, parse_unlock_form};
use crate::lock::service::LockRequester;

/// Connections for each thousand inputs of a parser: a connection costs a thousand times as much.
const CONNECTIONS_PER_THOUSAND: u64 = 20;

const MULTIPART: &str = "multipart/form-data; boundary=b\n--b\r\nContent-Disposition: form-data; name=\"hostname\"\r\n\r\nn1\r\n--b\r\nContent-Disposition: form-data; name=\"wait\"\r\n\r\ntrue\r\n--b--\r\n";

/// The first line is the content type, the rest the body.
#[test]
fn forms_of_any_kind_are_read_or_refused_in_one_line() {
    let seeds: [&[u8]; 4] = [
        b"application/x-www-form-urlencoded\nhostname=n1&wait=true",
        b"application/x-www-form-urlencoded; charset=utf-8\nhostname=N1.Example.org",
        MULTIPART.as_bytes(),
        b"multipart/form-data; boundary=\"b c\"\n--b c--\r\n",
    ];
    let target = FuzzTarget {
        name: "lock-form",
        crate_folder: env!("CARGO_MANIFEST_DIR"),
        seeds: &seeds,
    };
    target.check_inputs(|input| {
        let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
        let kind = String::from_utf8_lossy(&input[..at]);
        let body = Bytes::copy_from_slice(input[at..].strip_prefix(b"\n").unwrap_or(input));
        let lock = parse_lock_form(Some(&kind), body.clone()).now_or_never();
        match lock.expect("the whole body is there") {
            Ok(form) => assert_eq!(form.host, form.host.to_ascii_lowercase()),
            Err(refusal) => assert_one_line(refusal.line.trim_end_matches('\n')),
        }
        let unlock = parse_unlock_form(Some(&kind), body).now_or_never();
        if let Err(refusal) = unlock.expect("the whole body is there") {
            assert_one_line(refusal.line.trim_end_matches('\n'));
        }
    });
}

/// Requests as clients send them.
fn request_seeds() -> Vec<Vec<u8>> {
    let fleetlock = r#"{"client_params":{"id":"m1","group":"default"}}"#;
    let fleetlock = format!(
        "POST /v1/pre-reboot HTTP/1.1\r\nhost: it\r\nfleet-lock-protocol: true\r\ncontent-length: {}\r\n\r\n{fleetlock}",
        fleetlock.len()
    );
    let chunked = "POST /api/v1/lock HTTP/1.1\r\nhost: it\r\ntransfer-encoding: chunked\r\ncontent-type: application/x-www-form-urlencoded\r\n\r\nb\r\nhostname=n1\r\n0\r\n\r\n";
    [
        post("/api/v1/lock", &[], "hostname=n1&wait=false"),
        post("/api/v1/lock", &[], "hostname=n2"),
        post("/api/v1/unlock", &["expect: 100-continue"], "hostname=n1"),
        fleetlock,
        chunked.to_owned(),
        "GET /openapi.json HTTP/1.1\r\nhost: it\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ]
    .map(String::into_bytes)
    .into()
}

/// Sends the bytes in chunks of random lengths, and hangs up.
async fn send_in_chunks(mut stream: TcpStream, bytes: &[u8], random: &mut ByteMutator) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let length = 1 + random.next_below(rest.len().min(200));
        let (chunk, tail) = rest.split_at(length);
        // The server may have closed the connection already.
        if stream.write_all(chunk).await.is_err() {
            return;
        }
        rest = tail;
        tokio::task::yield_now().await;
    }
}

/// Ends every lock that a mutated request took, until the host of the waiter has it.
async fn end_other_locks(rig: &Rig, waiter: &LockRequester) {
    let is_served = || rig.lock.now().holders.contains(waiter);
    while !is_served() {
        let holders = rig.lock.now().holders;
        let hosts = holders.iter().filter_map(|holder| match holder {
            LockRequester::Api { host } => Some(host.clone()),
            LockRequester::FleetLock { .. } => None,
        });
        for host in hosts {
            rig.unlock(&format!("hostname={host}")).await;
        }
        tokio::task::yield_now().await;
    }
}

/// The server answers after any number of strange connections, and whoever waited is served.
#[tokio::test]
async fn strange_connections_end_neither_the_server_nor_a_wait() {
    let mut config = config(LockAuthMode::None);
    config.fleetlock = Some(LOOPBACK.parse().unwrap());
    config.fleetlock_groups = FleetlockGroups::new(["default", "*"]);
    let rig = Rig::start(config).await;
    assert_eq!(rig.lock("hostname=holder").await.status, 200);
    let mut waiting = rig.connect().await;
    let form = post("/api/v1/lock", &[], "hostname=waiter&wait=true");
    waiting.write_all(form.as_bytes()).await.unwrap();
    let is_waiter = |client: &LockRequester| client.to_string() == "api/waiter";
    let state = rig
        .lock
        .until("the waiter waits", |state| {
            state.queue.iter().any(|(_, client)| is_waiter(client))
        })
        .await;
    let waiter = state.queue.iter().find(|(_, client)| is_waiter(client));
    let waiter = waiter.unwrap().1.clone();
    let mut mutator = ByteMutator::new("lock-connections", request_seeds());
    for number in 0..count_of_inputs() * CONNECTIONS_PER_THOUSAND / 1000 {
        let input = mutator.next_input();
        let stream = match rig.fleetlock.filter(|_| number % 3 == 0) {
            Some(address) => TcpStream::connect(address).await.unwrap(),
            None => rig.connect().await,
        };
        within("a connection", send_in_chunks(stream, &input, &mut mutator)).await;
    }
    within("the waiter's turn", end_other_locks(&rig, &waiter)).await;
    assert_eq!(super::rig::answer(&mut waiting).await.status, 200);
    assert_eq!(rig.unlock("hostname=waiter").await.status, 200);
    assert_eq!(rig.lock("hostname=last").await.status, 200);
}
