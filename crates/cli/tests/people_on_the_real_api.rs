//! What a person types, against the real API server: writes that succeed or fail by the API
//! server's rules.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

use std::process::{Command, Output, Stdio};

use dogwatch_core::lock::{HolderId, LockRecord};
use dogwatch_core::name::{GroupName, NodeName, RunId};
use dogwatch_k8s::lock::{BidOutcome, LockClient};
use dogwatch_testbed::{ControlPlane, shared_control_plane};
use serde_json::{Value, json};

fn dogwatch(control_plane: &ControlPlane, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dogwatch"))
        .env_clear()
        .env("KUBECONFIG", control_plane.admin_kubeconfig())
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn ended(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

async fn kubectl(control_plane: &ControlPlane, args: &[&str], input: &Value) -> Value {
    let answer = control_plane
        .run_kubectl(args, &input.to_string())
        .await
        .unwrap();
    serde_json::from_str(&answer).unwrap_or(Value::Null)
}

async fn make(control_plane: &ControlPlane, object: &Value) -> Value {
    kubectl(control_plane, &["create", "-f", "-", "-o", "json"], object).await
}

async fn node(control_plane: &ControlPlane, name: &str, annotations: Value) -> Value {
    let node = json!({ "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "annotations": annotations, "labels": { "of": name } } });
    make(control_plane, &node).await
}

/// A namespace of Dogwatch's own for one test.
async fn namespace(control_plane: &ControlPlane, name: &str) {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    make(control_plane, &namespace).await;
}

async fn kinds(control_plane: &ControlPlane) {
    let crd = dogwatch_api::reboot_policy::policy_crd();
    let kinds = ["rebootpolicies.dogwatch.dev"];
    control_plane
        .install_manifests(&crd.to_string(), &kinds)
        .await
        .unwrap();
}

fn record(node: &str, uid: &str) -> LockRecord {
    LockRecord {
        node: NodeName::new(node).ok(),
        node_uid: Some(uid.into()),
        boot_id: None,
        group: GroupName::default_group(),
        max: 1,
        since: jiff::Timestamp::UNIX_EPOCH,
        runs: vec![RunId::new("coordinator/x").unwrap()],
    }
}

/// A lock client that takes locks as this node's coordinator does.
async fn hand(control_plane: &ControlPlane, namespace: &str, node: &str) -> LockClient {
    let client =
        dogwatch_k8s::connect::connect_by_kubeconfig(control_plane.admin_kubeconfig()).await;
    let client = client.unwrap();
    let holder = HolderId::for_node(&NodeName::new(node).unwrap());
    LockClient::new(client, namespace, holder)
}

async fn bid(hand: &LockClient, record: &LockRecord) -> bool {
    let group = GroupName::default_group();
    hand.ensure_leases(&group, 1, &[]).await.unwrap();
    let lease = hand.list_slots(&group).await.unwrap().remove(0);
    matches!(hand.bid_for_lease(&lease, record).await, BidOutcome::Won(_))
}

fn rebooting() -> Value {
    json!({
        "phase": "rebooting", "run": "coordinator/x", "since": "2026-01-01T00:00:00Z",
        "planned": "2026-01-01T00:00:00Z", "trigger": { "source": "command" }, "bootId": "b",
        "cordonedByUs": true, "lease": "dogwatch-default-0",
    })
}

#[tokio::test]
async fn a_forced_unlock_is_told_by_events_and_leaves_a_lock_that_the_next_one_can_take() {
    let control_plane = shared_control_plane().await;
    namespace(control_plane, "forced").await;
    let reboot = rebooting();
    let dead = node(
        control_plane,
        "forced-1",
        json!({ "dogwatch.dev/reboot": reboot.to_string() }),
    )
    .await;
    let uid = dead["metadata"]["uid"].as_str().unwrap();
    let first = hand(control_plane, "forced", "forced-1").await;
    assert!(bid(&first, &record("forced-1", uid)).await);
    let second = hand(control_plane, "forced", "forced-2").await;
    assert!(!bid(&second, &record("forced-2", "u")).await, "it is held");

    let unlock = |more: &[&str]| {
        let args = [&["-n", "forced", "unlock", "forced-1"][..], more].concat();
        ended(&dogwatch(control_plane, &args))
    };
    let (code, text, errors) = unlock(&[]);
    assert_eq!(code, 1, "{text} {errors}");
    assert!(text.contains("Node forced-1 is rebooting"), "{text}");
    let (code, text, errors) = unlock(&[
        "--force",
        "--reason",
        "scrapped",
        "--requester",
        "ann",
        "--yes",
    ]);
    assert_eq!(code, 0, "{text} {errors}");

    assert!(
        bid(&second, &record("forced-2", "u")).await,
        "no field of the old holder is in the way"
    );
    for (namespace, kind) in [("forced", "Lease"), ("default", "Node")] {
        let events = kubectl(
            control_plane,
            &["get", "events", "-n", namespace, "-o", "json"],
            &Value::Null,
        )
        .await;
        let events = events["items"].as_array().unwrap();
        let told: Vec<&Value> = events
            .iter()
            .filter(|event| {
                event["reason"] == "LockBrokenByPerson" && event["involvedObject"]["kind"] == kind
            })
            .collect();
        assert_eq!(told.len(), 1, "{kind}: {events:#?}");
        let message = told[0]["message"].as_str().unwrap();
        assert!(message.starts_with("ann (as user "), "{message}");
        assert!(
            message.ends_with("held by node/forced-1: forced: scrapped"),
            "{message}"
        );
        assert_eq!(told[0]["type"], "Warning");
    }
}

#[tokio::test]
async fn a_lock_of_a_node_that_is_gone_is_freed_without_force_and_a_free_one_is_left_alone() {
    let control_plane = shared_control_plane().await;
    namespace(control_plane, "proved").await;
    let gone = hand(control_plane, "proved", "proved-gone").await;
    assert!(bid(&gone, &record("proved-gone", "u")).await);
    let unlock = ["-n", "proved", "unlock", "dogwatch-default-0"];
    let (code, text, errors) = ended(&dogwatch(control_plane, &unlock));
    assert_eq!(code, 0, "{text} {errors}");
    assert!(
        text.contains("Node proved-gone does not exist (two reads)"),
        "{text}"
    );
    let (code, text, _) = ended(&dogwatch(control_plane, &unlock));
    assert_eq!(
        (code, text.as_str()),
        (0, "lease/dogwatch-default-0 is free already\n")
    );
}

#[tokio::test]
async fn a_pause_comes_and_goes_on_the_condition_that_the_policy_is_as_it_was_judged() {
    // Policies apply to the whole cluster, so the shared control plane is not used.
    let control_plane = &ControlPlane::start().await.unwrap();
    let (code, _, errors) = ended(&dogwatch(control_plane, &["pause", "--reason", "r"]));
    assert_eq!(code, 3, "{errors}");
    kinds(control_plane).await;
    let policy = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
        "metadata": { "name": "workers" },
        "spec": { "nodeSelector": { "matchLabels": { "of": "paused-1" } }, "maxUnavailable": "10%" } });
    make(control_plane, &policy).await;
    node(control_plane, "paused-1", json!({})).await;
    node(control_plane, "paused-2", json!({})).await;
    let args = ["pause", "--all", "--reason", "holidays", "--until", "2h"];
    let (code, text, errors) = ended(&dogwatch(control_plane, &args));
    assert_eq!(code, 0, "{text} {errors}");
    let get = ["get", "rebootpolicies", "-o", "json"];
    let policies = kubectl(control_plane, &get, &Value::Null).await;
    let policies = policies["items"].as_array().unwrap();
    assert_eq!(policies.len(), 2, "{policies:#?}");
    for policy in policies {
        assert_eq!(policy["spec"]["paused"]["reason"], "holidays", "{policy:#}");
        assert!(policy["spec"]["paused"]["until"].is_string(), "{policy:#}");
    }
    let (_, text, _) = ended(&dogwatch(control_plane, &["status", "policies"]));
    assert!(text.contains("holidays (ends at "), "{text}");
    let (code, text, errors) = ended(&dogwatch(control_plane, &["resume", "--all"]));
    assert_eq!(code, 0, "{text} {errors}");
    let policies = kubectl(control_plane, &get, &Value::Null).await;
    let policies = policies["items"].as_array().unwrap();
    assert_eq!(
        policies.len(),
        1,
        "the one that the pause made is gone: {policies:#?}"
    );
    assert_eq!(policies[0]["spec"], policy["spec"]);
}

#[tokio::test]
async fn an_abort_is_written_and_a_request_taken_back() {
    let control_plane = shared_control_plane().await;
    let request = json!({ "reason": "kernel", "requester": "ann" }).to_string();
    node(
        control_plane,
        "abort-1",
        json!({ "dogwatch.dev/reboot-requested": request }),
    )
    .await;
    let (code, text, errors) = ended(&dogwatch(control_plane, &["abort", "abort-1"]));
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("the request by ann was removed"), "{text}");
    let reboot = json!({
        "phase": "waiting", "run": "coordinator/x", "since": "2026-01-01T00:00:00Z",
        "planned": "2026-01-01T00:00:00Z", "trigger": { "source": "command" }, "bootId": "b", "cordonedByUs": false,
    });
    node(
        control_plane,
        "abort-2",
        json!({ "dogwatch.dev/reboot": reboot.to_string() }),
    )
    .await;
    let args = [
        "abort",
        "abort-2",
        "--reason",
        "no",
        "--requester",
        "ann",
        "--no-wait",
    ];
    let (code, _, errors) = ended(&dogwatch(control_plane, &args));
    assert_eq!(code, 0, "{errors}");
    let seen = kubectl(
        control_plane,
        &["get", "node", "abort-2", "-o", "json"],
        &Value::Null,
    )
    .await;
    let text = seen["metadata"]["annotations"]["dogwatch.dev/abort-requested"]
        .as_str()
        .unwrap();
    let asked: Value = serde_json::from_str(text).unwrap();
    assert_eq!(asked, json!({ "reason": "no", "requester": "ann" }));
}

/// Creates a pod, and reports it as ready in place of a kubelet.
async fn running_pod(control_plane: &ControlPlane, pod: &Value) {
    make(control_plane, pod).await;
    let text = |field: &str| pod["metadata"][field].as_str().unwrap();
    let status = json!({ "status": { "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "True" }] } })
    .to_string();
    let patch = [
        "patch",
        "pod",
        text("name"),
        "-n",
        text("namespace"),
        "--subresource=status",
        "--type=merge",
        "-p",
        &status,
    ];
    control_plane.run_kubectl(&patch, "").await.unwrap();
}

/// Creates a budget for the only pod of this app, and waits until its controller has counted it.
async fn counted_budget(control_plane: &ControlPlane, namespace: &str, app: &str) {
    let budget = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": app, "namespace": namespace },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": app } } } });
    make(control_plane, &budget).await;
    let counted = [
        "wait",
        "--for=jsonpath={.status.currentHealthy}=1",
        "--timeout=180s",
        "-n",
        namespace,
        &format!("pdb/{app}"),
    ];
    control_plane.run_kubectl(&counted, "").await.unwrap();
}

