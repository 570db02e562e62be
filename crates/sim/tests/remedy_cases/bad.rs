//! Mistakes that a person may make. Each is reported on the object that it is about, with the next
//! step to take; nothing else is done about it, and a healthy remediation beside it completes.

use dogwatch_core::remediation::RemediationReason;
use dogwatch_sim::bmc::{BmcFaultKind, SimBmc};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};

use super::world::{KEY, NEED, World};
use crate::support::objects::{self, HOST};

/// Keys of other operators, however much they look like ours.
const FOREIGN: [&str; 3] = [
    KEY,
    "reboot.metal3.io/machine-remediation-of-mine",
    "reboot.metal3.io/power-remediation-mine",
];

#[derive(Debug, Clone, Copy)]
enum Kind {
    Machine,
    Node,
    Request,
    Host,
}

/// The object, the expected reason, and a part of the message with the next step.
type Row = (Kind, &'static str, &'static str, &'static str);

const ROWS: [Row; 15] = [
    (
        Kind::Machine,
        "unlinked",
        RemediationReason::NoHost.as_str(),
        "write the annotation: NAMESPACE/NAME of its host",
    ),
    (
        Kind::Machine,
        "garbled",
        RemediationReason::BadHostLink.as_str(),
        "is not NAMESPACE/NAME; correct it",
    ),
    (
        Kind::Machine,
        "dangling",
        RemediationReason::HostNotFound.as_str(),
        "which does not exist; correct annotation metal3.io/BareMetalHost",
    ),
    (
        Kind::Machine,
        "abroad",
        RemediationReason::BadHostLink.as_str(),
        "no spec.consumerRef that confirms it; write it there, or correct the link",
    ),
    (
        Kind::Machine,
        "denied",
        RemediationReason::HostOfAnother.as_str(),
        "correct the wrong one",
    ),
    (
        Kind::Machine,
        "twin-a",
        RemediationReason::HostShared.as_str(),
        "correct annotation metal3.io/BareMetalHost of one",
    ),
    (
        Kind::Machine,
        "twin-b",
        RemediationReason::HostShared.as_str(),
        "correct annotation metal3.io/BareMetalHost of one",
    ),
    (
        Kind::Machine,
        "same-a",
        RemediationReason::NodeShared.as_str(),
        "delete the machine that is not this node",
    ),
    (
        Kind::Machine,
        "same-b",
        RemediationReason::NodeShared.as_str(),
        "delete the machine that is not this node",
    ),
    (
        Kind::Machine,
        "swapped",
        RemediationReason::WrongHost.as_str(),
        "correct spec.bmc.address, or the link to the host",
    ),
    (
        Kind::Node,
        "alone",
        RemediationReason::NoHost.as_str(),
        "write it on the host that runs this Node",
    ),
    (
        Kind::Node,
        "owned",
        RemediationReason::NodeOfAMachine.as_str(),
        "mark the Machine instead",
    ),
    (
        Kind::Request,
        "nowhere",
        RemediationReason::NoNode.as_str(),
        "write it on the host that runs this Node",
    ),
    (
        Kind::Request,
        "anew",
        RemediationReason::NodeReplaced.as_str(),
        "delete the request",
    ),
    (
        Kind::Host,
        "foreign",
        RemediationReason::ForeignKey.as_str(),
        "its writer must remove it",
    ),
];

/// Nodes that no kubelet created.
const NODES: [&str; 5] = ["swapped", "alone", "owned", "anew", "same"];

pub async fn whatever_is_wrong_is_said_with_what_to_do_and_the_healthy_one_beside_it_is_served(
    world: &World,
) {
    let healthy = world.member("h0").await;
    for short in NODES {
        make_node(world, short).await;
    }
    let untouched = wrong_hosts(world).await;
    wrong_machines(world).await;
    let _process = world.process_over("first", &[&healthy]).await;
    for short in ["nowhere", "anew"] {
        world.request(short, "DeleteNode").await;
    }
    for short in ["alone", "owned"] {
        world.mark_node(short).await;
    }
    world.mark_machine("h0", Some("")).await;
    make_anew(world).await;

    world.until_back(&healthy).await;
    for row in ROWS {
        is_said(world, row).await;
    }
    for bmc in untouched {
        let log = bmc.machine().transition_log();
        assert_eq!(log.count_power_offs(), 0, "{}: {log}", bmc.name());
    }
    let standing = world.metal.read("foreign").await.annotations;
    for key in FOREIGN {
        assert_eq!(standing.get(key).map(String::as_str), Some("mine"));
    }
    for short in NODES {
        assert!(world.node(short).await.is_some(), "{short} was released");
    }
    clear_away(world).await;
}

/// A request for a Node waits because its BMC hangs; meanwhile the Node is recreated.
async fn make_anew(world: &World) {
    world
        .until("it is known for which Node it is", || async {
            let request = world.requests().get("anew").await.unwrap();
            request.data["status"]["node"]["uid"].is_string()
        })
        .await;
    let (name, params) = (world.node_name("anew"), DeleteParams::default());
    world.nodes().delete(name.as_str(), &params).await.unwrap();
    make_node(world, "anew").await;
}

async fn make_node(world: &World, short: &str) {
    let node = json!({
        "metadata": { "name": world.node_name(short).as_str() },
        "status": { "nodeInfo": { "systemUUID": "4c4c4544-0047-4b90-80f1-b5c04f4e4833" } },
    });
    objects::create(&world.nodes(), node).await;
}

/// Creates hosts with mistakes. Returns the BMCs whose power nobody may touch.
async fn wrong_hosts(world: &World) -> Vec<SimBmc> {
    let metal = &world.metal;
    let mut untouched = Vec::new();
    for short in ["shared", "same-a", "same-b"] {
        untouched.push(metal.host(short).await);
    }
    let somebody = json!({ "spec": { "consumerRef": {
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "namespace": metal.namespace, "name": "somebody" } } });
    let anew = world.node_name("anew");
    let anew = json!({ "metadata": { "annotations": { "dogwatch.dev/node": anew.as_str() } } });
    for (short, more) in [("denied", somebody), ("anew", anew)] {
        let bmc = metal.machine(short);
        if short == "anew" {
            bmc.add_fault(BmcFaultKind::Hang);
        }
        metal.put_host(short, &more).await;
        untouched.push(bmc);
    }
    metal.host("swapped").await;
    metal.machine("foreign");
    let keys: Vec<(&str, &str)> = FOREIGN.map(|key| (key, "mine")).to_vec();
    let keys: Value = keys.into_iter().collect();
    let keys = json!({ "metadata": { "annotations": keys } });
    metal.put_host("foreign", &keys).await;
    let abroad = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": abroad(world) }, "spec": { "online": true },
    });
    objects::create(&elsewhere(world), abroad).await;
    untouched
}

