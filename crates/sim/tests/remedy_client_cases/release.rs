//! The release of a Node's workloads, on a clearance that was decided.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::name::NodeName;
use dogwatch_core::power::{self, Access, Confirmation, Cost, Memory, Owner, PowerNow, Seen};
use dogwatch_core::reboot::NodeSeen;
use dogwatch_core::remedy::World as Watched;
use dogwatch_core::remedy::{
    self, Action, Around, Beats, Case, Config, KeyOwner, Known, PowerSeen, Record, Release,
    RemedyLease, Stamp, Step, StrategyType, Subject,
};
use dogwatch_k8s::remedy::{Released, RemedyClient, WriteError};
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

/// A Node that is marked, and its host, off by a person's word.
async fn marked(world: &World, more: Value) -> NodeSeen {
    let mut more = more;
    more["metadata"]["annotations"][NEED] = json!("");
    let node = world.node("n", more).await;
    let key = KeyOwner::Node(node.uid.clone());
    let annotations = json!({ "dogwatch.dev/node": node.name.as_str(), key.key(): key.value(),
        "dogwatch.dev/remediation": serde_json::to_string(&record(&node)).unwrap() });
    let metadata = json!({ "annotations": annotations });
    let spec = json!({ "online": true, "externallyProvisioned": true });
    world
        .make(HOST, "h", json!({ "metadata": metadata, "spec": spec }))
        .await;
    let status = json!({ "poweredOn": true, "errorCount": 0, "errorMessage": "", "operationalStatus": "OK",
        "provisioning": { "ID": "", "state": "externally provisioned" } });
    world.change_status(HOST, "h", &status).await;
    let word = Confirmation::of(&world.host_now("h").await, "ann", seconds(0).wall, "pulled");
    let word = json!({ "dogwatch.dev/confirmed-off": word.value() });
    world.annotate(HOST, "h", word).await;
    node
}

/// What is written with a key of ours.
fn record(node: &NodeSeen) -> Record {
    let at = seconds(0).wall;
    Record {
        subject: format!("node/{}", node.name),
        uid: node.uid.clone(),
        node: Some(node.name.to_string()),
        node_uid: Some(node.uid.clone()),
        boot_id: None,
        attempt: 1,
        steps: [Step::Requested, Step::KeyAdded]
            .map(|step| Stamp { step, at })
            .into(),
    }
}

