//! The release of a Node's workloads after the decision to release.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::name::NodeName;
use dogwatch_core::power::{
    self, CallCost, CurrentPower, HostOwner, LevelAccess, OffConfirmation, PowerMemory,
    PowerSnapshot,
};
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::RemediationSnapshot as Watched;
use dogwatch_core::remediation::{
    self, ConcurrentRemediations, HeartbeatHistory, HeldRemediationLease, KeyOwner, ObservedPower,
    Remediation, RemediationAction, RemediationConfig, RemediationMemory, RemediationRecord,
    RemediationStep, RemediationSubject, StepStamp, StrategyType, WorkloadRelease,
};
use dogwatch_k8s::remediation::{NodeReleaseOutcome, RemediationClient, RemediationWriteError};
use kube::ResourceExt as _;
use kube::client::Body;
use serde_json::{Value, json};

use super::looks::renew;
use super::world::{HOME, HOST, NODE, World};

const NEED: &str = "host.metal3.io/external-remediation";

fn seconds(number: u64) -> Now {
    Now {
        wall: "2026-01-01T00:00:00Z".parse().unwrap(),
        mono: Duration::from_secs(number),
    }
}

/// A Node that is marked, and its host, which a person has confirmed off.
async fn marked(world: &World, more: Value) -> ObservedNode {
    let mut more = more;
    more["metadata"]["annotations"][NEED] = json!("");
    let node = world.node("n", more).await;
    let key = KeyOwner::Node(node.uid.clone());
    let annotations = json!({ "dogwatch.dev/node": node.name.as_str(), key.annotation_name(): key.annotation_value(),
        "dogwatch.dev/remediation": serde_json::to_string(&record(&node)).unwrap() });
    let metadata = json!({ "annotations": annotations });
    let spec = json!({ "online": true, "externallyProvisioned": true });
    world
        .make(HOST, "h", json!({ "metadata": metadata, "spec": spec }))
        .await;
    let status = json!({ "poweredOn": true, "errorCount": 0, "errorMessage": "", "operationalStatus": "OK",
        "provisioning": { "ID": "", "state": "externally provisioned" } });
    world.change_status(HOST, "h", &status).await;
    let word =
        OffConfirmation::for_host(&world.host_now("h").await, "ann", seconds(0).wall, "pulled");
    let word = json!({ "dogwatch.dev/confirmed-off": word.annotation_value() });
    world.annotate(HOST, "h", word).await;
    node
}

/// The record that is written with a key of ours.
fn record(node: &ObservedNode) -> RemediationRecord {
    let at = seconds(0).wall;
    RemediationRecord {
        cluster: None,
        cluster_uid: None,
        subject: format!("node/{}", node.name),
        uid: node.uid.clone(),
        node: Some(node.name.to_string()),
        node_uid: Some(node.uid.clone()),
        boot_id: None,
        attempt: 1,
        steps: [RemediationStep::Requested, RemediationStep::KeyAdded]
            .map(|step| StepStamp { step, at })
            .into(),
    }
}

/// The current remediation of this Node.
async fn case(world: &World, node: &NodeName) -> Remediation {
    let node = world.node_now(node.as_str()).await;
    let host = world.host_now("h").await;
    let lease = HeldRemediationLease {
        resource_version: "1".into(),
        ..HeldRemediationLease::default()
    };
    let kept = world.kept(&host).await;
    let watched = Watched {
        backups: kept
            .into_iter()
            .map(|it| (it.host_uid.clone(), it))
            .collect(),
        hosts: [(host.name.clone(), Arc::new(host))].into(),
        leases: [(node.name.clone(), lease)].into(),
        nodes: [(node.name.clone(), Arc::new(node.clone()))].into(),
        synced: true,
        ..Watched::default()
    };
    let cases = remediation::discover_remediations(&watched);
    let mut cases = cases.into_iter();
    cases
        .find(|case| case.subject == RemediationSubject::Node(node.name.clone()))
        .unwrap()
}

/// The observed power of the host.
fn power(case: &Remediation) -> ObservedPower {
    let mut memory = PowerMemory::default();
    let host = case.host.clone().unwrap();
    memory.observe_host(&host, seconds(1));
    let seen = PowerSnapshot {
        host: Arc::clone(&host),
        owner: HostOwner::Ours,
        shared_with: Vec::new(),
        same_system: Vec::new(),
        access: vec![LevelAccess::Ready {
            cost: CallCost::Request,
        }],
        memory,
    };
    let proof = power::find_off_proof(&seen, &power::PowerConfig::default(), seconds(2));
    assert!(proof.is_some(), "a person said so");
    ObservedPower {
        now: CurrentPower::Off,
        proof,
        bmc_answers: true,
        system_uuid: None,
        off_since: Some(Duration::from_secs(1)),
        because: None,
    }
}

/// Second of the fresh reads. The BMC reports no UUID; by then the Node has been silent for long
/// enough.
const READ: u64 = 30;