/// A host in another namespace.
fn abroad(world: &World) -> String {
    format!("{}-abroad", world.metal.namespace)
}

fn elsewhere(world: &World) -> Api<DynamicObject> {
    objects::objects(&world.metal.client, "default", HOST)
}

/// Marks all wrong Machines except one, whose Node is marked instead.
async fn wrong_machines(world: &World) {
    let here = |host: &str| Some(format!("{}/{host}", world.metal.namespace));
    let rows = [
        ("unlinked", None, "unlinked"),
        ("garbled", Some("rack 7".to_owned()), "garbled"),
        ("dangling", here("absent"), "dangling"),
        (
            "abroad",
            Some(format!("default/{}", abroad(world))),
            "abroad",
        ),
        ("denied", here("denied"), "denied"),
        ("twin-a", here("shared"), "twin-a"),
        ("twin-b", here("shared"), "twin-b"),
        ("same-a", here("same-a"), "same"),
        ("same-b", here("same-b"), "same"),
        ("swapped", here("swapped"), "swapped"),
        ("owned", here("absent"), "owned"),
    ];
    for (short, host, node) in rows {
        let need = (short != "owned").then_some("");
        let machine = json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": { "name": short, "annotations": {
                "example.com/why": "a test", "metal3.io/BareMetalHost": host, NEED: need } },
            "spec": {},
        });
        objects::create(&world.machines(), without_null(machine)).await;
        let node = world.node_name(node);
        let carries = json!({ "nodeRef": { "kind": "Node", "name": node.as_str() } });
        objects::change_status(&world.machines(), short, carries).await;
    }
}

