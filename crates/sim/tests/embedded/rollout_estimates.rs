//! The estimates of a leading controller: the metric, the status of a NodeReboot, and the Node's
//! annotation. The planner is a test's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_api::annotation;
use dogwatch_controller::node_reboot::run_node_reboots;
use dogwatch_controller::rollout_estimate::{EstimateReceiver, run_rollout_estimates};
use dogwatch_core::Now;
use dogwatch_core::explain::FleetSnapshot;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::NodeRebootEstimate;
use dogwatch_core::reboot::RebootConfig;
use dogwatch_core::report::{EstimateRollout, FleetEstimate, GroupEstimate, NodeEstimate};
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_kubesim::api::{ApiServer, ApiVerb};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::json;

use crate::node_reboot_cases::world::World;
use crate::support::embedded::{asked, clock_from, server_from};
use crate::support::leader::Leader;

const METRIC: &str = "dogwatch_rollout_estimated_finish_timestamp_seconds";

/// When the clock starts; the world's records are from this moment.
fn epoch() -> Timestamp {
    "2026-11-21T22:00:00Z".parse().unwrap()
}

fn minute(minute: u64) -> Timestamp {
    epoch() + Duration::from_secs(60 * minute)
}

/// Says that every node begins at this minute and is back five minutes later; without a minute, it
/// fails.
#[derive(Default)]
struct FixedPlanner {
    minute: Mutex<Option<u64>>,
    runs: Mutex<usize>,
}

impl FixedPlanner {
    fn set_start(&self, minute: Option<u64>) {
        *self.minute.lock().unwrap() = minute;
    }

    fn count_runs(&self) -> usize {
        *self.runs.lock().unwrap()
    }
}

impl EstimateRollout for FixedPlanner {
    fn estimate_rollout(&self, fleet: &FleetSnapshot, now: Now) -> Option<FleetEstimate> {
        *self.runs.lock().unwrap() += 1;
        let planned = *self.minute.lock().unwrap();
        let start = minute(planned.expect("this planner fails"));
        let finish = start + Duration::from_mins(5);
        let times = NodeEstimate {
            start,
            latest_start: start,
            finish,
            latest_finish: finish,
        };
        let group = GroupEstimate {
            finish,
            latest_finish: finish + Duration::from_mins(1),
        };
        let names = fleet.iter_nodes().map(|node| node.name.to_string());
        Some(FleetEstimate {
            at: now.wall,
            finish: Some(finish),
            latest_finish: Some(finish),
            groups: BTreeMap::from([("default".to_owned(), group)]),
            nodes: names.map(|name| (name, times.clone())).collect(),
            left_out: Vec::new(),
        })
    }
}

struct EstimatedCluster {
    server: ApiServer,
    world: World,
    leader: Leader,
    planner: Arc<FixedPlanner>,
    estimates: EstimateReceiver,
}

impl EstimatedCluster {
    /// Node `n1` is asked by NodeReboot `a`, and a controller leads.
    async fn start() -> Self {
        let server = server_from(epoch());
        let mut world = World::on(server.client_for_user("test"), clock_from(epoch())).await;
        world.leading = server.client_for_user("leader");
        world.make_node("n1").await;
        let planner = Arc::new(FixedPlanner::default());
        planner.set_start(Some(30));
        let (flags, leading) = (RebootConfig::default(), &world.leading);
        let (mut leader, context, showing) =
            Leader::new(leading, &world.home, &world.clock, &flags);
        let watches = ClusterWatch::new(leading.clone(), &world.home, || 0.5);
        leader.run(showing.publish_watched_views(watches));
        let (publisher, estimates) = EstimateReceiver::new();
        let carrying = run_node_reboots(context.clone(), None, estimates.clone());
        leader.run(carrying);
        let planning = Arc::clone(&planner) as Arc<dyn EstimateRollout>;
        leader.run(run_rollout_estimates(context, planning, publisher));
        world.ask("a", json!({})).await;
        world.until_asked().await;
        Self {
            server,
            world,
            leader,
            planner,
            estimates,
        }
    }

