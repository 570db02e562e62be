//! The remediator's fresh reads.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::name::NodeName;
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{
    FreshReads, KeyOwner, NodeBackup, Remediation, RemediationCluster, RemediationSubject,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::world::{CAPI, HOST, Kind, NODE, OPENSHIFT, REQUEST, World, capi_spec};

const NEED: &str = "host.metal3.io/external-remediation";

pub(super) async fn renew(world: &World, node: &NodeName, at: &str, lasts: u32) {
    let namespaces: Api<Namespace> = Api::all(world.people.clone());
    let namespace = json!({ "metadata": { "name": "kube-node-lease" } });
    // It may exist already.
    let _: kube::Result<_> = namespaces
        .create(
            &PostParams::default(),
            &serde_json::from_value(namespace).unwrap(),
        )
        .await;
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": node.as_str() }, "spec": { "renewTime": at, "leaseDurationSeconds": lasts } });
    let leases: Api<Lease> = Api::namespaced(world.people.clone(), "kube-node-lease");
    let params = PatchParams::apply("kubelet").force();
    leases
        .patch(node.as_str(), &params, &Patch::Apply(&lease))
        .await
        .unwrap();
}

pub async fn signs_of_life_are_those_of_the_node_and_of_its_lease(world: &World) {
    let client = world.client();
    let name = NodeName::new(world.unique("n")).unwrap();
    let none = client.read_heartbeat(&name).await.unwrap();
    assert_eq!(
        (none.node_uid, none.renewed, none.posted),
        (None, None, None)
    );
    let node = world.node("n", json!({})).await;
    let condition = |kind: &str, at: &str| json!({ "type": kind, "status": "True", "lastHeartbeatTime": at, "lastTransitionTime": at });
    let conditions = [
        condition("MemoryPressure", "2026-01-01T00:00:09Z"),
        condition("Ready", "2026-01-01T00:00:01Z"),
    ];
    world
        .change_status(NODE, name.as_str(), &json!({ "conditions": conditions }))
        .await;
    let posted = client.read_heartbeat(&name).await.unwrap();
    assert_eq!(posted.node_uid.as_ref(), Some(&node.uid));
    assert_eq!(posted.posted, Some("2026-01-01T00:00:01Z".parse().unwrap()));
    assert_eq!(posted.renewed, None);
    renew(world, &name, "2026-01-01T00:00:02.000003Z", 120).await;
    let renewed = client.read_heartbeat(&name).await.unwrap();
    let at = "2026-01-01T00:00:02.000003Z".parse().unwrap();
    assert_eq!(renewed.renewed, Some(at));
    assert_eq!(renewed.required_silence(), Duration::from_secs(75));
    renew(world, &name, "2026-01-01T00:00:12.000003Z", 120).await;
    assert_ne!(client.read_heartbeat(&name).await.unwrap(), renewed);
}

fn case(
    subject: RemediationSubject,
    key: KeyOwner,
    host: &HostSnapshot,
    node: &NodeName,
) -> Remediation {
    Remediation {
        subject,
        key,
        needs_remediation: true,
        host: Ok(Arc::new(host.clone())),
        node_name: Some(node.clone()),
        node: None,
        cluster: RemediationCluster::management(),
        problem: None,
        held_lease: None,
        record: None,
        stored_backup: None,
        host_backup: None,
        legacy_backup: None,
        control_plane: false,
        machine: None,
        request: None,
    }
}

async fn needs(world: &World, case: &Remediation) -> bool {
    let taken = Duration::from_secs(7);
    let fresh = world.client().read_fresh(case, taken).await.unwrap();
    assert_eq!(fresh.asked_at, taken);
    fresh.needs_remediation
}

pub async fn everything_that_a_release_rests_on_is_read_afresh(world: &World) {
    let host = world.host("h", json!({})).await;
    let labels = json!({ "team": "a", "dogwatch.dev/ignore": "true" });
    let metadata = json!({ "labels": labels, "annotations": { NEED: "", "note": "x" } });
    let more = json!({ "metadata": metadata, "spec": { "unschedulable": true } });
    let node = world.node("n", more).await;
    renew(world, &node.name, "2026-01-01T00:00:02.000003Z", 120).await;
    let marked = RemediationSubject::Node(node.name.clone());
    let key = KeyOwner::Node(node.uid.clone());
    let of_node = case(marked, key, &host, &node.name);
    let note = json!({ "dogwatch.dev/node": "n" });
    world.annotate(HOST, "h", note).await;
    let fresh = fresh(world, &of_node).await;
    let host_now = world.host_now("h").await;
    assert_eq!(fresh.host.as_deref(), Some(&host_now));
    assert_eq!(fresh.node.as_deref(), Some(&node));
    assert_eq!(
        fresh.heartbeat,
        world.client().read_heartbeat(&node.name).await.unwrap()
    );
    assert_eq!(fresh.backup, Some(expected(&node)));
    nodes_need(world, &of_node, &node).await;
    machines_need(world, &host, &node.name).await;
    requests_need(world, &host, &node.name).await;
    gone_or_ours(world, &of_node, &node).await;
}

async fn fresh(world: &World, case: &Remediation) -> FreshReads {
    let client = world.client();
    client.read_fresh(case, Duration::ZERO).await.unwrap()
}

/// The backup of what others had put on the Node.
fn expected(node: &ObservedNode) -> NodeBackup {
    let text = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
    NodeBackup {
        node: node.name.to_string(),
        uid: node.uid.clone(),
        labels: text("team", "a"),
        annotations: text("note", "x"),
        cordoned: true,
        ..NodeBackup::default()
    }
}

async fn nodes_need(world: &World, of_node: &Remediation, node: &ObservedNode) {
    assert!(needs(world, of_node).await);
    let another = Remediation {
        key: KeyOwner::Node("another".into()),
        ..of_node.clone()
    };
    assert!(!needs(world, &another).await);
    world
        .annotate(NODE, node.name.as_str(), json!({ NEED: null }))
        .await;
    assert!(!needs(world, of_node).await);
    let host = of_node.host.clone().unwrap();
    let orphan = Remediation {
        subject: RemediationSubject::Host(host.name.clone()),
        ..of_node.clone()
    };
    assert!(!needs(world, &orphan).await);
}

/// The cordon of a planned reboot is not backed up; and a deleted Node yields no backup.
async fn gone_or_ours(world: &World, of_node: &Remediation, node: &ObservedNode) {
    let ours = json!({ "dogwatch.dev/api-lock": "{}" });
    world.annotate(NODE, node.name.as_str(), ours).await;
    let locked = fresh(world, of_node).await;
    assert!(!locked.backup.unwrap().cordoned);
    world.delete(NODE, node.name.as_str()).await;
    world.delete(HOST, "h").await;
    let gone = fresh(world, of_node).await;
    assert_eq!((gone.host, gone.node, gone.backup), (None, None, None));
    assert_eq!(gone.heartbeat.node_uid, None);
}

async fn machines_need(world: &World, host: &HostSnapshot, node: &NodeName) {
    let spec = |kind: Kind| {
        if kind == CAPI {
            capi_spec(CAPI)
        } else {
            json!({})
        }
    };
    for kind in [OPENSHIFT, CAPI] {
        let metadata = json!({ "annotations": { NEED: "" } });
        let more = json!({ "metadata": metadata, "spec": spec(kind) });
        let machine = world.machine(kind, "m", more).await;
        let subject = RemediationSubject::Machine(machine.name.clone());
        let of = |uid: &str| case(subject.clone(), KeyOwner::Machine(uid.into()), host, node);
        assert!(needs(world, &of(&machine.uid)).await);
        assert!(!needs(world, &of("another")).await);
        world.annotate(kind, "m", json!({ NEED: null })).await;
        assert!(!needs(world, &of(&machine.uid)).await);
        world.delete(kind, "m").await;
        assert!(!needs(world, &of(&machine.uid)).await);
    }
}

async fn requests_need(world: &World, host: &HostSnapshot, node: &NodeName) {
    let finalizers = json!({ "finalizers": ["example.com/theirs"] });
    let request = world
        .request("r", json!({ "metadata": finalizers, "spec": {} }))
        .await;
    let subject = RemediationSubject::Request(request.name.clone());
    let of = |uid: &str| case(subject.clone(), KeyOwner::Request(uid.into()), host, node);
    assert!(needs(world, &of(&request.uid)).await);
    assert!(!needs(world, &of("another")).await);
    let timed_out = "remediation.medik8s.io/nhc-timed-out";
    world
        .annotate(REQUEST, "r", json!({ timed_out: "2026-01-01T00:00:00Z" }))
        .await;
    assert!(!needs(world, &of(&request.uid)).await);
    world
        .annotate(REQUEST, "r", json!({ timed_out: null }))
        .await;
    assert!(needs(world, &of(&request.uid)).await);
    world.delete(REQUEST, "r").await;
    assert!(
        !needs(world, &of(&request.uid)).await,
        "it is being deleted"
    );
    let none = json!({ "metadata": { "finalizers": null } });
    world.change(REQUEST, "r", &none).await;
}

async fn pod(world: &World, name: &str, node: &str, more: Value) {
    let mut pod = more;
    pod["metadata"]["name"] = json!(name);
    pod["spec"]["nodeName"] = json!(node);
    pod["spec"]["containers"] = json!([{ "name": "c", "image": "i" }]);
    let status = pod.as_object_mut().unwrap().remove("status");
    let pods: Api<Pod> = Api::namespaced(world.people.clone(), &world.namespace);
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    if let Some(status) = status {
        let patch = Patch::Merge(json!({ "status": status }));
        pods.patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}

pub async fn what_the_taint_has_still_to_remove_is_named(world: &World) {
    let accounts: Api<ServiceAccount> = Api::namespaced(world.people.clone(), &world.namespace);
    let account = json!({ "metadata": { "name": "default" } });
    // No controller creates it here.
    let _: kube::Result<_> = accounts
        .create(
            &PostParams::default(),
            &serde_json::from_value(account).unwrap(),
        )
        .await;
    let node = world.node("n", json!({})).await;
    let (client, taken) = (world.client(), Duration::from_secs(7));
    let none = client.read_leftovers(&node.name, taken).await.unwrap();
    assert_eq!(
        (none.asked_at, none.pods, none.attachments),
        (taken, vec![], vec![])
    );
    let name = node.name.as_str();
    let key = "node.kubernetes.io/out-of-service";
    let tolerating = |toleration: Value| json!({ "spec": { "tolerations": [toleration] } });
    pod(world, "plain", name, json!({})).await;
    pod(world, "elsewhere", &world.unique("other"), json!({})).await;
    let ended = json!({ "status": { "phase": "Succeeded" } });
    pod(world, "ended", name, ended).await;
    let all = tolerating(json!({ "operator": "Exists" }));
    pod(world, "all", name, all).await;
    let this = tolerating(json!({ "key": key, "operator": "Exists" }));
    pod(world, "this", name, this).await;
    let by_value = json!({ "key": key, "value": "nodeshutdown", "effect": "NoExecute" });
    pod(world, "by-value", name, tolerating(by_value)).await;
    let other_value = json!({ "key": key, "value": "maintenance", "effect": "NoExecute" });
    pod(world, "other-value", name, tolerating(other_value)).await;
    let mirror = json!({ "metadata": { "annotations": { "kubernetes.io/config.mirror": "x" } } });
    pod(world, "mirror", name, mirror).await;
    let attachments: Api<VolumeAttachment> = Api::all(world.people.clone());
    let mut here = Vec::new();
    for (number, on) in [name, "another"].into_iter().enumerate() {
        let name = world.unique(&format!("a{number}"));
        let source = json!({ "persistentVolumeName": "pv" });
        let attachment = json!({ "metadata": { "name": name },
            "spec": { "attacher": "csi", "nodeName": on, "source": source } });
        let attachment = serde_json::from_value(attachment).unwrap();
        attachments
            .create(&PostParams::default(), &attachment)
            .await
            .unwrap();
        here.push(name);
    }
    here.truncate(1);
    let left = client.read_leftovers(&node.name, taken).await.unwrap();
    let mut pods = left.pods.clone();
    pods.sort();
    let named = |name: &str| format!("{}/{name}", world.namespace);
    assert_eq!(pods, [named("other-value"), named("plain")]);
    assert_eq!(left.attachments, here);
    // Of very many, a few are named.
    for number in 0..9 {
        pod(world, &format!("p{number}"), name, json!({})).await;
    }
    let left = client.read_leftovers(&node.name, taken).await.unwrap();
    assert_eq!(left.pods.len(), 5);
}
