//! Refuses Leases that are larger than a lock needs: with one coordinator's token, they could stop
//! all coordinators and controllers, which read all Leases. Source: specification §6 ("Leases").

use std::time::Duration;

use dogwatch_core::name::NodeName;
use dogwatch_k8s::lock::RemediationLeaseClient;
use dogwatch_testbed::ControlPlane;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Before, LEASES, SLOT, TIME, apply, bid, create, each, free, lease, merge, metadata};
use crate::admission::Who::{First, Person, Second};
use crate::admission::{Call, Stage};
use crate::support::PATIENCE;
use crate::support::api::{APPLY, JSON};

const ANNOTATIONS: &str = "carries no annotation but";
const LABELS: &str = "carries no label but";
const LEAVES: &str = "only the one who leaves";

fn annotations(key: &str, length: usize) -> Value {
    json!({ "annotations": { key: "x".repeat(length) } })
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table of attempts")]
async fn a_lease_carries_nothing_but_what_a_lock_needs_and_little_of_that() {
    let made = |metadata: Value| Call::new("POST", LEASES, JSON, json!({ "metadata": metadata }));
    let group = json!({ "dogwatch.dev/group": "default" });
    let junk = json!({ "name": SLOT, "labels": group, "annotations": { "a": "b" } });
    let mut fat = bid("node/first");
    fat.body["metadata"]["annotations"]["dogwatch.dev/holder"] = json!("x".repeat(9_000));
    let holder = |length| metadata(&annotations("dogwatch.dev/holder", length));
    each(vec![
        (
            "junk",
            Before::Free,
            First,
            metadata(&annotations("a", 250_000)),
            Err(ANNOTATIONS),
        ),
        (
            "junk on another's",
            Before::Held,
            Second,
            metadata(&annotations("a", 9)),
            Err(ANNOTATIONS),
        ),
        (
            "a person's junk",
            Before::Free,
            Person,
            metadata(&annotations("a", 9)),
            Err(ANNOTATIONS),
        ),
        (
            "made with junk",
            Before::Missing,
            First,
            made(junk),
            Err(ANNOTATIONS),
        ),
        (
            "a fat record with the bid",
            Before::Free,
            First,
            fat,
            Err(ANNOTATIONS),
        ),
        (
            "a fat record",
            Before::Held,
            First,
            holder(9_000),
            Err(ANNOTATIONS),
        ),
        ("a record", Before::Held, First, holder(8_000), Ok(())),
        (
            "a fat call",
            Before::Held,
            First,
            free(&json!({ "dogwatch.dev/next": "x".repeat(2_000) })),
            Err(ANNOTATIONS),
        ),
        (
            "no number",
            Before::Held,
            First,
            free(&json!({ "dogwatch.dev/given-back": "x" })),
            Err(ANNOTATIONS),
        ),
        (
            "a label",
            Before::Free,
            First,
            metadata(&json!({ "labels": { "a": "b" } })),
            Err(LABELS),
        ),
        (
            "another field",
            Before::Held,
            First,
            merge(json!({ "spec": { "renewTime": TIME } })),
            Err("nothing is used but"),
        ),
    ])
    .await;
}

/// Content that was there before the policies stays, and blocks nobody from the lock.
#[tokio::test]
async fn what_an_older_version_left_on_a_lease_keeps_nobody_from_it() {
    let stage = Stage::set().await;
    let api = &stage.cluster.api;
    api.delete(LEASES).await;
    let mut old = lease(SLOT, "node/first");
    old["metadata"]["labels"] = json!({ "dogwatch.dev/group": "default", "a": "b" });
    old["metadata"]["annotations"]["a"] = json!("b");
    old["spec"]["leaseTransitions"] = json!(1);
    api.create(LEASES, &old).await;
    let taken = apply("node/first", "fieldManager=node/first&force=true");
    for (what, who, call) in [
        ("its next run", First, taken),
        (
            "a release",
            First,
            free(&json!({ "dogwatch.dev/next": "node/second" })),
        ),
        ("a bid", Second, bid("node/second")),
    ] {
        stage.attempt(what, who, &call, Ok(())).await;
    }
}

#[tokio::test]
async fn a_slot_has_one_name() {
    let rows = ["00", "01", "1000", "-1", "0x1"].map(|slot| {
        let name = format!("dogwatch-default-{slot}");
        (
            "an odd slot",
            Before::Missing,
            First,
            create(&name, Some("default")),
            Err("dogwatch-default-"),
        )
    });
    each(rows.into()).await;
    each(vec![(
        "the highest slot",
        Before::Missing,
        First,
        create("dogwatch-default-999", Some("default")),
        Ok(()),
    )])
    .await;
}

#[tokio::test]
async fn nobody_makes_all_back_off_by_touching_another_field_of_a_free_lease() {
    let yielded = json!({ "dogwatch.dev/given-back": "9", "dogwatch.dev/next": "node/first" });
    let beside =
        |spec: Value| merge(json!({ "spec": spec, "metadata": { "annotations": yielded } }));
    each(vec![
        (
            "transitions",
            Before::Free,
            Second,
            beside(json!({ "leaseTransitions": 1 })),
            Err(LEAVES),
        ),
        (
            "no spec",
            Before::Free,
            Second,
            beside(Value::Null),
            Err(LEAVES),
        ),
        (
            "clearing leftovers",
            Before::Leftover,
            Second,
            free(&yielded),
            Err(LEAVES),
        ),
        (
            "clearing leftovers",
            Before::Leftover,
            Second,
            free(&json!({ "dogwatch.dev/next": null })),
            Ok(()),
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_lease_does_not_grow_by_the_names_under_which_it_is_written() {
    let stage = Stage::set().await;
    Before::Free.stand(&stage).await;
    let body = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "labels": { "dogwatch.dev/group": "default" } } });
    let mut refused = None;
    for number in 0..40 {
        let path = format!("{LEASES}/{SLOT}?fieldManager=m{number}");
        let call = Call::new("PATCH", path, APPLY, body.clone());
        if let Err(words) = stage.answer(First, &call).await {
            refused = Some(words);
            break;
        }
    }
    let refused = refused.expect("not forty of them");
    assert!(refused.contains("at most 32 names"), "{refused}");
    // A node that wants the lock gets it anyway.
    stage
        .attempt("a bid", First, &bid("node/first"), Ok(()))
        .await;
}

const QUOTA: &str = include_str!("../../../../../../deploy/base/quota.yaml");

async fn made(plane: &ControlPlane, name: &str, holder: Option<&str>) -> Result<String, String> {
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name, "namespace": "dogwatch" }, "spec": { "holderIdentity": holder } });
    let lease = lease.to_string();
    let made = plane.run_kubectl(&["create", "-f", "-"], &lease);
    made.await.map_err(|error| error.to_string())
}

