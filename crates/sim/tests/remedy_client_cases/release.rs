//! The release of a Node's workloads, on a clearance that was decided.

use std::sync::Arc;
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
use dogwatch_k8s::remedy::{Released, WriteError};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::world::{HOST, NODE, World, annotation};

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
        resource_version: "1".into(),
    };
    let watched = Watched {
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
        host: power::Host::clone(&host),
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
        off_since: Some(Duration::from_secs(1)),
        because: None,
    }
}

/// The clearance for this Node, made at second 4 of reads of second 3.
async fn cleared(world: &World, node: &NodeName) -> Release {
    let client = world.client();
    for _ in 0..3 {
        let case = case(world, node).await;
        let beat = client.beat(node).await.unwrap();
        let known = Known {
            power: Some(power(&case)),
            beats: Some(Beats::new(Duration::from_secs(2), beat)),
            fresh: Some(client.fresh(&case, Duration::from_secs(3)).await.unwrap()),
            ..Known::default()
        };
        let config = Config::default();
        let decision = remedy::decide(&case, &known, &Around::default(), &config, seconds(4));
        match decision.actions.first() {
            Some(Action::Release(release)) => return release.clone(),
            Some(Action::KeepBackup { host, backup }) => {
                client.keep_backup(host, backup).await.unwrap();
            }
            _ => panic!("{decision:?}"),
        }
    }
    panic!("nothing is cleared");
}

/// It lasts, by this clock.
fn in_time() -> Duration {
    Duration::from_secs(4)
}

pub async fn a_node_that_is_cleared_is_deleted_and_no_other_of_its_name(world: &World) {
    let labels = json!({ "metadata": { "labels": { "team": "a" } } });
    let node = marked(world, labels.clone()).await;
    let release = cleared(world, &node.name).await;
    assert_eq!(release.cleared.node_uid(), node.uid);
    let kept = world.object(HOST, "h").await;
    let kept = annotation(&kept, "dogwatch.dev/node-backup")
        .unwrap()
        .to_owned();
    assert!(kept.contains("team"), "{kept}");
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
    let late = || Duration::from_secs(3) + Config::RELEASE_WITHIN;
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
