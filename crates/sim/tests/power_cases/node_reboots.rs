//! A NodeReboot with method PowerCycle: a real power controller, a simulated BMC, and a coordinator
//! by hand. Source: specification §10.1.

use dogwatch_api::annotation;
use dogwatch_api::node_reboot::{NodeReboot, node_reboot_crd};
use dogwatch_api::reboot_policy::policy_crd;
use dogwatch_core::node_reboot::HostKeyPatch;
use dogwatch_k8s::node_reboot::{NodeRebootClient, NodeRebootObject, convert_node_reboot};
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::assert_cycled_once;
use super::world::World;
use crate::support::objects;

const AT: &str = "2026-11-21T22:00:00Z";

struct SickNode<'a> {
    world: &'a World,
    name: String,
}

impl<'a> SickNode<'a> {
    async fn on_host(world: &'a World, host: &str) -> Self {
        objects::install(&world.client, [node_reboot_crd(), policy_crd()]).await;
        let name = format!("{}-n1", world.namespace);
        world.annotate(host, annotation::NODE, Some(&name)).await;
        let node = Self { world, name };
        objects::until_served(&node.reboots()).await;
        let object = json!({ "metadata": { "name": node.name } });
        objects::create(&node.nodes(), object).await;
        node.boot("boot-1").await;
        node
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.world.client.clone())
    }

    fn reboots(&self) -> Api<NodeReboot> {
        Api::all(self.world.client.clone())
    }

    async fn boot(&self, boot_id: &str) {
        let info = json!({ "architecture": "", "bootID": boot_id, "containerRuntimeVersion": "",
            "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "",
            "operatingSystem": "", "osImage": "", "systemUUID": "" });
        let status = json!({ "nodeInfo": info });
        objects::change_status(&self.nodes(), &self.name, status).await;
    }

    async fn ask_power_cycle(&self) {
        self.ask_method(&self.name, "PowerCycle").await;
    }

    async fn ask_method(&self, name: &str, method: &str) {
        let spec = json!({ "nodeName": self.name, "method": method });
        let made = NodeReboot::new(name, serde_json::from_value(spec).unwrap());
        let params = PostParams::default();
        self.reboots().create(&params, &made).await.unwrap();
    }

    async fn request(&self) -> Option<Value> {
        let node = self.nodes().get(&self.name).await.unwrap();
        let text = node.annotations().get(annotation::REBOOT_REQUESTED)?;
        Some(serde_json::from_str(text).unwrap())
    }

    /// The coordinator writes its record in this phase.
    async fn record(&self, trigger: &Value, phase: &str) {
        let record = json!({
            "phase": phase, "run": "coordinator/a", "since": AT, "planned": AT,
            "trigger": trigger, "bootId": "boot-1", "cordonedByUs": true, "attempts": 0,
            "message": format!("is {phase}"), "began": { phase: AT },
        });
        let annotations = json!({ annotation::REBOOT: record.to_string() });
        let body = json!({ "metadata": { "annotations": annotations },
            "spec": { "unschedulable": true } });
        objects::change(&self.nodes(), &self.name, body).await;
    }

    async fn finish(&self, trigger: &Value) {
        let last = json!({ "outcome": "Rebooted", "planned": AT, "finished": AT,
            "oldBootId": "boot-1", "newBootId": "boot-2", "trigger": trigger });
        let annotations = json!({ annotation::REBOOT: null, annotation::REBOOT_REQUESTED: null,
            annotation::LAST_REBOOT: last.to_string() });
        let body = json!({ "metadata": { "annotations": annotations } });
        objects::change(&self.nodes(), &self.name, body).await;
    }

    async fn until_reason(&self, status: &str, reason: &str) {
        self.until_reason_of(&self.name, status, reason).await;
    }

    async fn until_reason_of(&self, name: &str, status: &str, reason: &str) {
        let is_so = || async {
            let found = self.reboots().get(name).await.unwrap();
            let conditions = found.status.unwrap_or_default().conditions;
            let mut all = conditions.iter();
            let found = all.find(|one| one.type_ == "Succeeded");
            found.is_some_and(|one| one.status == status && one.reason == reason)
        };
        self.world.until(&format!("{status} {reason}"), is_so).await;
    }

    async fn end(&self) {
        let params = DeleteParams::default();
        self.reboots().delete(&self.name, &params).await.unwrap();
        self.nodes().delete(&self.name, &params).await.unwrap();
    }
}