/// The shipped quota, but with another number. The quota's controller runs.
async fn with_a_quota_of_three() -> ControlPlane {
    let builder = ControlPlane::builder().with_controllers(["resourcequota-controller"]);
    let plane = builder
        .start()
        .await
        .expect("the real control plane starts");
    let create = ["create", "-f", "-"];
    let namespace =
        r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dogwatch"}}"#;
    plane
        .run_kubectl(&create, namespace)
        .await
        .expect("a namespace");
    assert!(QUOTA.contains("\"250\""), "{QUOTA}");
    let quota = QUOTA.replace("\"250\"", "\"3\"");
    plane.run_kubectl(&create, &quota).await.expect("a quota");
    // The quota limits nothing until its controller has processed it.
    let wait = [
        "wait",
        "-n",
        "dogwatch",
        "resourcequota/dogwatch-leases",
        "--timeout=120s",
    ];
    let wait = [&wait[..], &["--for=jsonpath={.status.hard}"]].concat();
    plane.run_kubectl(&wait, "").await.expect("it is taken in");
    plane
}

#[tokio::test]
async fn nobody_makes_thousands_of_leases_and_free_ones_keep_no_machine_from_being_fenced() {
    let plane = with_a_quota_of_three().await;
    let client = dogwatch_k8s::connect::connect_by_kubeconfig(plane.admin_kubeconfig())
        .await
        .expect("a client");
    let remedy = RemediationLeaseClient::new(client, "dogwatch");
    let take = async |name: &str| {
        let node = NodeName::new(name).expect("a name");
        let subject = format!("node/{name}");
        remedy
            .take_lease(&node, false, None, &subject, Timestamp::UNIX_EPOCH)
            .await
    };
    for (name, holder) in [
        ("dogwatch-x-0", None),
        ("dogwatch-x-1", None),
        ("dogwatch-x-2", Some("node/a")),
    ] {
        made(&plane, name, holder).await.expect("within the quota");
    }
    let refused = made(&plane, "dogwatch-x-3", None)
        .await
        .expect_err("beyond the quota");
    assert!(
        refused.contains("exceeded quota: dogwatch-leases"),
        "{refused}"
    );
    // The quota's controller has to count the deletion first; until then the creation is refused
    // and retried.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while let Err(error) = take("n1").await {
        assert!(error.is_over_quota(), "{error:?}");
        assert!(tokio::time::Instant::now() < deadline, "{error:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let list = ["get", "leases", "-n", "dogwatch", "-o", "name"];
    let left = plane.run_kubectl(&list, "").await.expect("a list");
    assert!(left.contains("dogwatch-remedy-n1"), "{left}");
    assert!(left.contains("dogwatch-x-2"), "what is held stays: {left}");
    assert!(!left.contains("dogwatch-x-0"), "{left}");
}
