//! The exchanges that Zincati's client makes, byte for byte as its HTTP library sends them.

use std::net::SocketAddr;
use std::time::Duration;

use dogwatch_core::fleetlock::FleetlockGroups;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::rig::{Answer, LOOPBACK, Rig, answer, config, raw};
use crate::lock::http::{LockAuthMode, LockProtocol};

async fn rig(change: impl FnOnce(&mut crate::lock::http::LockApiConfig)) -> (Rig, SocketAddr) {
    let mut config = config(LockAuthMode::None);
    config.fleetlock = Some(LOOPBACK.parse().unwrap());
    config.fleetlock_groups = FleetlockGroups::new(["default", "*"]);
    change(&mut config);
    let rig = Rig::start(config).await;
    let address = rig.fleetlock.unwrap();
    (rig, address)
}

/// `serde_json::to_string_pretty` of its identity.
fn identity(id: &str, group: &str) -> String {
    format!(
        "{{\n  \"client_params\": {{\n    \"id\": \"{id}\",\n    \"group\": \"{group}\"\n  }}\n}}"
    )
}

fn request(path: &str, header: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\n{header}accept: */*\r\nhost: it\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

const PROTOCOL: &str = "fleet-lock-protocol: true\r\n";

async fn says(address: SocketAddr, path: &str, body: &str) -> Answer {
    raw(address, request(path, PROTOCOL, body)).await
}

/// Zincati reads these two fields of any error.
fn kind(answer: &Answer) -> String {
    let object: Value = serde_json::from_str(&answer.body).unwrap();
    assert!(!object["value"].as_str().unwrap().is_empty());
    assert!(answer.is_one_line(), "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    object["kind"].as_str().unwrap().to_owned()
}

const ID: &str = "e0f3745b108f471cbd4883c6fbed8cdd";

#[tokio::test]
async fn zincatis_four_exchanges_go_as_it_expects() {
    // With a drain no request waits, so that "full" is answered at once.
    let (_rig, address) = rig(|config| config.fleetlock_drain = true).await;
    let ours = identity(ID, "mock-workers");
    let other = identity("978a225b3d7b40e9acd7ce9b62f68444", "mock-workers");
    assert_eq!(says(address, "/v1/steady-state", &ours).await.status, 200);
    assert_eq!(says(address, "/v1/pre-reboot", &ours).await.status, 200);
    assert_eq!(says(address, "/v1/pre-reboot", &ours).await.status, 200);
    let full = says(address, "/v1/pre-reboot", &other).await;
    assert_eq!(
        (full.status, kind(&full).as_str()),
        (409, "failed_lock_semaphore_full")
    );
    let elsewhere = identity(ID, "Mock-Workers");
    assert_eq!(
        says(address, "/v1/pre-reboot", &elsewhere).await.status,
        200
    );
    // A client that holds nothing is in steady state, whoever else holds the lock.
    assert_eq!(says(address, "/v1/steady-state", &other).await.status, 200);
    let full = says(address, "/v1/pre-reboot", &other).await;
    assert_eq!(full.status, 409);
    assert_eq!(says(address, "/v1/steady-state", &ours).await.status, 200);
    assert_eq!(says(address, "/v1/pre-reboot", &other).await.status, 200);
    let refused = says(address, "/v1/steady-state", &identity("refused", "default")).await;
    assert_eq!(
        (refused.status, kind(&refused).as_str()),
        (409, "failed_unlock")
    );
}

#[tokio::test]
async fn a_request_is_held_open_until_the_lock_is_free_but_not_until_its_client_gives_up() {
    let (rig, address) = rig(|_| {}).await;
    says(address, "/v1/pre-reboot", &identity("a", "default")).await;
    let mut waiter = TcpStream::connect(address).await.unwrap();
    let asks = request("/v1/pre-reboot", PROTOCOL, &identity("b", "default"));
    waiter.write_all(asks.as_bytes()).await.unwrap();
    rig.lock
        .until("waits", |state| state.queue.len() == 1)
        .await;
    says(address, "/v1/steady-state", &identity("a", "default")).await;
    assert_eq!(answer(&mut waiter).await.status, 200);

    let (short, address) =
        self::rig(|config| config.limits.fleetlock_wait = Duration::from_millis(50)).await;
    says(address, "/v1/pre-reboot", &identity("a", "default")).await;
    let full = says(address, "/v1/pre-reboot", &identity("b", "default")).await;
    assert_eq!(
        (full.status, kind(&full).as_str()),
        (409, "failed_lock_semaphore_full")
    );
    assert!(short.lock.now().queue.is_empty());
    assert_eq!(
        short
            .counts
            .of(LockProtocol::FleetLock, "failed_lock_semaphore_full"),
        1
    );
}

const BODIES: [&str; 7] = [
    "",
    "{",
    "[]",
    "\"\"",
    "{}",
    r#"{"client_params":{}}"#,
    r#"{"client_params":{"id":"a","id":"b","group":"default"}}"#,
];

#[tokio::test]
async fn what_is_no_fleetlock_request_changes_nothing_and_has_a_kind() {
    let (rig, address) = rig(|_| {}).await;
    let good = identity(ID, "default");
    let long = identity(&"a".repeat(254), "default");
    let huge = identity(&"a".repeat(70_000), "default");
    let cases = [
        (request("/v1/pre-reboot", "", &good), 400, "missing_header"),
        (
            request("/v1/pre-reboot", "fleet-lock-protocol: TRUE\r\n", &good),
            400,
            "missing_header",
        ),
        (
            request("/v1/pre-reboot", &PROTOCOL.repeat(2), &good),
            400,
            "missing_header",
        ),
        (
            request(
                "/v1/pre-reboot",
                &format!("{PROTOCOL}origin: https://example.org\r\n"),
                &good,
            ),
            403,
            "forbidden",
        ),
        (request("/v1/lock", PROTOCOL, &good), 404, "not_found"),
        (
            request("/v1/pre-reboot", PROTOCOL, &good).replace("POST", "GET"),
            405,
            "method_not_allowed",
        ),
        (
            request("/v1/pre-reboot", PROTOCOL, &huge),
            413,
            "body_too_large",
        ),
    ];
    let bodies = [
        identity("", "default"),
        identity("a", ""),
        identity("a b", "default"),
        identity("\u{e9}", "default"),
        identity("a", "de/fault"),
        identity("a", "de fault"),
        long,
    ]
    .into_iter()
    .chain(BODIES.map(str::to_owned));
    let bodies = bodies.map(|body| {
        let request = request("/v1/steady-state", PROTOCOL, &body);
        (request, 400, "malformed_request")
    });
    for (request, status, word) in cases.into_iter().chain(bodies) {
        let answer = raw(address, &request).await;
        assert_eq!(
            (answer.status, kind(&answer).as_str()),
            (status, word),
            "{request}"
        );
    }
    assert_eq!(*rig.lock.asked.lock().unwrap(), []);
}

/// FleetLock clients choose group names freely, and each would be a Lease for ever.
#[tokio::test]
async fn a_group_that_nobody_named_never_reaches_the_lock() {
    let named = FleetlockGroups::new(["storage"]);
    let (rig, address) = rig(|config| config.fleetlock_groups = named).await;
    for group in ["g1", "g2", "Storage", "default", "control-plane"] {
        let refused = says(address, "/v1/pre-reboot", &identity(ID, group)).await;
        let found = (refused.status, kind(&refused));
        assert_eq!(found, (403, "forbidden".to_owned()), "{group}");
        assert!(refused.body.contains("--fleetlock-groups"), "{refused:?}");
    }
    assert_eq!(*rig.lock.asked.lock().unwrap(), []);
    let ours = identity(ID, "storage");
    assert_eq!(says(address, "/v1/pre-reboot", &ours).await.status, 200);
    // A lock that was taken before the flag was changed is still released.
    let before = identity(ID, "default");
    assert_eq!(says(address, "/v1/steady-state", &before).await.status, 200);
}

#[tokio::test]
async fn any_group_does_not_mean_those_of_nodes() {
    let any = FleetlockGroups::new(["*"]);
    let (_rig, address) = rig(|config| config.fleetlock_groups = any).await;
    assert_eq!(
        says(address, "/v1/pre-reboot", &identity(ID, "g1"))
            .await
            .status,
        200
    );
    for group in ["default", "control-plane"] {
        let refused = says(address, "/v1/pre-reboot", &identity(ID, group)).await;
        assert_eq!(
            (refused.status, kind(&refused).as_str()),
            (403, "forbidden")
        );
    }
}

#[tokio::test]
async fn fleetlock_leaves_places_to_those_who_say_who_they_are() {
    let (rig, address) = rig(|config| {
        config.limits.waiters = 4;
        config.limits.fleetlock_waiters = 2;
    })
    .await;
    says(address, "/v1/pre-reboot", &identity("holder", "default")).await;
    let mut waiting = Vec::new();
    for id in ["a", "b"] {
        let mut waiter = TcpStream::connect(address).await.unwrap();
        let asks = request("/v1/pre-reboot", PROTOCOL, &identity(id, "default"));
        waiter.write_all(asks.as_bytes()).await.unwrap();
        waiting.push(waiter);
    }
    rig.lock
        .until("both wait", |state| state.queue.len() == 2)
        .await;
    let full = says(address, "/v1/pre-reboot", &identity("c", "default")).await;
    assert_eq!(
        (full.status, kind(&full).as_str()),
        (429, "too_many_waiters")
    );
    assert_eq!(rig.lock("hostname=n1").await.status, 200);
}

#[tokio::test]
async fn other_members_and_other_types_are_no_matter() {
    let (_rig, address) = rig(|_| {}).await;
    let body = r#"{"client_params":{"id":"a","group":"default","more":1},"and":"more"}"#;
    let header = "Fleet-Lock-Protocol: true\r\ncontent-type: application/x-www-form-urlencoded\r\n";
    let answer = raw(address, request("/v1/pre-reboot", header, body)).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn each_protocol_is_on_its_own_listener() {
    let (rig, address) = rig(|_| {}).await;
    assert_eq!(
        says(rig.address, "/v1/pre-reboot", &identity("a", "default"))
            .await
            .status,
        404
    );
    let lock = super::rig::post("/api/v1/lock", &[PROTOCOL.trim_end()], "hostname=n1");
    assert_eq!(raw(address, lock).await.status, 404);
}
