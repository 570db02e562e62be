//! A NodeReboot with method PowerCycle over real IPMI: the node is a virtual machine, its
//! coordinator and the controller are the real ones. The test is the kubelet and the person.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::node_reboot::{NodeReboot, node_reboot_crd};
use dogwatch_api::reboot_policy::policy_crd;
use dogwatch_controller::node_reboot::{PowerCycleAccess, run_node_reboots};
use dogwatch_controller::rollout_estimate::EstimateReceiver;
use dogwatch_coordinator::agent::{
    CoordinatorAgent, CoordinatorSetup, DecisionSink, HostOps, NoGateChecker, RebootEnd,
    RebootNotStarted,
};
use dogwatch_coordinator::health::LoopHeartbeat;
use dogwatch_core::name::{BootId, NodeName, RunId};
use dogwatch_core::reboot::{ObservedTrigger, RebootConfig, RebootDecision, RebootSnapshot};
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_testbed::ipmi_sim::guid_of_uuid;
use dogwatch_testbed::vm::GUEST_BOOT_ID;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use tokio::task::AbortHandle;

use super::*;
use crate::support::objects;

const NODE: &str = "n1";
const SYSTEM_UUID: &str = "4c4c4544-0042-3010-8034-b4c04f4d3253";

/// The coordinator's host: the boot id of the virtual machine's kernel, and no reboot command,
/// because its host is switched.
struct SwitchedHost(String);

impl HostOps for SwitchedHost {
    fn read_boot_id(&mut self) -> Result<BootId, String> {
        BootId::new(self.0.clone()).map_err(|error| error.to_string())
    }

    fn watch_triggers(&mut self) -> BoxStream<'static, Vec<ObservedTrigger>> {
        stream::iter([Vec::new()]).chain(stream::pending()).boxed()
    }

    fn read_soft_reboots(&mut self) -> BoxFuture<'static, Option<u32>> {
        std::future::ready(None).boxed()
    }

    fn start_reboot(
        &mut self,
        _within: Duration,
    ) -> BoxFuture<'static, Result<BoxFuture<'static, RebootEnd>, RebootNotStarted>> {
        panic!("a power cycle runs no reboot command")
    }
}

struct NoSink;

impl DecisionSink for NoSink {
    fn on_decision(&self, _seen: &RebootSnapshot, _decision: &RebootDecision) {}
}

/// The coordinator in one boot of the machine; dropping it kills it.
struct Coordinator(AbortHandle);

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The processes of a cluster with one node, which is a virtual machine.
struct SickNode {
    _leader: Leader,
    vm: VirtualMachine,
    client: Client,
    pods: AbortHandle,
}

impl Drop for SickNode {
    fn drop(&mut self) {
        self.pods.abort();
    }
}

impl SickNode {
    async fn start() -> Self {
        let guid = guid_of_uuid(SYSTEM_UUID);
        let vm = VirtualMachine::start_with_guid(GuestMode::Polite, &guid).await;
        let vm = vm.unwrap();
        power_on(&vm).await;
        let client = server_from(Timestamp::now()).client_for_user("controller");
        let [host_crd, secret, mut host] = super::objects(&vm);
        host["metadata"]["annotations"] = json!({ "dogwatch.dev/node": NODE });
        for object in [host_crd, node_reboot_crd(), policy_crd(), secret, host] {
            create(&client, object).await;
        }
        objects::make_namespace(&client, "dogwatch").await;
        create_workload(&client).await;
        let leader = start_controller(&client);
        let pods = tokio::spawn(end_deleted_pods(client.clone())).abort_handle();
        Self {
            _leader: leader,
            vm,
            client,
            pods,
        }
    }

    /// What the guest printed about its kernel in this boot, from 1.
    fn boot_id(&self, boot: usize) -> String {
        let console = self.vm.console_output();
        let text = console.split(GUEST_BOOT_ID).nth(boot).unwrap();
        text.split_whitespace().next().unwrap().to_owned()
    }

    /// The kubelet and the coordinator start in this boot of the machine.
    async fn boot(&self, boot: usize) -> Coordinator {
        let boot_id = self.boot_id(boot);
        let info = json!({ "architecture": "", "bootID": boot_id, "containerRuntimeVersion": "",
            "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "",
            "operatingSystem": "", "osImage": "", "systemUUID": SYSTEM_UUID });
        let ready = json!({ "type": "Ready", "status": "True",
            "lastHeartbeatTime": Timestamp::now(), "lastTransitionTime": Timestamp::now() });
        let status = json!({ "nodeInfo": info, "conditions": [ready] });
        let nodes: Api<Node> = Api::all(self.client.clone());
        objects::change_status(&nodes, NODE, status).await;
        let setup = CoordinatorSetup {
            client: self.client.clone(),
            node_client: self.client.clone(),
            node: NodeName::new(NODE).unwrap(),
            namespace: "dogwatch".into(),
            config: RebootConfig::default(),
            run: RunId::new(format!("coordinator/{boot_id}")).unwrap(),
            clock: ProcessClock::with_wall_clock(Timestamp::now),
            host_ops: Box::new(SwitchedHost(boot_id)),
            gatekeeper: Arc::new(NoGateChecker),
            decision_sink: Arc::new(NoSink),
            heart: LoopHeartbeat::new(),
        };
        let agent = tokio::spawn(async move {
            CoordinatorAgent::new(setup)
                .run(std::future::pending())
                .await;
        });
        Coordinator(agent.abort_handle())
    }

