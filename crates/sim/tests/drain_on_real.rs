//! The drain's cases on a real API server, and comparisons with the real kubectl.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod drain_cases;
mod drain_real;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;
#[path = "support/webhook.rs"]
mod webhook;

use dogwatch_core::drain::{AdmissionRefuser, DrainConfig, DrainProgress};
use dogwatch_testbed::{ControlPlane, KubernetesRelease};
use serde_json::json;
use tokio::sync::OnceCell;

use drain_cases::fleet;
use drain_cases::world::World;
use support::real::{client_as, client_that_asks_once};
use webhook::{Verdict, Webhook};

/// Without controllers: each case writes what a controller would write.
async fn control_plane() -> &'static ControlPlane {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED
        .get_or_init(async || {
            ControlPlane::builder()
                .with_controllers([])
                .start()
                .await
                .unwrap()
        })
        .await
}

async fn client() -> kube::Client {
    client_that_asks_once(control_plane().await.admin_kubeconfig()).await
}

macro_rules! on_real {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            drain_cases::$name(&World::on(client().await).await).await;
        }
    )* };
}

drain_cases::every_case!(on_real);

/// A ValidatingAdmissionPolicy and its binding to one namespace.
fn eviction_policy(name: &str, namespace: &str, message: &str) -> String {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"],
    });
    let expression = "!object.metadata.name.startsWith('web')";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": message}],
        },
    });
    let namespaces = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": namespaces},
        },
    });
    json!({"apiVersion": "v1", "kind": "List", "items": [policy, binding]}).to_string()
}

#[tokio::test]
async fn an_eviction_that_a_policy_refuses_is_waited_for_and_the_policy_named() {
    let plane = control_plane().await;
    let world = World::on(client().await).await;
    let policy = eviction_policy("keep-web", &world.namespace, "not before noon");
    plane
        .run_kubectl(&["apply", "-f", "-"], &policy)
        .await
        .unwrap();
    let admit = async || {
        let delete = ["delete", "-f", "-"];
        plane.run_kubectl(&delete, &policy).await.unwrap();
    };
    drain_cases::an_eviction_that_a_policy_refuses_is_waited_for_and_the_policy_named(
        &world,
        "keep-web",
        "not before noon",
        admit,
    )
    .await;
}

#[tokio::test]
async fn an_eviction_that_a_webhook_refuses_with_any_code_or_by_failing_is_waited_for() {
    let plane = control_plane().await;
    let world = World::on(client().await).await;
    world.pod("web", json!({})).await;
    let webhook = Webhook::start(plane.folder(), Verdict::Denied(400, "first")).await;
    plane
        .run_kubectl(
            &["apply", "-f", "-"],
            &webhook.configuration(&world.namespace),
        )
        .await
        .unwrap();
    world.until_evictions_are_refused("none").await;
    let drain = world.drain(DrainConfig::default());
    for (verdict, words) in [
        (
            Verdict::Denied(500, "rolled by its operator"),
            "rolled by its operator",
        ),
        (
            Verdict::Denied(429, "evacuation triggered"),
            "evacuation triggered",
        ),
        (Verdict::Denied(403, "forbidden here"), "forbidden here"),
        (Verdict::NoAnswer, "the webhook cannot be called"),
    ] {
        webhook.answers(verdict);
        let says_so = |progress: &DrainProgress| {
            let refused = progress.blocked.iter().find_map(|one| one.refused.as_ref());
            refused.is_some_and(|refused| {
                refused.by == AdmissionRefuser::Webhook(webhook::NAME.into())
                    && refused.said.contains(words)
            })
        };
        let progress = world.until(&drain, says_so).await;
        assert!(!progress.is_incomplete(), "{words}");
    }
    webhook.answers(Verdict::Allowed);
    world.until_drained(&drain).await;
}

#[tokio::test]
async fn the_same_pods_go_as_with_kubectl_drain() {
    let ours = World::on(client().await).await;
    let theirs = World::beside(client().await, &ours.namespace, "kubectl").await;
    fleet::owners(&ours).await;
    // This kubectl takes every owner of kind DaemonSet for one of Kubernetes' own.
    let is_old = KubernetesRelease::selected().unwrap().minor() == "1.32";
    let is_comparable = |kind: &&fleet::Kind| !is_old || **kind != fleet::Kind::OfForeignDaemonSet;
    for kind in fleet::ALL.iter().filter(is_comparable) {
        fleet::create(&ours, *kind).await;
        fleet::create_as(&theirs, *kind, &format!("k-{}", kind.name())).await;
    }
    let arguments = [
        "drain",
        &theirs.node,
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--force",
    ];
    control_plane()
        .await
        .run_kubectl(&arguments, "")
        .await
        .unwrap();
    let drain = ours.drain(DrainConfig::default());
    ours.until_drained(&drain).await;

    let expected: Vec<String> = ours
        .pods()
        .await
        .iter()
        .map(|name| format!("k-{name}"))
        .collect();
    assert_eq!(theirs.pods().await, expected);
}

