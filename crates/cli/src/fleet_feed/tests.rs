//! The feed on the embedded API server, under virtual time.

use std::sync::Mutex;
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::report::FleetEstimate;
use dogwatch_kubesim::api::{ApiReply, ApiRequest, ApiServer, ApiServerOptions, Denial};
use dogwatch_kubesim::clock::TokioClock;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;

const VIEWER: &str = "viewer";
/// More than any pause of a watch that is retried.
const LONG: Duration = Duration::from_mins(2);

fn empty_server() -> ApiServer {
    let clock = Arc::new(TokioClock::starting_at(jiff::Timestamp::now()));
    ApiServer::new(clock, ApiServerOptions::default())
}

fn start_feed(server: &ApiServer, estimator: Option<Arc<dyn EstimateRollout>>) -> FleetFeed {
    let client = FleetClient::new(server.client_for_user(VIEWER), "dogwatch");
    FleetFeed::start(&client, estimator)
}

fn send(server: &ApiServer, method: Method, path: &str, body: &Value) {
    let request = ApiRequest::new("admin", method, path, body.to_string());
    let ApiReply::Response(response) = server.handle_request(&request) else {
        panic!("a watch");
    };
    assert!(response.code < 300, "{}", response.body_json());
}

fn create_node(server: &ApiServer, name: &str, annotations: &Value) {
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "annotations": annotations },
        "status": {
            "nodeInfo": { "bootID": "b1" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    send(server, Method::POST, "/api/v1/nodes", &node);
}

/// The annotation of a node that waits for its reboot.
fn waiting() -> Value {
    let at = jiff::Timestamp::now();
    let record = json!({
        "phase": "waiting", "run": "r1", "since": at, "planned": at, "bootId": "b1",
        "cordonedByUs": false, "trigger": { "source": "sentinel:/run/reboot-needed" },
    });
    json!({ "dogwatch.dev/reboot": record.to_string() })
}

async fn wait_for(
    views: &mut watch::Receiver<Arc<FleetView>>,
    is_it: impl Fn(&FleetView) -> bool,
) -> Arc<FleetView> {
    let waited = tokio::time::timeout(LONG, views.wait_for(|view| is_it(view))).await;
    let found = waited.ok().map(|view| Arc::clone(&view.unwrap()));
    found.unwrap_or_else(|| panic!("{:#?}", views.borrow()))
}

fn names(view: &FleetView) -> Vec<&str> {
    view.nodes.iter().map(|row| row.name.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_view_says_that_nothing_was_read_and_the_next_has_the_nodes() {
    let server = empty_server();
    create_node(&server, "n1", &json!({}));
    let feed = start_feed(&server, None);
    let mut views = feed.subscribe();
    assert_eq!(views.borrow().unreadable, [sources::NOT_READ_YET]);
    let view = wait_for(&mut views, |view| view.counts.nodes == 1).await;
    assert_eq!(view.unreadable, Vec::<String>::new());
    assert_eq!(
        view.sentence,
        "No reboot is under way, and none waits. Nothing needs you."
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_is_shown_within_a_second_and_a_storm_once_a_second() {
    let server = empty_server();
    let feed = start_feed(&server, None);
    let mut views = feed.subscribe();
    wait_for(&mut views, |view| view.unreadable.is_empty()).await;
    let begin = Instant::now();
    for number in 0..100 {
        create_node(&server, &format!("n{number}"), &json!({}));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let stormed = begin.elapsed().as_secs();
    let mut shown = 0;
    let counting = async {
        while views.borrow_and_update().counts.nodes < 100 {
            views.changed().await.unwrap();
        }
    };
    counting.await;
    assert!(begin.elapsed().as_secs() <= stormed + 1);
    let counting = async {
        for number in 100..200 {
            create_node(&server, &format!("n{number}"), &json!({}));
            tokio::time::sleep(Duration::from_millis(50)).await;
            shown += u32::from(views.has_changed().unwrap());
            views.mark_unchanged();
        }
    };
    counting.await;
    assert!((4..=6).contains(&shown), "{shown} views in 5 seconds");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shown_while_nothing_changes() {
    let server = empty_server();
    create_node(&server, "n1", &json!({}));
    let feed = start_feed(&server, None);
    let mut views = feed.subscribe();
    wait_for(&mut views, |view| view.counts.nodes == 1).await;
    views.mark_unchanged();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(!views.has_changed().unwrap(), "{:#?}", views.borrow());
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_connection_the_last_state_stays_and_the_feed_goes_on() {
    let server = empty_server();
    create_node(&server, "n1", &json!({}));
    let feed = start_feed(&server, None);
    let mut views = feed.subscribe();
    wait_for(&mut views, |view| view.counts.nodes == 1).await;
    server.set_partitioned(VIEWER, true);
    let cut = wait_for(&mut views, |view| !view.unreadable.is_empty()).await;
    assert_eq!(names(&cut), ["n1"]);
    let text = cut.unreadable.join("\n");
    assert!(
        text.contains("the Nodes and Leases cannot be watched"),
        "{text}"
    );
    tokio::time::sleep(LONG).await;
    create_node(&server, "n2", &json!({}));
    server.set_partitioned(VIEWER, false);
    let resumed = wait_for(&mut views, |view| view.unreadable.is_empty()).await;
    assert_eq!(names(&resumed), ["n1", "n2"]);
}

#[tokio::test(start_paused = true)]
async fn an_interruption_without_a_change_is_over_once_the_watches_are_open() {
    let server = empty_server();
    create_node(&server, "n1", &json!({}));
    let feed = start_feed(&server, None);
    let mut views = feed.subscribe();
    wait_for(&mut views, |view| view.counts.nodes == 1).await;
    server.set_partitioned(VIEWER, true);
    wait_for(&mut views, |view| !view.unreadable.is_empty()).await;
    server.set_partitioned(VIEWER, false);
    let resumed = wait_for(&mut views, |view| view.unreadable.is_empty()).await;
    assert_eq!(names(&resumed), ["n1"]);
}

#[tokio::test(start_paused = true)]
async fn hosts_that_may_not_be_read_are_told_and_hide_nothing_else() {
    let server = empty_server();
    let hosts = dogwatch_api::bare_metal_host::host_crd();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    send(&server, Method::POST, path, &hosts);
    server.set_denials(vec![Denial {
        user: Some(VIEWER.into()),
        verb: None,
        resource: Some("baremetalhosts".into()),
    }]);
    create_node(&server, "n1", &json!({}));
    let feed = start_feed(&server, None);
    let mut views = feed.subscribe();
    let view = wait_for(&mut views, |view| view.counts.nodes == 1).await;
    let view = if view.unreadable.is_empty() {
        wait_for(&mut views, |view| !view.unreadable.is_empty()).await
    } else {
        view
    };
    assert_eq!(view.unreadable.len(), 1, "{:?}", view.unreadable);
    assert!(
        view.unreadable[0].contains("the BareMetalHosts cannot be watched"),
        "{:?}",
        view.unreadable
    );
    assert_eq!(names(&view), ["n1"]);
}

/// An estimator that waits for the test.
struct SlowEstimator(Mutex<std::sync::mpsc::Receiver<Option<FleetEstimate>>>);

impl EstimateRollout for SlowEstimator {
    fn estimate_rollout(&self, _: &FleetSnapshot, _: Now) -> Option<FleetEstimate> {
        self.0.lock().unwrap().recv().ok().flatten()
    }
}

#[tokio::test]
async fn a_slow_estimate_delays_no_view() {
    let (answer, answers) = std::sync::mpsc::channel();
    let server = empty_server();
    create_node(&server, "n1", &waiting());
    let feed = start_feed(&server, Some(Arc::new(SlowEstimator(Mutex::new(answers)))));
    let mut views = feed.subscribe();
    wait_for(&mut views, |view| view.counts.waiting == 1).await;
    create_node(&server, "n2", &waiting());
    let view = wait_for(&mut views, |view| view.counts.waiting == 2).await;
    assert_eq!(view.estimate, None);
    let estimate = FleetEstimate {
        groups: std::collections::BTreeMap::new(),
        at: view.at,
        finish: Some(view.at),
        latest_finish: None,
        nodes: std::collections::BTreeMap::new(),
        left_out: Vec::new(),
    };
    answer.send(Some(estimate.clone())).unwrap();
    let view = wait_for(&mut views, |view| view.estimate.is_some()).await;
    assert_eq!(view.estimate, Some(estimate));
    send(&server, Method::DELETE, "/api/v1/nodes/n1", &json!({}));
    send(&server, Method::DELETE, "/api/v1/nodes/n2", &json!({}));
    let view = wait_for(&mut views, |view| view.counts.nodes == 0).await;
    assert_eq!(view.estimate, None);
}