    async fn ask(&self) {
        let spec = json!({ "nodeName": NODE, "method": "PowerCycle", "reason": "GPU is gone" });
        let asked = NodeReboot::new("sick", serde_json::from_value(spec).unwrap());
        let params = PostParams::default();
        self.reboots().create(&params, &asked).await.unwrap();
    }

    fn reboots(&self) -> Api<NodeReboot> {
        Api::all(self.client.clone())
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn reboot(&self) -> NodeReboot {
        self.reboots().get("sick").await.unwrap()
    }

    /// Waits for this status and reason of condition `Succeeded`.
    async fn until_reason(&self, status: &str, reason: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.reboot().await;
            let conditions = found.status.clone().unwrap_or_default().conditions;
            let mut all = conditions.iter();
            if all.any(|it| (&*it.type_, &*it.status, &*it.reason) == ("Succeeded", status, reason))
            {
                return;
            }
            let console = self.vm.console_output();
            assert!(
                Instant::now() < deadline,
                "never {reason}: {found:#?}\n{console}"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }
}

fn start_controller(client: &Client) -> Leader {
    let clock = ProcessClock::with_wall_clock(Timestamp::now);
    let flags = RebootConfig::default();
    let (mut leader, context, showing) = Leader::new(client, "dogwatch", &clock, &flags);
    let power = settings();
    let access = PowerCycleAccess {
        board: power.board.clone(),
        config: power.config,
        is_identity_required: false,
    };
    let watches = ClusterWatch::new(client.clone(), "dogwatch", || 0.5);
    leader.run(showing.publish_watched_views(watches));
    let estimates = EstimateReceiver::without_planner();
    leader.run(run_node_reboots(context.clone(), Some(access), estimates));
    leader.run(power::run_power_controller(context, power));
    leader
}

/// The Node, and a pod of a ReplicaSet on it.
async fn create_workload(client: &Client) {
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": NODE } });
    create(client, node).await;
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w",
        "controller": true }]);
    let pod = json!({ "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web", "namespace": "default", "ownerReferences": owner },
        "spec": { "nodeName": NODE, "containers": [{ "name": "c", "image": "i" }] } });
    create(client, pod).await;
}

/// As the node's kubelet does.
async fn end_deleted_pods(client: Client) {
    let pods: Api<Pod> = Api::namespaced(client, "default");
    loop {
        let all = pods.list(&kube::api::ListParams::default()).await.unwrap();
        for pod in all {
            if pod.metadata.deletion_timestamp.is_some() {
                let now = DeleteParams::default().grace_period(0);
                let _ = pods.delete(&pod.name_any(), &now).await;
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_node_reboot_drains_a_real_machine_cuts_its_power_and_is_served_by_its_next_boot() {
    let node = SickNode::start().await;
    let before = node.boot_id(1);
    let coordinator = node.boot(1).await;
    node.ask().await;
    node.vm.wait_until_powered_off().await.unwrap();
    assert!(
        node.pods().get_opt("web").await.unwrap().is_none(),
        "its power is cut, and a pod is on it"
    );
    drop(coordinator);

    let booted = node.vm.wait_until_console_shows(GUEST_RUNNING, 2);
    booted.await.unwrap();
    let _coordinator = node.boot(2).await;
    node.until_reason("True", "Rebooted").await;
    let attempt = node.reboot().await.status.unwrap().attempts.remove(0);
    assert_eq!(attempt.boot_id_before.as_ref(), Some(&before));
    assert_eq!(attempt.boot_id_after, Some(node.boot_id(2)));
    assert!(attempt.boot_id_after != Some(before));
    let power = attempt.power.unwrap();
    assert!(Some(power.requested_at) <= power.off_at && power.off_at <= power.released_at);
    let shut_down = node.vm.console_output();
    assert!(!shut_down.contains(GUEST_SHUTTING_DOWN), "{shut_down}");
    let nodes: Api<Node> = Api::all(node.client.clone());
    let spec = nodes.get(NODE).await.unwrap().spec.unwrap();
    assert_ne!(spec.unschedulable, Some(true), "it is back in service");
}