fn without_null(mut machine: Value) -> Value {
    let annotations = machine["metadata"]["annotations"].as_object_mut();
    annotations.unwrap().retain(|_, value| !value.is_null());
    machine
}

/// Checks the condition and the Warning. A host has no remediation condition.
async fn is_said(world: &World, (kind, short, reason, words): Row) {
    let says = |it: &Value| it["reason"] == reason && has(it["message"].as_str(), words);
    world
        .until(&format!("{short} says {reason}: {words}"), || async {
            let conditions = conditions(world, kind, short).await;
            let mut own = conditions.iter().filter(|it| it["type"] == "Remediation");
            matches!(kind, Kind::Host) || own.any(says)
        })
        .await;
    let is_it = |event: &Event| {
        let about = event.involved_object.name.as_deref();
        event.reason.as_deref() == Some(reason)
            && event.type_.as_deref() == Some("Warning")
            && about.is_some_and(|about| about.ends_with(short))
            && has(event.message.as_deref(), words)
    };
    world
        .until(&format!("an Event of {short} says {reason}"), || async {
            world.said().await.iter().any(is_it)
        })
        .await;
}

fn has(text: Option<&str>, words: &str) -> bool {
    text.is_some_and(|text| text.contains(words))
}

async fn conditions(world: &World, kind: Kind, short: &str) -> Vec<Value> {
    let object = match kind {
        Kind::Machine => world.machines().get(short).await.unwrap().data,
        Kind::Request => world.requests().get(short).await.unwrap().data,
        Kind::Node => serde_json::to_value(world.node(short).await).unwrap(),
        Kind::Host => Value::Null,
    };
    let conditions = object["status"]["conditions"].as_array();
    conditions.cloned().unwrap_or_default()
}

/// Deletes the Nodes that no kubelet created, and the objects in the other namespace.
async fn clear_away(world: &World) {
    let params = DeleteParams::default();
    for short in NODES {
        let name = world.node_name(short);
        world.nodes().delete(name.as_str(), &params).await.unwrap();
    }
    let abroad = abroad(world);
    elsewhere(world).delete(&abroad, &params).await.unwrap();
}

/// `h0` is marked, and its Node may not be deleted; a request beside it that taints is served. Then
/// the right is granted.
pub async fn what_needs_no_deletion_is_served_without_the_right_to_it<F: Future<Output = ()>>(
    world: &World,
    give_right: impl Fn() -> F,
) {
    let member = world.member("h0").await;
    let beside = world.named_member("h1").await;
    let _process = world.process_over("first", &[&member, &beside]).await;
    world.kubelet_dies("h1").await;
    world.mark_machine("h0", Some("")).await;
    world.request("h1", "OutOfServiceTaint").await;
    is_said(
        world,
        (
            Kind::Machine,
            "h0",
            RemediationReason::Refused.as_str(),
            "delete nodes",
        ),
    )
    .await;
    is_said(
        world,
        (
            Kind::Machine,
            "h0",
            RemediationReason::Refused.as_str(),
            "deploy/remediation",
        ),
    )
    .await;
    super::until_succeeded(world, "h1").await;
    world
        .until("nothing of it is left", || world.is_clean(&beside))
        .await;
    assert_eq!(world.node_uid("h0").await, member.uid);
    give_right().await;
    world.until_back(&member).await;
    for member in [&member, &beside] {
        member.assert_cycled_once();
    }
}