    fn known_estimate(&self) -> NodeRebootEstimate {
        let name = NodeName::new(self.world.full_name("n1")).unwrap();
        self.estimates.estimate_of_node(&name)
    }

    async fn read_mark(&self) -> Option<String> {
        let (nodes, name) = (self.world.nodes(), self.world.full_name("n1"));
        let node = nodes.get(&name).await.unwrap();
        node.annotations().get(annotation::ESTIMATED_START).cloned()
    }

    async fn read_start(&self) -> Option<Timestamp> {
        self.world.status("a").await.estimated_start
    }

    fn metrics_page(&self) -> String {
        self.leader.metrics.render_page()
    }
}

/// Two estimates are made meanwhile.
async fn wait_minute() {
    tokio::time::sleep(Duration::from_secs(61)).await;
}

#[tokio::test(start_paused = true)]
async fn an_estimate_is_made_every_half_minute_while_a_node_waits() {
    let cluster = EstimatedCluster::start().await;
    wait_minute().await;
    assert_eq!(cluster.planner.count_runs(), 0, "no coordinator has begun");
    assert_eq!(cluster.known_estimate(), NodeRebootEstimate::Unknown);
    cluster.world.record("waiting").await;
    wait_minute().await;
    assert_eq!(cluster.planner.count_runs(), 2);
    assert_eq!(cluster.read_start().await, Some(minute(30)));
    let page = cluster.metrics_page();
    for (quantile, at) in [("0.5", minute(35)), ("0.9", minute(36))] {
        let labels = format!("{{group=\"default\",quantile=\"{quantile}\"}}");
        let line = format!("{METRIC}{labels} {}", at.as_second());
        assert!(page.contains(&line), "{page}");
    }
    cluster.world.reboot().await;
    wait_minute().await;
    assert_eq!(cluster.read_start().await, None);
    assert!(!cluster.metrics_page().contains("quantile="));
}

#[tokio::test(start_paused = true)]
async fn a_node_carries_its_start_from_ten_minutes_before_until_it_has_begun() {
    let cluster = EstimatedCluster::start().await;
    cluster.world.record("waiting").await;
    tokio::time::sleep(Duration::from_mins(19)).await;
    assert_eq!(cluster.read_mark().await, None);
    let before = asked(&cluster.server, "leader", ApiVerb::Patch);
    tokio::time::sleep(Duration::from_mins(8)).await;
    assert_eq!(cluster.read_mark().await, Some(minute(30).to_string()));
    let after = asked(&cluster.server, "leader", ApiVerb::Patch);
    assert_eq!(after - before, 1, "it is written once");
    cluster.world.record("draining").await;
    wait_minute().await;
    assert_eq!(cluster.read_mark().await, None);
    assert_eq!(cluster.read_start().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_fails_leaves_no_old_estimate() {
    let cluster = EstimatedCluster::start().await;
    cluster.world.record("waiting").await;
    wait_minute().await;
    cluster.planner.set_start(None);
    wait_minute().await;
    assert_eq!(cluster.known_estimate(), NodeRebootEstimate::Unknown);
    assert_eq!(cluster.read_start().await, None);
    cluster.planner.set_start(Some(50));
    wait_minute().await;
    assert_eq!(cluster.read_start().await, Some(minute(50)));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_leads_no_more_takes_its_estimate_back_and_the_status_stays() {
    let cluster = EstimatedCluster::start().await;
    cluster.world.record("waiting").await;
    wait_minute().await;
    cluster.leader.loses_the_lead();
    wait_minute().await;
    assert_eq!(cluster.known_estimate(), NodeRebootEstimate::NotMade);
    assert!(!cluster.metrics_page().contains("quantile="));
    assert_eq!(cluster.read_start().await, Some(minute(30)));
}
