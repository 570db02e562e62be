//! Machines and BMCs under the nodes of a cluster.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::Bmc as _;
use dogwatch_bmc::PowerCommand;
use dogwatch_kubesim::api::{ApiServer, ApiServerOptions};
use dogwatch_kubesim::clock::{ClusterClock, TokioClock};
use dogwatch_kubesim::machine::{MachineState, TransitionCause};
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::cluster::{ClusterClients, SimulatedWorkload, WorkloadKind};
use dogwatch_kubesim::world::kubelet::MachinePower;
use dogwatch_kubesim::world::{ClusterSpec, SimulatedCluster};
use dogwatch_sim::bmc::{BmcFleet, MakerProfile};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};

use crate::bench::{CALL, SECOND, after, driver};

struct World {
    server: ApiServer,
    cluster: SimulatedCluster,
    park: BmcFleet,
}

async fn world() -> World {
    let epoch = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
    let clock: Arc<dyn ClusterClock> = Arc::new(TokioClock::starting_at(epoch));
    let server = ApiServer::new(Arc::clone(&clock), ApiServerOptions::default());
    let mut spec = ClusterSpec::new(2, SimulationSeed(3));
    let set = WorkloadKind::ReplicaSet { replicas: 2 };
    spec.workloads.push(SimulatedWorkload::new(set, "web"));
    let clients = ClusterClients::for_embedded_server(&server);
    let cluster = SimulatedCluster::build_and_settle(spec, clients, Arc::clone(&clock))
        .await
        .unwrap();
    let park = BmcFleet::for_cluster(&cluster, &clock, |node, _, bmc| {
        if node == "n2" {
            bmc.profile = MakerProfile::hpe();
        }
    });
    World {
        server,
        cluster,
        park,
    }
}

impl World {
    fn client(&self) -> Client {
        self.server.client_for_user("test")
    }

    async fn node(&self) -> Node {
        Api::<Node>::all(self.client()).get("n1").await.unwrap()
    }

    async fn renewed(&self) -> Timestamp {
        let leases: Api<Lease> = Api::namespaced(self.client(), "kube-node-lease");
        let spec = leases.get("n1").await.unwrap().spec.unwrap();
        spec.renew_time.unwrap().0
    }
}

fn info(node: &Node) -> (String, String) {
    let info = node.status.as_ref().unwrap().node_info.clone().unwrap();
    (info.boot_id, info.system_uuid)
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_lives_only_while_its_machine_has_power() {
    let world = world().await;
    let bmc = world.park.find_bmc("n1").unwrap();
    let kubelet = world.cluster.find_kubelet("n1").unwrap();
    let (first_boot, uuid) = info(&world.node().await);
    assert_eq!(
        uuid,
        bmc.machine().system_uuid(),
        "the BMC tells the Node's UUID"
    );
    assert_eq!(bmc.machine().power_state().boot_id().unwrap(), first_boot);

    let redfish = driver(&bmc, "sekret16");
    redfish.send_command(PowerCommand::Off, CALL).await.unwrap();
    bmc.machine()
        .wait_for_state(|state| *state == MachineState::Off)
        .await;
    after(Duration::from_millis(1)).await;
    assert_eq!(*kubelet.watch_power().borrow(), MachinePower::Off);
    let last = world.renewed().await;
    after(120 * SECOND).await;
    assert_eq!(world.renewed().await, last, "it is silent");

    redfish.send_command(PowerCommand::On, CALL).await.unwrap();
    after(60 * SECOND).await;
    let (second_boot, _) = info(&world.node().await);
    assert_ne!(second_boot, first_boot);
    assert_eq!(bmc.machine().power_state().boot_id().unwrap(), second_boot);
    assert!(world.renewed().await > last);
    world.cluster.wait_until_settled().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reboot_by_the_operating_system_keeps_the_power_on() {
    let world = world().await;
    let machine = world.park.find_bmc("n1").unwrap().machine();
    let (first_boot, _) = info(&world.node().await);
    world
        .cluster
        .find_kubelet("n1")
        .unwrap()
        .reboot_taking(5 * SECOND);
    after(10 * SECOND).await;
    let (second_boot, _) = info(&world.node().await);
    assert_ne!(second_boot, first_boot);
    let log = machine.transition_log();
    assert_eq!((log.count_power_offs(), log.lives.len()), (0, 2), "{log}");
    assert_eq!(log.lives[1].boot.as_str(), second_boot);
    assert_eq!(log.transitions[0].cause, TransitionCause::Reboot);
}

#[tokio::test(start_paused = true)]
async fn a_reboot_that_the_power_cut_overtook_does_not_bring_the_host_back() {
    let world = world().await;
    let machine = world.park.find_bmc("n1").unwrap().machine();
    let kubelet = world.cluster.find_kubelet("n1").unwrap();
    kubelet.reboot_taking(20 * SECOND);
    after(5 * SECOND).await;
    machine.cut_power(TransitionCause::Hand);
    after(120 * SECOND).await;
    assert_eq!(*kubelet.watch_power().borrow(), MachinePower::Off);
}

#[tokio::test(start_paused = true)]
async fn each_node_has_a_bmc_at_an_address_of_its_own() {
    let world = world().await;
    let address = world.park.bmc_address("n2", 8000).unwrap();
    assert_eq!(
        address,
        "redfish+http://127.1.0.2:8000/redfish/v1/Systems/1"
    );
    assert!(world.park.transport_to_host("127.1.0.2").is_some());
    assert!(world.park.transport_to_host("127.1.0.3").is_none());
    assert!(world.park.transport_to_host("elsewhere").is_none());
    assert_eq!(world.park.list_bmcs().len(), 2);
}
