//! How many calls to the API server and to a BMC follow each other, from the cause to the effect.
//! The number does not depend on the machine, so it is a promise of its own: `docs/numbers.md`,
//! "Calls in series".

use std::time::Duration;

use dogwatch_core::power::PowerConfig;
use dogwatch_kubesim::api::ApiServer;
use dogwatch_sim::scenario::{ScenarioCluster, parse_script};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::node_reboot_cases::world::World as Requests;
use crate::power_cases::world::World as Metal;
use crate::remedy_cases::world::World as Remedies;
use crate::support::call_trace::{BMC_USER, CallSeries, CallTrace};
use crate::support::embedded::{clock_from, epoch, server, server_from};
use crate::support::until;

/// The pause between two readings of a BMC while a command takes effect.
const READ_AGAIN: Duration = Duration::from_millis(200);

/// Longer after the cause, the first call of a series has waited for something else.
const SOON: Duration = Duration::from_millis(50);

/// Checks that the series goes back to its cause without a hole, and is not longer than the docs say.
#[track_caller]
fn assert_at_most(most: usize, series: &CallSeries) {
    let calls = series.list_calls();
    println!("{} calls in series: {calls:#?}", calls.len());
    assert_eq!(series.unexplained, [Duration::ZERO; 0], "{calls:#?}");
    assert!(calls.len() <= most, "{} calls: {calls:#?}", calls.len());
}

#[track_caller]
fn assert_from_the_start(series: &CallSeries) {
    let first = &series.calls[0];
    assert!(first.begun < SOON, "{first:?} is not the first call");
}

/// From a NodeReboot to the request on its Node.
#[tokio::test(start_paused = true)]
async fn a_node_reboot_makes_no_more_calls_in_series_than_it_says() {
    let server = server_from(epoch());
    let mut world = Requests::on(server.client_for_user("test"), clock_from(epoch())).await;
    world.leading = server.client_for_user("leader");
    world.make_node("n1").await;
    let _leader = world.leader();
    world.until_leader_has_seen_all("before").await;
    let trace = CallTrace::default();
    trace.follow_users(&server, "leader");
    trace.begin();
    world.ask("a", json!({})).await;
    while world.request().await.is_none() {
        sleep(Duration::from_millis(5)).await;
    }
    let series = trace.series_to(&[], |call| call.what.starts_with("PATCH nodes "));
    assert_from_the_start(&series);
    assert_at_most(5, &series);
}

async fn remedies(server: &ApiServer) -> Remedies {
    let power = PowerConfig::default();
    let mut metal = Metal::on(server.client_for_user("test"), power, epoch()).await;
    metal.leading = server.client_for_user("controller");
    Remedies::on(metal).await
}

#[derive(Clone, Copy)]
enum FenceCause {
    Mark,
    Request,
}

/// From the mark on a Machine, or a request, to the deletion of the Node.
async fn trace_fence(cause: FenceCause) -> CallSeries {
    let server = server();
    let world = remedies(&server).await;
    let member = world.member("h0").await;
    let _process = world.process_over("first", &[&member]).await;
    world.kubelet_dies("h0").await;
    let trace = &world.metal.trace;
    trace.follow_users(&server, "controller");
    trace.begin();
    match cause {
        FenceCause::Mark => world.mark_machine("h0", Some("")).await,
        FenceCause::Request => world.request("h0", "DeleteNode").await,
    }
    world
        .until("the Node is gone", || async {
            world.node("h0").await.is_none()
        })
        .await;
    let timers = [READ_AGAIN, world.metal.config.confirm];
    let series = trace.series_to(&timers, |call| call.what.starts_with("DELETE nodes"));
    assert_from_the_start(&series);
    series
}

#[tokio::test(start_paused = true)]
async fn a_fence_by_mark_makes_no_more_calls_in_series_than_it_says() {
    let series = trace_fence(FenceCause::Mark).await;
    assert_at_most(21, &series);
    assert_eq!(series.count_calls_of(BMC_USER), 4);
}

#[tokio::test(start_paused = true)]
async fn a_fence_by_request_makes_no_more_calls_in_series_than_it_says() {
    let series = trace_fence(FenceCause::Request).await;
    assert_at_most(23, &series);
    assert_eq!(series.count_calls_of(BMC_USER), 4);
}

async fn scenario(text: &str) -> ScenarioCluster {
    let script = parse_script(text).unwrap();
    ScenarioCluster::build_cluster(&script.setup).await.unwrap()
}

/// When the reboot command of this node was started.
async fn until_commanded(cluster: &ScenarioCluster, node: &str) -> Instant {
    let started = || cluster.hosts[node].coordinator.commands_started();
    until("the reboot command", || async { !started().is_empty() }).await;
    started()[0]
}

fn need_reboot(cluster: &ScenarioCluster, node: &str) {
    let coordinator = &cluster.hosts[node].coordinator;
    coordinator.disk.touch_file("/run/reboot-needed", "kernel");
}

/// From a sentinel to the reboot command, of a node with one pod that takes 5 s to stop.
#[tokio::test(start_paused = true)]
async fn a_reboot_makes_no_more_calls_in_series_than_it_says() {
    let text = "cluster nodes=2 seed=1\nworkload web replicas=2 stops-after=5s apart\nstart\n";
    let cluster = scenario(text).await;
    sleep(Duration::from_mins(1)).await;
    let trace = CallTrace::default();
    trace.follow_users(&cluster.server, "coordinator/n1");
    trace.begin();
    need_reboot(&cluster, "n1");
    let commanded = until_commanded(&cluster, "n1").await;
    let pod_stops = Duration::from_secs(5);
    let series = trace.series_until(commanded, &[pod_stops]);
    assert_from_the_start(&series);
    assert_at_most(15, &series);
    assert!(
        series
            .list_calls()
            .iter()
            .any(|call| call.contains("eviction"))
    );
}

/// From the release of the lock by one node to the cordon of the next one.
#[tokio::test(start_paused = true)]
async fn a_handover_makes_no_more_calls_in_series_than_it_says() {
    let cluster = scenario("cluster nodes=3 seed=1\nstart\n").await;
    sleep(Duration::from_mins(1)).await;
    let trace = CallTrace::default();
    trace.follow_users(&cluster.server, "coordinator/");
    need_reboot(&cluster, "n1");
    until_commanded(&cluster, "n1").await;
    need_reboot(&cluster, "n2");
    sleep(Duration::from_secs(10)).await;
    trace.begin();
    until_commanded(&cluster, "n2").await;
    let mut series = trace.series_to(&[], |call| call.what == "PATCH nodes n2");
    let of_holder = series
        .calls
        .iter()
        .rposition(|call| call.user == "coordinator/n1");
    let of_next = series.calls.split_off(of_holder.unwrap() + 1);
    let release = series.calls.pop().unwrap();
    assert_eq!(release.what, "PATCH leases dogwatch-default-0");
    let series = CallSeries {
        calls: of_next,
        ..CallSeries::default()
    };
    assert_at_most(6, &series);
}