#[tokio::test]
async fn a_check_finds_the_budget_that_the_real_controller_counted() {
    let control_plane = shared_control_plane().await;
    namespace(control_plane, "checked").await;
    namespace(control_plane, "checked-shop").await;
    node(control_plane, "check-1", json!({})).await;
    let labels = json!({ "app": "db" });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "db-0", "namespace": "checked-shop", "labels": labels },
        "spec": { "nodeName": "check-1", "containers": [{ "name": "c", "image": "i" }],
            "volumes": [{ "name": "scratch", "emptyDir": {} }] } });
    running_pod(control_plane, &pod).await;
    counted_budget(control_plane, "checked-shop", "db").await;
    let (code, text, errors) = ended(&dogwatch(
        control_plane,
        &["-n", "checked", "check", "check-1"],
    ));
    assert_eq!(code, 6, "{errors}");
    for line in [
        "PodDisruptionBudget checked-shop/db: allows no disruption (1 healthy of 1 desired); pods on this node: checked-shop/db-0",
        "warns    pod checked-shop/db-0: the data in its emptyDir scratch is lost",
        // Blocks, or warns when other tests' coordinators have written on their nodes.
        "coordinator: no DaemonSet dogwatch-coordinator",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// Rules about labels of pods and of a namespace, an order, and a mark of another tool.
fn drain_rules() -> Value {
    let app = |app: &str| json!({ "selector": { "matchLabels": { "app": app } } });
    let team = json!({ "namespaceSelector": { "matchLabels": { "team": "monitoring" } } });
    json!({
        "honor": ["karpenter.sh/do-not-disrupt"],
        "rules": [
            { "pods": team, "do": "Skip" },
            { "pods": app("train"), "do": "WaitCompleted", "timeout": "6h" },
            { "pods": app("cache"), "do": "Delete" },
            { "pods": app("single"), "do": "RollFirst", "timeout": "10m" },
            { "pods": app("db"), "do": "Evict", "order": 10 },
        ],
    })
}

/// A pod of each rule, one that no rule is about, and one with the mark.
async fn pods_for_the_rules(control_plane: &ControlPlane) {
    for (namespace, app) in [
        ("watch", "train"),
        ("shop", "train"),
        ("shop", "cache"),
        ("shop", "single"),
        ("shop", "db"),
        ("shop", "web"),
        ("shop", "marked"),
    ] {
        let annotations = match app {
            "marked" => json!({ "karpenter.sh/do-not-disrupt": "true" }),
            _ => json!({}),
        };
        let pod = json!({ "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": format!("{app}-0"), "namespace": namespace,
                "labels": { "app": app }, "annotations": annotations },
            "spec": { "nodeName": "ruled-1", "containers": [{ "name": "c", "image": "i" }] } });
        running_pod(control_plane, &pod).await;
    }
    for app in ["db", "cache"] {
        counted_budget(control_plane, "shop", app).await;
    }
}

