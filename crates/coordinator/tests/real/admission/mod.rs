//! What each token may do while the shipped admission policies are in force. Source: specification
//! §6.
//!
//! Every other test of this suite runs with the policies as well: that they refuse nothing legal is
//! checked when a test returns its control plane.

mod bmcs;
mod broken;
mod events;
mod evictions;
mod health_checks;
mod hosts;
mod locks;
mod namespaces;
mod nodes;
mod remediation_kinds;
mod remediations;
mod renamed;
mod requests;
mod schedules;
mod shipped;

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::PATIENCE;
use crate::support::api::{Api, MERGE};
use crate::support::plane::ACCOUNT;
use crate::support::{Cluster, token};

/// People: both may write Nodes and Dogwatch's Leases, and one of them may break locks.
const PEOPLE: &str = include_str!("people.yaml");

/// The nodes of these tests, without machines.
const FIRST: &str = "first";
const SECOND: &str = "second";

/// The account of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// The coordinator of Node `first`.
    First,
    /// The coordinator of Node `second`.
    Second,
    /// A coordinator whose token is bound to no pod.
    Unbound,
    Controller,
    /// Somebody who may write Nodes, hosts, Machines, and Dogwatch's Leases and kinds.
    Person,
    /// As [`Who::Person`], and may break locks, request reboots and remediations, and confirm that
    /// a host is off.
    Breaker,
}

/// The call succeeds, or is refused with this text.
type Expected = Result<(), &'static str>;

/// A cluster with two Nodes, and an API client for each account.
struct Stage {
    cluster: Cluster,
    hands: Vec<(Who, Api)>,
}

impl Stage {
    async fn set() -> Self {
        let cluster = Cluster::new().await;
        cluster.plane.expect_refusals();
        let applied = cluster.plane.run_kubectl(&["apply", "-f", "-"], PEOPLE);
        applied.await.expect("manifests that are accepted");
        let api = &cluster.api;
        for name in [FIRST, SECOND] {
            let labels = json!({ "kubernetes.io/hostname": name });
            let metadata =
                json!({ "name": name, "labels": labels, "annotations": { "other": "value" } });
            api.create("/api/v1/nodes", &json!({ "metadata": metadata }))
                .await;
        }
        let controller = "dogwatch-controller";
        let tokens = [
            (Who::First, token::on_node(api, ACCOUNT, FIRST).await),
            (Who::Second, token::on_node(api, ACCOUNT, SECOND).await),
            (Who::Unbound, token::unbound(api, "dogwatch", ACCOUNT).await),
            (
                Who::Controller,
                token::on_node(api, controller, FIRST).await,
            ),
            (Who::Person, token::unbound(api, "default", "person").await),
            (
                Who::Breaker,
                token::unbound(api, "default", "breaker").await,
            ),
        ];
        let mut hands = Vec::new();
        for (who, token) in tokens {
            hands.push((who, hand(&cluster, &token).await));
        }
        Self { cluster, hands }
    }

    /// Installs a kind; returns the path of the objects of its stored version.
    async fn install(&self, definition: &Value) -> String {
        // Tests share a control plane and install different versions of a kind.
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        let plane = &self.cluster.plane;
        let applied = plane.run_kubectl(&apply, &definition.to_string()).await;
        applied.expect("a kind that is accepted");
        let spec = &definition["spec"];
        let word = |value: &Value| value.as_str().expect("a definition has it").to_owned();
        let mut versions = spec["versions"].as_array().expect("a list").iter();
        let stored = versions.find(|version| version["storage"] == true);
        let version = word(&stored.expect("one is stored")["name"]);
        let group = word(&spec["group"]);
        let path = format!("{group}/{version}/{}", word(&spec["names"]["plural"]));
        let path = self.cluster.path(&path);
        self.cluster.until_served(&path).await;
        path
    }

    /// Sends the call and compares the result; `what` explains a failure.
    async fn attempt(&self, what: &str, who: Who, call: &Call, expected: Expected) {
        compare(what, who, self.answer(who, call).await, expected);
    }

    /// Repeats the call until it is allowed. The API server does not report when a new right takes
    /// effect, so it is polled.
    async fn until_allowed(&self, who: Who, call: &Call) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while let Err(refused) = self.answer(who, call).await {
            assert!(tokio::time::Instant::now() < deadline, "{refused}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn answer(&self, who: Who, call: &Call) -> Result<Value, String> {
        let mut hands = self.hands.iter();
        let (_, hand) = hands
            .find(|(there, _)| *there == who)
            .expect("everybody has one");
        hand.attempt(call.verb, &call.path, call.kind, &call.body)
            .await
    }
}

struct Call {
    verb: &'static str,
    path: String,
    kind: &'static str,
    body: Value,
}

impl Call {
    fn new(verb: &'static str, path: impl Into<String>, kind: &'static str, body: Value) -> Self {
        Self {
            verb,
            path: path.into(),
            kind,
            body,
        }
    }
}

/// Sets one annotation by merge patch; null removes it.
fn annotated(path: &str, key: &str, value: &Value) -> Call {
    let body = json!({ "metadata": { "annotations": { key: value } } });
    Call::new("PATCH", path, MERGE, body)
}

async fn hand(cluster: &Cluster, token: &str) -> Api {
    let kubeconfig = cluster.plane.kubeconfig_for(token);
    let kubeconfig = kubeconfig.expect("a folder to write to");
    cluster.api_of(&kubeconfig).await
}

fn compare(what: &str, who: Who, answer: Result<Value, String>, expected: Expected) {
    match (answer, expected) {
        (Ok(_), Ok(())) => {}
        (Ok(done), Err(words)) => {
            panic!("{what}, by {who:?}: done, and not refused with {words:?}: {done}")
        }
        (Err(refused), Ok(())) => panic!("{what}, by {who:?}: {refused}"),
        (Err(refused), Err(words)) => {
            assert!(refused.contains(words), "{what}, by {who:?}: {refused}");
        }
    }
}
