//! Machines and BMCs under the nodes of a cluster.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::Bmc as _;
use dogwatch_bmc::Command;
use dogwatch_sim::api::{ApiServer, Options};
use dogwatch_sim::bmc::{Cause, Park, Shape, State};
use dogwatch_sim::clock::{Clock, TokioClock};
use dogwatch_sim::seed::Seed;
use dogwatch_sim::world::cluster::{Clients, Workload, WorkloadKind};
use dogwatch_sim::world::kubelet::Power;
use dogwatch_sim::world::{Cluster, ClusterSpec};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};

use crate::bench::{CALL, SECOND, after, driver};

struct World {
    server: ApiServer,
    cluster: Cluster,
    park: Park,
}

async fn world() -> World {
    let epoch = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(epoch));
    let server = ApiServer::new(Arc::clone(&clock), Options::default());
    let mut spec = ClusterSpec::new(2, Seed(3));
    let set = WorkloadKind::ReplicaSet { replicas: 2 };
    spec.workloads.push(Workload::new(set, "web"));
    let clients = Clients::embedded(&server);
    let cluster = Cluster::build(spec, clients, Arc::clone(&clock))
        .await
        .unwrap();
    let park = Park::under(&cluster, &clock, |node, _, bmc| {
        if node.as_str() == "n2" {
            bmc.shape = Shape::hpe();
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
        self.server.client("test")
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
    let bmc = world.park.named("n1").unwrap();
    let kubelet = world.cluster.kubelet("n1").unwrap();
    let (first_boot, uuid) = info(&world.node().await);
    assert_eq!(
        uuid,
        bmc.machine().system_uuid(),
        "the BMC tells the Node's UUID"
    );
    assert_eq!(bmc.machine().state().boot().unwrap().as_str(), first_boot);

    let redfish = driver(&bmc, "sekret16");
    redfish.send(Command::Off, CALL).await.unwrap();
    bmc.machine().until(|state| *state == State::Off).await;
    after(Duration::from_millis(1)).await;
    assert_eq!(*kubelet.power().borrow(), Power::Off);
    let last = world.renewed().await;
    after(120 * SECOND).await;
    assert_eq!(world.renewed().await, last, "it is silent");

    redfish.send(Command::On, CALL).await.unwrap();
    after(60 * SECOND).await;
    let (second_boot, _) = info(&world.node().await);
    assert_ne!(second_boot, first_boot);
    assert_eq!(bmc.machine().state().boot().unwrap().as_str(), second_boot);
    assert!(world.renewed().await > last);
    world.cluster.settled().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reboot_by_the_operating_system_keeps_the_power_on() {
    let world = world().await;
    let machine = world.park.named("n1").unwrap().machine();
    let (first_boot, _) = info(&world.node().await);
    world
        .cluster
        .kubelet("n1")
        .unwrap()
        .reboot_taking(5 * SECOND);
    after(10 * SECOND).await;
    let (second_boot, _) = info(&world.node().await);
    assert_ne!(second_boot, first_boot);
    let log = machine.log();
    assert_eq!((log.power_offs(), log.lives.len()), (0, 2), "{log}");
    assert_eq!(log.lives[1].boot.as_str(), second_boot);
    assert_eq!(log.transitions[0].cause, Cause::Reboot);
}

#[tokio::test(start_paused = true)]
async fn a_reboot_that_the_power_cut_overtook_does_not_bring_the_host_back() {
    let world = world().await;
    let machine = world.park.named("n1").unwrap().machine();
    let kubelet = world.cluster.kubelet("n1").unwrap();
    kubelet.reboot_taking(20 * SECOND);
    after(5 * SECOND).await;
    machine.cut(Cause::Hand);
    after(120 * SECOND).await;
    assert_eq!(*kubelet.power().borrow(), Power::Off);
}

#[tokio::test(start_paused = true)]
async fn each_node_has_a_bmc_at_an_address_of_its_own() {
    let world = world().await;
    let address = world.park.address("n2", 8000).unwrap();
    assert_eq!(
        address,
        "redfish+http://127.1.0.2:8000/redfish/v1/Systems/1"
    );
    assert!(world.park.wire("127.1.0.2").is_some());
    assert!(world.park.wire("127.1.0.3").is_none());
    assert!(world.park.wire("elsewhere").is_none());
    assert_eq!(world.park.all().len(), 2);
}