/// The case of this Node, as it stands now.
async fn case(world: &World, node: &NodeName) -> Case {
    let node = world.node_now(node.as_str()).await;
    let host = world.host_now("h").await;
    let lease = RemedyLease {
        subject: None,
        resource_version: "1".into(),
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
    let cases = remedy::cases(&watched);
    let mut cases = cases.into_iter();
    cases
        .find(|case| case.subject == Subject::Node(node.name.clone()))
        .unwrap()
}

/// What the power side says.
fn power(case: &Case) -> PowerSeen {
    let mut memory = Memory::default();
    let host = case.host.clone().unwrap();
    memory.saw(&host, seconds(1));
    let seen = Seen {
        host: Arc::clone(&host),
        owner: Owner::Ours,
        shared_with: Vec::new(),
        same_system: Vec::new(),
        access: vec![Access::Ready {
            cost: Cost::Request,
        }],
        memory,
    };
    let proof = power::proof(&seen, &power::Config::default(), seconds(2));
    assert!(proof.is_some(), "a person said so");
    PowerSeen {
        now: PowerNow::Off,
        proof,
        answers: true,
        system_uuid: None,
        off_since: Some(Duration::from_secs(1)),
        because: None,
    }
}

/// When everything is read afresh. The BMC tells no UUID: the Node has been silent for long enough by then.
const READ: u64 = 30;

/// The clearance for this Node, made a second after these reads.
async fn cleared(world: &World, node: &NodeName) -> Release {
    let client = world.client();
    for _ in 0..3 {
        let case = case(world, node).await;
        let beat = client.beat(node).await.unwrap();
        let known = Known {
            power: Some(power(&case)),
            beats: Some(Beats::new(
                Duration::from_secs(1),
                Duration::from_secs(2),
                beat,
            )),
            fresh: Some(
                client
                    .fresh(&case, Duration::from_secs(READ))
                    .await
                    .unwrap(),
            ),
            ..Known::default()
        };
        let config = Config::default();
        let decision = remedy::decide(
            &case,
            &known,
            &Around::default(),
            &config,
            seconds(READ + 1),
        );
        match decision.actions.first() {
            Some(Action::Release(release)) => return release.clone(),
            Some(Action::KeepBackup { host, backup, over }) => {
                let over = over.as_deref();
                client.keep_backup(host, backup, over).await.unwrap();
            }
            _ => panic!("{decision:?}"),
        }
    }
    panic!("nothing is cleared");
}

/// It lasts, by this clock.
fn in_time() -> Duration {
    Duration::from_secs(READ + 1)
}

pub async fn a_node_that_is_cleared_is_deleted_and_no_other_of_its_name(world: &World) {
    let labels = json!({ "metadata": { "labels": { "team": "a" } } });
    let node = marked(world, labels.clone()).await;
    let release = cleared(world, &node.name).await;
    assert_eq!(release.cleared.node_uid(), node.uid);
    let kept = world.kept(&world.host_now("h").await).await.unwrap();
    assert_eq!(kept.backup.labels["team"], "a");
    let client = world.client();
    // Its controllers write to it: that is no other Node.
    let name = node.name.as_str();
    world.annotate(NODE, name, json!({ "x": "y" })).await;
    let answer = client.release(&release, in_time).await.unwrap();
    assert_eq!(answer, Released::Gone);
    assert!(!world.has_node(&node.name).await);
    // Once more: it is gone.
    let answer = client.release(&release, in_time).await.unwrap();
    assert_eq!(answer, Released::Gone);
    world.make(NODE, name, labels).await;
    for how in [StrategyType::DeleteNode, StrategyType::OutOfServiceTaint] {
        let release = Release {
            how,
            ..release.clone()
        };
        let answer = client.release(&release, in_time).await;
        assert!(matches!(answer, Err(WriteError::Changed(_))), "{answer:?}");
    }
    let there = world.node_now(name).await;
    assert!(!there.out_of_service);
}

pub async fn nothing_is_sent_once_the_clearance_is_over(world: &World) {
    let node = marked(world, json!({})).await;
    let release = cleared(world, &node.name).await;
    let late = || Duration::from_secs(READ) + Config::RELEASE_WITHIN;
    let client = world.client();
    for how in [StrategyType::DeleteNode, StrategyType::OutOfServiceTaint] {
        let release = Release {
            how,
            ..release.clone()
        };
        let before = world.object(NODE, node.name.as_str()).await;
        let answer = client.release(&release, late).await;
        assert!(matches!(answer, Err(WriteError::Expired(_))), "{answer:?}");
        assert_eq!(world.object(NODE, node.name.as_str()).await, before);
    }
}

pub async fn a_node_that_others_keep_is_said_to_be_kept(world: &World) {
    let metadata = json!({ "finalizers": ["metal3.io/capbm"] });
    let node = marked(world, json!({ "metadata": metadata })).await;
    let release = cleared(world, &node.name).await;
    for _ in 0..2 {
        let answer = world.client().release(&release, in_time).await;
        let Err(error @ WriteError::Kept { .. }) = answer else {
            panic!("{answer:?}");
        };
        assert!(error.in_words().contains("metal3.io/capbm"), "{error}");
    }
    let none = json!({ "metadata": { "finalizers": null } });
    world.change(NODE, node.name.as_str(), &none).await;
    assert!(!world.has_node(&node.name).await);
}

pub async fn a_node_that_is_cleared_is_tainted_once_and_taints_of_others_stay(world: &World) {
    let others = json!([{ "key": "gpu", "value": "a", "effect": "NoSchedule" },
        { "key": "node.kubernetes.io/out-of-service", "value": "x", "effect": "NoSchedule" }]);
    let node = marked(world, json!({ "spec": { "taints": others } })).await;
    let release = Release {
        how: StrategyType::OutOfServiceTaint,
        ..cleared(world, &node.name).await
    };
    let client = world.client();
    let answer = client.release(&release, in_time).await.unwrap();
    let there = world.node_now(node.name.as_str()).await;
    assert_eq!(answer, Released::Tainted(Box::new(there.clone())));
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
    // Once more: it stands.
    let again = client.release(&release, in_time).await.unwrap();
    assert_eq!(again, answer);
    let lifted = client.untaint(&there, release.tainted_at).await.unwrap();
    let object = world.object(NODE, lifted.name.as_str()).await;
    assert_eq!(object.uid().unwrap(), node.uid);
    assert_eq!(taints(object).len(), 2);
}

/// Posts the Node's state, as a kubelet does.
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

async fn is_left_alone(world: &World, release: &Release) {
    for how in [StrategyType::DeleteNode, StrategyType::OutOfServiceTaint] {
        let release = Release {
            how,
            ..release.clone()
        };
        let answer = world.client().release(&release, in_time).await;
        assert!(matches!(answer, Err(WriteError::Changed(_))), "{answer:?}");
        let there = world.node_now(release.cleared.node().as_str()).await;
        assert!(!there.out_of_service);
    }
}

/// A client between which and the API server this happens before the first deletion that it sends.
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
    let answer = RemedyClient::new(client, HOME)
        .release(&release, in_time)
        .await;
    assert!(matches!(answer, Err(WriteError::Changed(_))), "{answer:?}");
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
    let answer = RemedyClient::new(client, HOME)
        .release(&release, in_time)
        .await;
    assert_eq!(answer.unwrap(), Released::Gone);
    assert_eq!(deletions.load(Ordering::Relaxed), 2);
    assert!(!world.has_node(&node.name).await);
}