#[tokio::test]
async fn a_check_prints_what_the_drain_would_do_with_each_pod_and_by_which_rule() {
    // Policies apply to the whole cluster, so the shared control plane is not used.
    let control_plane = &ControlPlane::start().await.unwrap();
    kinds(control_plane).await;
    for name in ["dogwatch", "shop", "watch"] {
        namespace(control_plane, name).await;
    }
    let label = ["label", "namespace", "watch", "team=monitoring"];
    control_plane.run_kubectl(&label, "").await.unwrap();
    let policy = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
        "metadata": { "name": "ruled" }, "spec": { "drain": drain_rules() } });
    make(control_plane, &policy).await;
    node(control_plane, "ruled-1", json!({})).await;
    pods_for_the_rules(control_plane).await;
    let (code, text, errors) = ended(&dogwatch(control_plane, &["check", "ruled-1"]));
    assert_eq!(code, 6, "{text} {errors}");
    let (_, plan) = text.split_once("  plan of the drain:\n").unwrap();
    let plan: Vec<&str> = plan.lines().map(str::trim).collect();
    assert_eq!(
        plan,
        [
            "order 0: delete: shop/cache-0 (drain.rules[2])",
            "order 0: wait until the drain's deadline: shop/marked-0 (annotation karpenter.sh/do-not-disrupt)",
            "order 0: evict: shop/single-0 (drain.rules[3]; evicted without a rollout: it has no controller; only a Deployment has a replacement ready first)",
            "order 0: wait up to 6h, then evict: shop/train-0 (drain.rules[1])",
            "order 0: evict: shop/web-0 (no rule matches)",
            "order 10: evict: shop/db-0 (drain.rules[4]); blocked by PodDisruptionBudget shop/db",
            "-: stay: watch/train-0 (drain.rules[0])",
        ]
    );
}
