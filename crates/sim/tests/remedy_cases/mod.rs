//! What remediation keeps, on whatever API server, with simulated machines, kubelets and BMCs.

pub mod bad;
pub mod world;

use dogwatch_core::remedy::{MachineApi, MachineName, ObjectName, Subject, reason};
use dogwatch_sim::bmc::What;
use kube::ResourceExt as _;
use serde_json::json;

pub use self::bad::whatever_is_wrong_is_said_with_what_to_do_and_the_healthy_one_beside_it_is_served;
use self::world::{KEY, NEED, World};

/// Hands the name of each case to a macro that runs it somewhere.
#[macro_export]
macro_rules! every_remedy_case {
    ($run:ident) => {
        $run! {
            a_marked_machine_is_proved_off_its_node_deleted_and_it_comes_back_as_it_was
            a_marked_node_without_a_machine_is_remediated_by_the_host_that_names_it
            a_request_deletes_the_node_and_succeeds_when_it_is_ready_again
            a_request_taints_the_node_releases_its_workloads_and_lifts_the_taint
            a_hung_bmc_delays_no_other_and_its_node_stays
            another_leader_carries_a_remediation_on
            a_need_that_is_taken_away_before_the_key_is_not_served
            whatever_is_wrong_is_said_with_what_to_do_and_the_healthy_one_beside_it_is_served
        }
    };
}

/// In the order of the world: what must not be lost with the Node.
async fn dress(world: &World, short: &str) {
    let body = json!({
        "metadata": { "labels": { "rack": "r1" }, "annotations": { "owner": "storage" } },
        "spec": { "unschedulable": true,
            "taints": [{ "key": "gpu", "value": "yes", "effect": "NoSchedule" }] },
    });
    world.change_node(short, body).await;
}

async fn is_dressed(world: &World, short: &str) -> bool {
    let Some(node) = world.node(short).await else {
        return false;
    };
    let spec = node.spec.clone().unwrap_or_default();
    let mut taints = spec.taints.into_iter().flatten();
    node.labels().get("rack").is_some_and(|it| it == "r1")
        && node
            .annotations()
            .get("owner")
            .is_some_and(|it| it == "storage")
        && spec.unschedulable == Some(true)
        && taints.any(|taint| taint.key == "gpu")
        && !node.annotations().contains_key(NEED)
}

pub async fn a_marked_machine_is_proved_off_its_node_deleted_and_it_comes_back_as_it_was(
    world: &World,
) {
    let bmc = world.host("h0", &json!({})).await;
    world.machine("h0").await;
    dress(world, "h0").await;
    let old = world.node_uid("h0").await;
    let process = world.process("first");
    world.metal.until_ready("h0").await;
    world.mark_machine("h0", Some("")).await;
    world
        .until("the Node is gone", || async {
            world.node("h0").await.is_none()
        })
        .await;
    assert!(
        bmc.machine().state().living().is_none(),
        "the machine lives"
    );
    world
        .until("it is back", || world.is_back("h0", &old, &bmc))
        .await;
    world
        .until("what was on it is back", || is_dressed(world, "h0"))
        .await;
    assert!(!world.machine_needs("h0").await);
    world.metal.time_passes().await;
    let log = bmc.machine().log();
    assert_eq!((log.power_offs(), log.power_ons()), (1, 1), "{log}");
    assert!(world.is_clean("h0", &bmc).await);
    let page = process.metrics.render();
    for step in ["KeyAdded", "Released", "PoweredOn", "NodeReady"] {
        let count = format!("dogwatch_remediation_steps_seconds_count{{step=\"{step}\"}} 1\n");
        assert!(page.contains(&count), "{step}: {page}");
    }
    let said = world.said().await.into_iter();
    let said: Vec<String> = said.filter_map(|event| event.reason).collect();
    assert!(said.iter().any(|it| it == reason::RELEASED), "{said:?}");
}

pub async fn a_marked_node_without_a_machine_is_remediated_by_the_host_that_names_it(
    world: &World,
) {
    let name = world.node_name("h0");
    let bmc = world
        .host("h0", &json!({ "dogwatch.dev/node": name.as_str() }))
        .await;
    dress(world, "h0").await;
    let old = world.node_uid("h0").await;
    let _process = world.process("first");
    world.metal.until_ready("h0").await;
    world.mark_node("h0").await;
    world
        .until("it is back", || world.is_back("h0", &old, &bmc))
        .await;
    world
        .until("what was on it is back", || is_dressed(world, "h0"))
        .await;
    world.metal.time_passes().await;
    let log = bmc.machine().log();
    assert_eq!((log.power_offs(), log.power_ons()), (1, 1), "{log}");
}

async fn has_succeeded(world: &World, short: &str) -> bool {
    let request = world.requests().get(short).await.unwrap();
    let conditions = request.data["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Succeeded" && it["status"] == "True")
}