pub async fn a_node_reboot_has_the_host_of_its_drained_node_switched_off_and_on(world: &World) {
    let bmc = world.host("h0").await;
    let node = SickNode::on_host(world, "h0").await;
    let process = world.process_with_node_reboots("first");
    world.until_ready("h0").await;
    node.ask_power_cycle().await;
    world
        .until("the Node is asked", || async {
            node.request().await.is_some()
        })
        .await;
    let request = node.request().await.unwrap();
    assert_eq!(request["method"], "PowerCycle");
    let trigger = json!({ "source": "request", "reason": request["reason"],
        "requester": request["requester"], "nodeReboots": request["nodeReboots"],
        "method": request["method"] });
    node.record(&trigger, "draining").await;
    node.until_reason("Unknown", "DrainingNode").await;
    assert!(bmc.machine().power_state().is_powered(), "it only drains");
    node.record(&trigger, "rebooting").await;
    node.until_reason("Unknown", "SwitchingOn").await;
    bmc.machine()
        .wait_for_state(dogwatch_kubesim::machine::MachineState::is_powered)
        .await;
    let host = world.read("h0").await;
    let mut keys = host.annotations.keys();
    assert!(
        !keys.any(|key| key.starts_with("reboot.metal3.io")),
        "{host:?}"
    );
    node.boot("boot-2").await;
    node.record(&trigger, "returning").await;
    node.finish(&trigger).await;
    node.until_reason("True", "Rebooted").await;
    let found = node.reboots().get(&node.name).await.unwrap();
    let attempt = found.status.unwrap().attempts.remove(0);
    let power = attempt.power.unwrap();
    assert_eq!(power.host, format!("{}/h0", world.namespace));
    assert!(Some(power.requested_at) <= power.off_at && power.off_at <= power.released_at);
    assert_cycled_once(&bmc);
    drop(process);
    node.end().await;
}

/// "Several for one node that has not begun are served by one reboot of the strongest method asked;
/// each gets its outcome"
pub async fn the_strongest_method_of_two_serves_both(world: &World) {
    let bmc = world.host("h0").await;
    let node = SickNode::on_host(world, "h0").await;
    let process = world.process_with_node_reboots("first");
    world.until_ready("h0").await;
    let weaker = format!("{}-weaker", node.name);
    node.ask_method(&weaker, "Reboot").await;
    node.until_reason_of(&weaker, "Unknown", "WaitingForLock")
        .await;
    node.ask_power_cycle().await;
    node.until_reason("Unknown", "WaitingForLock").await;
    let request = node.request().await.unwrap();
    assert_eq!(request["method"], "PowerCycle");
    assert_eq!(request["nodeReboots"].as_array().unwrap().len(), 2);
    let trigger = json!({ "source": "request", "reason": request["reason"],
        "requester": request["requester"], "nodeReboots": request["nodeReboots"],
        "method": request["method"] });
    node.record(&trigger, "draining").await;
    node.record(&trigger, "rebooting").await;
    node.until_reason("Unknown", "SwitchingOn").await;
    bmc.machine()
        .wait_for_state(dogwatch_kubesim::machine::MachineState::is_powered)
        .await;
    node.boot("boot-2").await;
    node.record(&trigger, "returning").await;
    node.finish(&trigger).await;
    node.until_reason("True", "Rebooted").await;
    node.until_reason_of(&weaker, "True", "Rebooted").await;
    assert_cycled_once(&bmc);
    drop(process);
    let params = DeleteParams::default();
    node.reboots().delete(&weaker, &params).await.unwrap();
    node.end().await;
}

/// "No host known: refused before anything begins"
pub async fn a_power_cycle_of_a_node_without_a_host_is_refused_before_anything_begins(
    world: &World,
) {
    let _bmc = world.host("h0").await;
    let node = SickNode::on_host(world, "h0").await;
    world.annotate("h0", annotation::NODE, None).await;
    let process = world.process_with_node_reboots("first");
    world.until_ready("h0").await;
    node.ask_power_cycle().await;
    node.until_reason("False", "NoHostKnown").await;
    assert_eq!(node.request().await, None);
    drop(process);
    node.end().await;
}

pub async fn a_key_is_not_put_on_a_host_for_an_older_version_of_a_nodereboot(world: &World) {
    let _bmc = world.host("h0").await;
    let node = SickNode::on_host(world, "h0").await;
    node.ask_power_cycle().await;
    let client = NodeRebootClient::new(world.leading.clone());
    let as_read: Api<NodeRebootObject> = Api::all(world.client.clone());
    let older = convert_node_reboot(&as_read.get(&node.name).await.unwrap());
    let status = json!({ "phase": "Waiting" });
    objects::change_status(&node.reboots(), &node.name, status).await;
    let newest = convert_node_reboot(&as_read.get(&node.name).await.unwrap());
    assert_ne!(older.resource_version, newest.resource_version);

    let host = world.read("h0").await;
    let key = format!("{}{}", annotation::NODE_REBOOT_PREFIX, older.uid);
    let patch = HostKeyPatch {
        host: host.name.clone(),
        uid: host.uid.clone(),
        resource_version: host.resource_version.clone(),
        key: key.clone(),
        value: Some("{}".into()),
        removes_confirmation: false,
    };
    assert_eq!(client.put_host_key(&older, &patch).await.unwrap(), None);
    let same = world.read("h0").await;
    assert_eq!(same.resource_version, host.resource_version);
    let written = client.put_host_key(&newest, &patch).await.unwrap();
    assert!(written.unwrap().annotations.contains_key(&key));

    let host = world.read("h0").await;
    node.reboots()
        .delete(&node.name, &DeleteParams::default())
        .await
        .unwrap();
    let patch = HostKeyPatch {
        resource_version: host.resource_version.clone(),
        ..patch
    };
    let gone = client.put_host_key(&newest, &patch).await.unwrap();
    assert_eq!(gone, None, "there is no NodeReboot any more");
    let params = DeleteParams::default();
    node.nodes().delete(&node.name, &params).await.unwrap();
}