/// The permit to release this Node's workloads, issued a second after these reads.
async fn cleared(world: &World, node: &NodeName) -> WorkloadRelease {
    let client = world.client();
    for _ in 0..3 {
        let case = case(world, node).await;
        let beat = client.read_heartbeat(node).await.unwrap();
        let known = RemediationMemory {
            power: Some(power(&case)),
            heartbeats: Some(HeartbeatHistory::new(
                Duration::from_secs(1),
                Duration::from_secs(2),
                beat,
            )),
            fresh: Some(
                client
                    .read_fresh(&case, Duration::from_secs(READ))
                    .await
                    .unwrap(),
            ),
            ..RemediationMemory::default()
        };
        let config = RemediationConfig::default();
        let decision = remediation::decide(
            &case,
            &known,
            &ConcurrentRemediations::default(),
            &config,
            seconds(READ + 1),
        );
        match decision.actions.first() {
            Some(RemediationAction::Release(release)) => return release.clone(),
            Some(RemediationAction::KeepBackup { host, backup, over }) => {
                let over = over.as_deref();
                client.write_backup(host, backup, over).await.unwrap();
            }
            _ => panic!("{decision:?}"),
        }
    }
    panic!("nothing is cleared");
}

/// A clock by which the permit is still valid.
fn in_time() -> Duration {
    Duration::from_secs(READ + 1)
}

pub async fn a_node_that_is_cleared_is_deleted_and_no_other_of_its_name(world: &World) {
    let labels = json!({ "metadata": { "labels": { "team": "a" } } });
    let node = marked(world, labels.clone()).await;
    let release = cleared(world, &node.name).await;
    assert_eq!(release.permit.node_uid(), node.uid);
    let kept = world.kept(&world.host_now("h").await).await.unwrap();
    assert_eq!(kept.backup.labels["team"], "a");
    let client = world.client();
    // Its controllers write to it: it is still the same Node.
    let name = node.name.as_str();
    world.annotate(NODE, name, json!({ "x": "y" })).await;
    let answer = client.release_node(&release, in_time).await.unwrap();
    assert_eq!(answer, NodeReleaseOutcome::Gone);
    assert!(!world.has_node(&node.name).await);
    // A second call: the Node is gone.
    let answer = client.release_node(&release, in_time).await.unwrap();
    assert_eq!(answer, NodeReleaseOutcome::Gone);
    world.make(NODE, name, labels).await;
    for how in [StrategyType::DeleteNode, StrategyType::OutOfServiceTaint] {
        let release = WorkloadRelease {
            strategy_type: how,
            ..release.clone()
        };
        let answer = client.release_node(&release, in_time).await;
        assert!(
            matches!(answer, Err(RemediationWriteError::Changed(_))),
            "{answer:?}"
        );
    }
    let there = world.node_now(name).await;
    assert!(!there.out_of_service);
}

pub async fn nothing_is_sent_once_the_clearance_is_over(world: &World) {
    let node = marked(world, json!({})).await;
    let release = cleared(world, &node.name).await;
    let late = || Duration::from_secs(READ) + RemediationConfig::RELEASE_WITHIN;
    let client = world.client();
    for how in [StrategyType::DeleteNode, StrategyType::OutOfServiceTaint] {
        let release = WorkloadRelease {
            strategy_type: how,
            ..release.clone()
        };
        let before = world.object(NODE, node.name.as_str()).await;
        let answer = client.release_node(&release, late).await;
        assert!(
            matches!(answer, Err(RemediationWriteError::Expired(_))),
            "{answer:?}"
        );
        assert_eq!(world.object(NODE, node.name.as_str()).await, before);
    }
}

pub async fn a_node_that_others_keep_is_said_to_be_kept(world: &World) {
    let metadata = json!({ "finalizers": ["metal3.io/capbm"] });
    let node = marked(world, json!({ "metadata": metadata })).await;
    let release = cleared(world, &node.name).await;
    for _ in 0..2 {
        let answer = world.client().release_node(&release, in_time).await;
        let Err(error @ RemediationWriteError::Kept { .. }) = answer else {
            panic!("{answer:?}");
        };
        assert!(error.error_chain().contains("metal3.io/capbm"), "{error}");
    }
    let none = json!({ "metadata": { "finalizers": null } });
    world.change(NODE, node.name.as_str(), &none).await;
    assert!(!world.has_node(&node.name).await);
}