pub async fn a_request_deletes_the_node_and_succeeds_when_it_is_ready_again(world: &World) {
    let name = world.node_name("h0");
    let bmc = world
        .host("h0", &json!({ "dogwatch.dev/node": name.as_str() }))
        .await;
    dress(world, "h0").await;
    let old = world.node_uid("h0").await;
    let _process = world.process("first");
    world.metal.until_ready("h0").await;
    world.kubelet_dies("h0").await;
    world.request("h0", "DeleteNode").await;
    world
        .until("it is back", || world.is_back("h0", &old, &bmc))
        .await;
    world
        .until("it has succeeded", || has_succeeded(world, "h0"))
        .await;
    world
        .until("what was on it is back", || is_dressed(world, "h0"))
        .await;
    world.metal.time_passes().await;
    let log = bmc.machine().log();
    assert_eq!((log.power_offs(), log.power_ons()), (1, 1), "{log}");
}

pub async fn a_request_taints_the_node_releases_its_workloads_and_lifts_the_taint(world: &World) {
    let name = world.node_name("h0");
    let bmc = world
        .host("h0", &json!({ "dogwatch.dev/node": name.as_str() }))
        .await;
    let old = world.node_uid("h0").await;
    let _process = world.process("first");
    world.metal.until_ready("h0").await;
    world.kubelet_dies("h0").await;
    world.request("h0", "OutOfServiceTaint").await;
    world
        .until("it has succeeded", || has_succeeded(world, "h0"))
        .await;
    world
        .until("nothing is left", || world.is_clean("h0", &bmc))
        .await;
    let node = world.node("h0").await.unwrap();
    assert_eq!(node.uid().as_deref(), Some(&*old), "the Node is the same");
    let taints = node.spec.unwrap_or_default().taints.unwrap_or_default();
    let mut keys = taints.iter().map(|taint| taint.key.as_str());
    assert!(!keys.any(|key| key == "node.kubernetes.io/out-of-service"));
    let log = bmc.machine().log();
    assert_eq!((log.power_offs(), log.power_ons()), (1, 1), "{log}");
}

pub async fn a_hung_bmc_delays_no_other_and_its_node_stays(world: &World) {
    let hung = world.host("hung", &json!({})).await;
    let bmc = world.host("h0", &json!({})).await;
    for short in ["hung", "h0"] {
        world.machine(short).await;
    }
    let (old, hung_node) = (world.node_uid("h0").await, world.node_uid("hung").await);
    let process = world.process("first");
    for short in ["hung", "h0"] {
        world.metal.until_ready(short).await;
    }
    hung.add(What::Hang);
    world.mark_machine("hung", Some("")).await;
    world.mark_machine("h0", Some("")).await;
    world
        .until("the other is back", || world.is_back("h0", &old, &bmc))
        .await;
    assert_eq!(
        world.node_uid("hung").await,
        hung_node,
        "what hangs is not off"
    );
    let name = MachineName {
        api: MachineApi::OpenShift,
        object: ObjectName::new(&world.metal.namespace, "hung"),
    };
    let shown = process.board.case(&Subject::Machine(name)).unwrap();
    let because = &shown.decision.because;
    assert_ne!(because.reason, reason::RELEASED, "{because:?}");
    hung.cure_all();
    world
        .until("it is served as well", || {
            world.is_back("hung", &hung_node, &hung)
        })
        .await;
    let log = hung.machine().log();
    assert_eq!((log.power_offs(), log.power_ons()), (1, 1), "{log}");
}

pub async fn another_leader_carries_a_remediation_on(world: &World) {
    let bmc = world.host("h0", &json!({})).await;
    world.machine("h0").await;
    let old = world.node_uid("h0").await;
    let first = world.process("first");
    world.metal.until_ready("h0").await;
    world.mark_machine("h0", Some("")).await;
    world
        .until("the key is there", || async {
            let host = world.metal.read("h0").await;
            host.annotations.contains_key(KEY)
        })
        .await;
    first.terms.send_replace(None);
    world
        .until("it has nothing in hand", || async {
            first.board.cases().is_empty()
        })
        .await;
    let _second = world.process("second");
    world
        .until("it is back", || world.is_back("h0", &old, &bmc))
        .await;
    world.metal.time_passes().await;
    let log = bmc.machine().log();
    assert_eq!((log.power_offs(), log.power_ons()), (1, 1), "{log}");
}

pub async fn a_need_that_is_taken_away_before_the_key_is_not_served(world: &World) {
    let bmc = world.host("h0", &json!({})).await;
    world.machine("h0").await;
    let old = world.node_uid("h0").await;
    let process = world.process("first");
    // Its power cannot be read: the table says nothing.
    bmc.add(What::Hang);
    world.mark_machine("h0", Some("")).await;
    world
        .until("it is in hand", || async {
            !process.board.cases().is_empty()
        })
        .await;
    world.mark_machine("h0", None).await;
    bmc.cure_all();
    world.metal.until_ready("h0").await;
    world
        .until("nothing is left", || world.is_clean("h0", &bmc))
        .await;
    assert_eq!(world.node_uid("h0").await, old);
    assert_eq!(bmc.machine().log().power_offs(), 0);
}
