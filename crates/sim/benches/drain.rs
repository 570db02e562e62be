//! How long a drain takes and how often it asks, beside `kubectl drain` on the same API server.
//!
//! The kubelets are simulated: a pod ends so many seconds after its deletion began, for both alike.
//! One argument overrides how many evictions may be under way at once.

#![expect(clippy::disallowed_methods, reason = "real time is what it measures")]

#[allow(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/support/mod.rs"]
mod support;
#[allow(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/drain_cases/world.rs"]
mod world;

use std::time::{Duration, Instant};

use dogwatch_core::drain::DrainConfig;
use dogwatch_testbed::ControlPlane;
use dogwatch_testbed::bench::print_figure;
use futures::StreamExt as _;
use serde_json::json;

use support::real::{client_as, client_that_asks_once};
use world::World;

/// By this user agent its calls are told from all others in the audit log.
const AGENT: &str = "dogwatch-bench-drain";

struct Case {
    pods: usize,
    end_after: Duration,
    /// The promise: at most this part of kubectl's time.
    share: f64,
}

const CASES: [Case; 2] = [
    Case {
        pods: 250,
        end_after: Duration::from_secs(1),
        share: 0.1,
    },
    Case {
        pods: 100,
        end_after: Duration::from_secs(20),
        share: 0.5,
    },
];

struct Measured {
    wall: Duration,
    calls: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let config = match std::env::args().find_map(|argument| argument.parse().ok()) {
        Some(in_flight) => DrainConfig {
            in_flight,
            ..DrainConfig::default()
        },
        None => DrainConfig::default(),
    };
    let control_plane = ControlPlane::builder()
        .with_controllers([])
        .start()
        .await
        .expect("the control plane starts");
    for case in CASES {
        let ours = ours(&control_plane, &case, config.clone()).await;
        let kubectl = kubectl(&control_plane, &case).await;
        tell(&case, &ours, &kubectl);
    }
}

async fn ours(control_plane: &ControlPlane, case: &Case, config: DrainConfig) -> Measured {
    let world = node_with_pods(control_plane, case).await;
    let mark = control_plane
        .audit_mark()
        .await
        .expect("the audit log can be read");
    let client = client_as(control_plane.admin_kubeconfig(), AGENT).await;
    let begun = Instant::now();
    let drain = world.drain_as(client, config);
    world.until_drained(&drain).await;
    let wall = begun.elapsed();
    drop(drain);
    Measured {
        wall,
        calls: calls(control_plane, mark, AGENT).await,
    }
}

async fn kubectl(control_plane: &ControlPlane, case: &Case) -> Measured {
    let world = node_with_pods(control_plane, case).await;
    let mark = control_plane
        .audit_mark()
        .await
        .expect("the audit log can be read");
    let arguments = [
        "drain",
        &world.node,
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--force",
    ];
    let begun = Instant::now();
    control_plane
        .run_kubectl(&arguments, "")
        .await
        .expect("kubectl drains");
    Measured {
        wall: begun.elapsed(),
        calls: calls(control_plane, mark, "kubectl").await,
    }
}

async fn node_with_pods(control_plane: &ControlPlane, case: &Case) -> World {
    let client = client_that_asks_once(control_plane.admin_kubeconfig()).await;
    let world = World::with_pods_that_end_after(client, case.end_after).await;
    let names: Vec<String> = (0..case.pods)
        .map(|number| format!("pod-{number}"))
        .collect();
    let pods = names.iter().map(|name| world.pod(name, json!({})));
    futures::stream::iter(pods)
        .buffer_unordered(16)
        .collect::<Vec<_>>()
        .await;
    world
}

/// Requests, each counted once; a watch that is open still has only begun.
async fn calls(
    control_plane: &ControlPlane,
    mark: dogwatch_testbed::AuditMark,
    agent: &str,
) -> usize {
    let audit = control_plane
        .audit_entries_since(mark)
        .await
        .expect("the audit log can be read");
    let mine = audit
        .iter()
        .filter(|entry| entry.user_agent.starts_with(agent));
    mine.filter(|entry| entry.is_request()).count()
}

fn tell(case: &Case, ours: &Measured, kubectl: &Measured) {
    let what = format!(
        "drain of {} pods that take {} s to end",
        case.pods,
        case.end_after.as_secs()
    );
    let (wall, theirs) = (ours.wall.as_secs_f64(), kubectl.wall.as_secs_f64());
    print_figure(
        &format!("{what}: wall time"),
        &format!("{wall:.1} s ({:.3} ×)", wall / theirs),
        &format!("≤ {} × kubectl's {theirs:.1} s", case.share),
        wall <= theirs * case.share,
    );
    let most = case.pods + 20;
    print_figure(
        &format!("{what}: API calls"),
        &format!("{}", ours.calls),
        &format!("≤ {most} (kubectl: {})", kubectl.calls),
        ours.calls <= most,
    );
}
