//! From the leader's death to the held-off host being driven again.

use std::time::{Duration, Instant};

use dogwatch_testbed::bench::number_of;

use super::controller::Controller;
use super::fences::HELD_OFF;
use super::stage::{PATIENCE, Stage};
use super::table::figure;

const CRASHES: usize = 3;
/// The lease, and a second. Source: specification §3.3.
const REACH: Duration = Duration::from_secs(16);
const LOOK: Duration = Duration::from_millis(5);

/// Kills one leader after the other.
pub async fn measure(stage: &Stage, mut leader: Controller) {
    let bmc = &stage.bmcs[HELD_OFF];
    let mut taken = Vec::new();
    for _ in 0..number_of("CRASHES", CRASHES) {
        let next = Controller::start(stage).await;
        leader.kill();
        let killed = Instant::now();
        // What was on its way arrives meanwhile; nobody else may lead before the lease is over.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = bmc.request_counters().reads;
        let driven = async {
            while bmc.request_counters().reads == before {
                tokio::time::sleep(LOOK).await;
            }
        };
        let driven = tokio::time::timeout(PATIENCE, driven).await;
        assert!(driven.is_ok(), "nobody drives it");
        taken.push(killed.elapsed());
        next.until_it_leads().await;
        leader = next;
    }
    let most = taken.iter().max().copied().unwrap_or_default();
    let all: Vec<String> = taken
        .iter()
        .map(|took| format!("{:.1}", took.as_secs_f64()))
        .collect();
    figure(
        &format!(
            "kill -9 of the leader of {} hosts -> the held-off host is read",
            stage.bmcs.len()
        ),
        &format!("{} s", all.join(", ")),
        "<= 16 s",
        most <= REACH,
    );
}