pub async fn a_node_that_is_cleared_is_tainted_once_and_taints_of_others_stay(world: &World) {
    let others = json!([{ "key": "gpu", "value": "a", "effect": "NoSchedule" },
        { "key": "node.kubernetes.io/out-of-service", "value": "x", "effect": "NoSchedule" }]);
    let node = marked(world, json!({ "spec": { "taints": others } })).await;
    let release = WorkloadRelease {
        strategy_type: StrategyType::OutOfServiceTaint,
        ..cleared(world, &node.name).await
    };
    let client = world.client();
    let answer = client.release_node(&release, in_time).await.unwrap();
    let there = world.node_now(node.name.as_str()).await;
    assert_eq!(answer, NodeReleaseOutcome::Tainted(Box::new(there.clone())));
    let taints = |object: kube::api::DynamicObject| {
        let all = object.data["spec"]["taints"].as_array().cloned().unwrap();
        let mut all: Vec<(String, String)> = all
            .iter()
            .filter(|it| !it["key"].as_str().unwrap().contains("not-ready"))
            .map(|it| {
                (
                    it["value"].as_str().unwrap_or_default().to_owned(),
                    it["effect"].to_string(),
                )
            })
            .collect();
        all.sort();
        all
    };
    let stand = taints(world.object(NODE, node.name.as_str()).await);
    let wanted = [
        ("a", "NoSchedule"),
        ("nodeshutdown", "NoExecute"),
        ("x", "NoSchedule"),
    ];
    let wanted = wanted.map(|(value, effect)| (value.to_owned(), format!("{effect:?}")));
    assert_eq!(stand, wanted);
    // A second call: the taint is there.
    let again = client.release_node(&release, in_time).await.unwrap();
    assert_eq!(again, answer);
    let lifted = client
        .untaint_node(&there, release.tainted_at)
        .await
        .unwrap();
    let object = world.object(NODE, lifted.name.as_str()).await;
    assert_eq!(object.uid().unwrap(), node.uid);
    assert_eq!(taints(object).len(), 2);
}

/// Posts the Node's status like a kubelet.
async fn posts(world: &World, name: &str, second: i64) {
    let at = jiff::Timestamp::from_second(second).unwrap();
    let ready = json!({ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
        "lastHeartbeatTime": at.to_string(), "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let status = json!({ "conditions": [ready] });
    world.change_status(NODE, name, &status).await;
}

pub async fn a_node_that_gave_a_sign_of_life_since_it_was_cleared_is_not_released(world: &World) {
    let node = marked(world, json!({})).await;
    let name = node.name.as_str();
    let release = cleared(world, &node.name).await;
    renew(world, &node.name, "2026-01-01T00:00:01.000000Z", 40).await;
    is_left_alone(world, &release).await;
    let release = cleared(world, &node.name).await;
    posts(world, name, 1_800_000_000).await;
    is_left_alone(world, &release).await;
}

async fn is_left_alone(world: &World, release: &WorkloadRelease) {
    for how in [StrategyType::DeleteNode, StrategyType::OutOfServiceTaint] {
        let release = WorkloadRelease {
            strategy_type: how,
            ..release.clone()
        };
        let answer = world.client().release_node(&release, in_time).await;
        assert!(
            matches!(answer, Err(RemediationWriteError::Changed(_))),
            "{answer:?}"
        );
        let there = world.node_now(release.permit.node().as_str()).await;
        assert!(!there.out_of_service);
    }
}

/// A client whose first deletion is sent only after `happens` has run.
fn late<F: Future<Output = ()> + Send + 'static>(
    client: kube::Client,
    happens: impl FnOnce() -> F + Send + 'static,
) -> (kube::Client, Arc<AtomicUsize>) {
    let deletions = Arc::new(AtomicUsize::new(0));
    let happens = Arc::new(Mutex::new(Some(happens)));
    let count = Arc::clone(&deletions);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let is_deletion = request.method() == http::Method::DELETE;
        count.fetch_add(usize::from(is_deletion), Ordering::Relaxed);
        let happens = is_deletion
            .then(|| happens.lock().unwrap().take())
            .flatten();
        let client = client.clone();
        async move {
            if let Some(happens) = happens {
                happens().await;
            }
            client.send(request).await
        }
    });
    (kube::Client::new(service, "default"), deletions)
}

pub async fn a_deletion_that_comes_late_does_nothing_to_a_node_that_has_lived_since(world: &World) {
    let node = marked(world, json!({})).await;
    let release = cleared(world, &node.name).await;
    let (people, name) = (world.clone(), node.name.to_string());
    let lives = move || async move { posts(&people, &name, 1_800_000_000).await };
    let (client, deletions) = late(world.controller.clone(), lives);
    let answer = RemediationClient::new(client, HOME)
        .release_node(&release, in_time)
        .await;
    assert!(
        matches!(answer, Err(RemediationWriteError::Changed(_))),
        "{answer:?}"
    );
    assert_eq!(deletions.load(Ordering::Relaxed), 1);
    assert!(world.has_node(&node.name).await);
}

pub async fn a_node_that_its_controllers_write_to_meanwhile_is_deleted_all_the_same(world: &World) {
    let node = marked(world, json!({})).await;
    let release = cleared(world, &node.name).await;
    let (people, name) = (world.clone(), node.name.to_string());
    let writes = move || async move {
        people.annotate(NODE, &name, json!({ "x": "y" })).await;
    };
    let (client, deletions) = late(world.controller.clone(), writes);
    let answer = RemediationClient::new(client, HOME)
        .release_node(&release, in_time)
        .await;
    assert_eq!(answer.unwrap(), NodeReleaseOutcome::Gone);
    assert_eq!(deletions.load(Ordering::Relaxed), 2);
    assert!(!world.has_node(&node.name).await);
}