#[tokio::test]
async fn a_drain_makes_at_most_one_call_a_pod_and_twenty_more() {
    const PODS: usize = 60;
    let world = World::on(client().await).await;
    fleet::owners(&world).await;
    for number in 0..PODS {
        fleet::create_as(&world, fleet::Kind::OfReplicaSet, &format!("web-{number}")).await;
        if number % 6 == 0 {
            fleet::create_as(&world, fleet::Kind::OfDaemonSet, &format!("agent-{number}")).await;
        }
    }
    // This user name identifies the drain's requests in the audit log.
    let mine = "dogwatch-drain-counted";
    let control_plane = control_plane().await;
    let drain = world.drain_as(
        client_as(control_plane.admin_kubeconfig(), mine).await,
        DrainConfig::default(),
    );
    world.until_drained(&drain).await;
    drop(drain);
    let audit = control_plane.audit_entries().await.unwrap();
    let calls: Vec<_> = audit
        .iter()
        .filter(|entry| entry.stage != "RequestReceived" && entry.user_agent == mine)
        .collect();
    let evictions = calls
        .iter()
        .filter(|call| call.subresource == "eviction")
        .count();
    let lookups = calls
        .iter()
        .filter(|call| call.resource == "daemonsets")
        .count();
    assert_eq!((evictions, lookups), (PODS, 1));
    assert!(calls.len() <= PODS + 20, "{} calls", calls.len());
}

#[tokio::test]
async fn a_drain_goes_on_after_the_api_server_was_away() {
    // A separate control plane, because the other tests need theirs all the time.
    let control_plane = ControlPlane::builder()
        .with_controllers([])
        .start()
        .await
        .unwrap();
    let world = World::on(client_that_asks_once(control_plane.admin_kubeconfig()).await).await;
    world.pod("free", json!({})).await;
    world
        .pod("web", json!({"metadata": {"labels": {"app": "web"}}}))
        .await;
    world.budget("web-budget", "web", 0).await;
    let drain = world.drain(DrainConfig::default());
    world
        .until(&drain, |progress| {
            progress.gone == 1 && !progress.blocked.is_empty()
        })
        .await;
    control_plane.stop_api();
    world
        .until(&drain, |progress| !progress.observation_errors.is_empty())
        .await;
    assert!(!drain.progress.borrow().is_drained());
    control_plane.start_api().await.unwrap();
    world.allow("web-budget", 1).await;
    let progress = world.until_drained(&drain).await;
    assert_eq!((progress.gone, progress.is_incomplete()), (2, false));
}

#[tokio::test]
async fn pods_go_as_fast_as_the_real_disruption_controller_lets_them() {
    let control_plane = dogwatch_testbed::shared_control_plane().await;
    let world = World::on(client_that_asks_once(control_plane.admin_kubeconfig()).await).await;
    let labelled = json!({"metadata": {"labels": {"app": "web"}}});
    for number in 0..3 {
        world.pod(&format!("web-{number}"), labelled.clone()).await;
    }
    world.guard("web-budget", "web", 2).await;
    world.until_budget_allows("web-budget", 1).await;
    let drain = world.drain(DrainConfig::default());
    let progress = world
        .until(&drain, |progress| {
            progress.gone == 1
                && progress
                    .blocked
                    .iter()
                    .filter(|blocked| !blocked.budgets.is_empty())
                    .count()
                    == 2
        })
        .await;
    assert_eq!(progress.blocked[0].budgets[0].desired_healthy, 2);
    // Two replacements start on another node, as from a ReplicaSet.
    for number in 3..5 {
        let elsewhere =
            json!({"metadata": {"labels": {"app": "web"}}, "spec": {"nodeName": "elsewhere"}});
        world.pod(&format!("web-{number}"), elsewhere).await;
    }
    let progress = world.until_drained(&drain).await;
    assert_eq!((progress.gone, progress.is_incomplete()), (3, false));
}
