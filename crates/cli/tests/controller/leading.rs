//! Exactly one replica leads. `core::leader` tests with its own clock how soon another one takes
//! over, and the benchmark measures it; a busy machine may be slow here.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Controller, USERS, eventually, get, plane};

const LEADS: &str = "became the leader";
const NO_MORE: &str = "lost the leadership";

#[tokio::test]
async fn another_replica_takes_over_after_a_kill_and_when_the_leader_ends() {
    let plane = plane().await;
    let mut first = Controller::as_user(&plane, USERS[0]);
    first.until(LEADS, 1).await;
    let second = Controller::as_user(&plane, USERS[1]);
    second.until("in sync", 1).await;
    assert_eq!(second.said(LEADS), 0);

    let killed = Instant::now();
    first.signal(Signal::KILL);
    second.until(LEADS, 1).await;
    eprintln!("took over after kill -9: {:?}", killed.elapsed());

    let mut third = Controller::as_user(&plane, USERS[0]);
    third.until("in sync", 1).await;
    let ended = Instant::now();
    second.signal(Signal::TERM);
    third.until(LEADS, 1).await;
    eprintln!("took over after SIGTERM: {:?}", ended.elapsed());
    let mut second = second;
    assert!(second.ended().await.success());
    assert!(!first.ended().await.success());
    third.signal(Signal::TERM);
    assert!(third.ended().await.success());
    let lease = get(
        &plane,
        &["lease", "controller.dogwatch.dev", "-n", "dogwatch"],
    )
    .await;
    assert_eq!(lease["spec"]["holderIdentity"], json!(null), "{lease}");
}

#[tokio::test]
async fn a_leader_that_slept_past_its_lease_writes_nothing_when_it_wakes() {
    let plane = plane().await;
    let first = Controller::as_user(&plane, USERS[0]);
    first.until(LEADS, 1).await;
    let second = Controller::as_user(&plane, USERS[1]);
    second.until("in sync", 1).await;
    first.signal(Signal::STOP);
    second.until(LEADS, 1).await;
    // The first leader would have written a status for this policy too.
    let policy = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
        "metadata": { "name": "workers" }, "spec": {} });
    let apply = ["apply", "-f", "-"];
    plane
        .run_kubectl(&apply, &policy.to_string())
        .await
        .unwrap();
    eventually(|| async {
        let object = get(&plane, &["rebootpolicy", "workers"]).await;
        let conditions = object["status"]["conditions"]
            .as_array()
            .map_or(0, Vec::len);
        (conditions == 3).then_some(()).ok_or(object.to_string())
    })
    .await;
    let mark = plane.audit_mark().await.unwrap();
    first.signal(Signal::CONT);
    first.until(NO_MORE, 1).await;
    // The leader goes on: after two more renewals, the other replica has had time for a mistake.
    let renewed = || async {
        let entries = plane.audit_entries_since(mark).await.unwrap();
        let renewals = entries.iter().filter(|entry| {
            entry.user == USERS[1] && entry.verb == "patch" && entry.resource == "leases"
        });
        let renewals = renewals.count();
        (renewals >= 3)
            .then_some(entries.clone())
            .ok_or(format!("{renewals} renewals"))
    };
    let entries = eventually(renewed).await;
    let wrote: Vec<_> = entries
        .iter()
        .filter(|entry| entry.user == USERS[0] && entry.resource != "leases")
        .filter(|entry| !["get", "list", "watch"].contains(&entry.verb.as_str()))
        .collect();
    assert!(wrote.is_empty(), "{wrote:#?}");
    let leases = entries.iter().filter(|entry| {
        entry.user == USERS[0] && entry.verb == "patch" && entry.resource == "leases"
    });
    for patch in leases {
        assert_eq!(
            patch.code, 409,
            "what it tried before it knew was refused: {patch:?}"
        );
    }
    assert_eq!(first.said(LEADS), 1);
}

#[tokio::test]
async fn a_leader_steps_down_while_the_api_server_is_away_and_leads_again_after() {
    let plane = plane().await;
    let only = Controller::as_user(&plane, USERS[0]);
    only.until(LEADS, 1).await;
    plane.stop_api();
    only.until(NO_MORE, 1).await;
    plane.start_api().await.unwrap();
    only.until(LEADS, 2).await;
}

#[tokio::test]
async fn a_lease_that_somebody_deletes_or_takes_ends_the_term_and_is_waited_out() {
    let plane = plane().await;
    let only = Controller::as_user(&plane, USERS[0]);
    only.until(LEADS, 1).await;
    let lease = ["lease", "controller.dogwatch.dev", "-n", "dogwatch"];
    let stolen = [
        &["patch"],
        lease.as_slice(),
        &[
            "--type=merge",
            "-p",
            r#"{"spec":{"holderIdentity":"somebody"}}"#,
        ],
    ]
    .concat();
    let moment = Instant::now();
    plane.run_kubectl(&stolen, "").await.unwrap();
    assert_eq!(only.field(NO_MORE, "leader").await, "somebody");
    // The thief's record never changes, so the replica waits until it expires.
    only.until(LEADS, 2).await;
    assert!(
        moment.elapsed() > Duration::from_secs(15),
        "{:?}",
        moment.elapsed()
    );
    let moment = Instant::now();
    let deleted = [&["delete"], lease.as_slice()].concat();
    plane.run_kubectl(&deleted, "").await.unwrap();
    only.until(NO_MORE, 2).await;
    only.until(LEADS, 3).await;
    assert!(
        moment.elapsed() > Duration::from_secs(15),
        "{:?}",
        moment.elapsed()
    );
}
