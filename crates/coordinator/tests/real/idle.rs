//! A coordinator with nothing to do. Source: specification §9.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Cluster, Machine, Setting};

#[tokio::test]
async fn an_idle_coordinator_watches_its_node_and_the_policies_and_asks_nothing_else() {
    let cluster = Cluster::new().await;
    let machine = cluster
        .machine(Setting::flags(["--listen=127.0.0.1:0"]))
        .await;
    let address = address(&machine).await;
    until_ready(&address).await;
    // The only wait of this suite without an event to wait for: it takes time to see that no
    // request is sent.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let asked = cluster.asked().await;
    let asked: Vec<String> = asked
        .iter()
        .map(|entry| format!("{} {} {}", entry.stage, entry.verb, entry.uri))
        .collect();
    let (watches, others): (Vec<&String>, Vec<&String>) =
        asked.iter().partition(|entry| entry.contains(" watch "));
    let ended = |watch: &str| {
        let end = watch.replace("ResponseStarted", "ResponseComplete");
        watches.iter().any(|other| **other == end)
    };
    let open = watches.iter().filter(|watch| !ended(watch.as_str()));
    let open: Vec<&String> = open.copied().collect();
    assert_eq!(open.len(), 2, "{asked:#?}");
    for what in [machine.name(), "/rebootpolicies?"] {
        assert!(open.iter().any(|watch| watch.contains(what)), "{open:#?}");
    }
    // At the start: one read, to report a missing Node at once; one request for the own account, to
    // report if the policies do not know it; one list before each watch; and one list of the
    // group's Leases, for a Lease held in our name by a run that is gone. The first coordinator of
    // a group creates them.
    assert!(others.len() <= 6, "{others:#?}");
    let (status, _) = get(&address, "/healthz").await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn metrics_show_the_phase_and_what_blocks_it() {
    let cluster = Cluster::new().await;
    let machine = cluster
        .machine(Setting::flags(["--listen=127.0.0.1:0"]))
        .await;
    let address = address(&machine).await;
    until_ready(&address).await;
    cluster.hold_lock().await;
    machine.touch("new kernel");
    machine
        .until_condition("MaintenancePlanned", "False", "LockHeldByOther")
        .await;
    let (status, metrics) = get(&address, "/metrics").await;
    assert_eq!(status, 200);
    for words in ["dogwatch_", "waiting", "api/somebody"] {
        assert!(metrics.contains(words), "no {words} in\n{metrics}");
    }
}

/// The address it listens on, from its log.
async fn address(machine: &Machine) -> String {
    let line = machine.log().until(&["serves /metrics"]).await;
    let (_, after) = line.split_once("address=").expect("the log's field");
    after.split_whitespace().next().expect("a value").to_owned()
}

async fn until_ready(address: &str) {
    let ready = async { while get(address, "/readyz").await.0 != 200 {} };
    tokio::time::timeout(crate::support::PATIENCE, ready)
        .await
        .expect("it is ready in time");
}

async fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it reads");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .await
        .expect("it answers");
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .expect("a status line");
    (status, answer)
}
