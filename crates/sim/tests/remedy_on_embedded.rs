//! Remediation's cases on the embedded API server, under a paused clock with the times of a real cluster;
//! and those that need its faults.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod power_cases;
mod remedy_cases;

use std::sync::Arc;
use std::time::Duration;

use dogwatch_controller::remedy::Shown;
use dogwatch_core::power::Config;
use dogwatch_core::remedy::reason;
use dogwatch_sim::api::{ApiServer, FaultEffect, Options, Verb};
use dogwatch_sim::clock::TokioClock;
use jiff::Timestamp;
use serde_json::json;

use power_cases::world::{Cut, World as Metal};
use remedy_cases::world::{Process, World};

fn epoch() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn server() -> ApiServer {
    let clock = Arc::new(TokioClock::starting_at(epoch()));
    ApiServer::new(clock, Options::default())
}

async fn world(server: &ApiServer) -> World {
    let mut metal = Metal::on(server.client("test"), Config::default(), epoch()).await;
    metal.leading = server.client("controller");
    World::on(metal).await
}

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let server = server();
            remedy_cases::$name(&world(&server).await).await;
        }
    )* };
}

every_remedy_case!(on_embedded);

/// A remediation whose process is killed at its `at`-th call, to the API server or to the BMC. Whether it
/// came to that call.
async fn killed_at(at: usize, cut: Cut) -> bool {
    let server = server();
    let world = world(&server).await;
    let bmc = world.host("h0", &json!({})).await;
    world.machine("h0").await;
    let old = world.node_uid("h0").await;
    let process = world.process("first");
    world.metal.until_ready("h0").await;
    cut_at(&server, &world, at, cut);
    world.mark_machine("h0", Some("")).await;
    let is_done = world.until("it is back", || world.is_back("h0", &old, &bmc));
    let has_died = tokio::select! {
        biased;
        () = world.metal.scissors.death() => true,
        () = is_done => false,
    };
    drop(process);
    tokio::time::sleep(Duration::from_secs(15)).await;
    let second = world.process("second");
    world
        .until("it is back in the end", || world.is_back("h0", &old, &bmc))
        .await;
    world
        .until("it is at rest", || async { has_ended(&second) })
        .await;
    let calls = world.metal.scissors.calls();
    let log = bmc.machine().log();
    let numbers = (log.power_offs(), log.power_ons(), deletions(&server));
    assert_eq!(numbers, (1, 1, 1), "{at} {cut:?}: {log} {calls:#?}");
    assert!(!world.machine_needs("h0").await, "{at} {cut:?}");
    has_died
}

fn has_ended(process: &Process) -> bool {
    let cases = process.board.cases();
    let is_over = |shown: &Shown| {
        let reason = shown.decision.because.reason;
        [reason::REMEDIATED, reason::NOT_NEEDED].contains(&reason)
    };
    cases.iter().all(|shown| is_over(shown))
}

fn cut_at(server: &ApiServer, world: &World, at: usize, cut: Cut) {
    world.metal.scissors.set(at, cut);
    let scissors = world.metal.scissors.clone();
    server.set_faults(move |request| {
        if request.user != "controller" || matches!(request.verb, Some(Verb::Watch | Verb::List)) {
            return Vec::new();
        }
        let call = format!("{:?} {}", request.verb, request.resource);
        match scissors.count(call) {
            None => Vec::new(),
            Some(Cut::Before) => vec![FaultEffect::LoseRequest],
            Some(Cut::After) => vec![FaultEffect::LoseAnswer],
        }
    });
}

/// How many Nodes the controller has deleted.
fn deletions(server: &ApiServer) -> usize {
    let log = server.audit_log();
    let deleted = log.iter().filter(|entry| {
        let is_its = entry.user == "controller" && entry.resource == "nodes";
        is_its && entry.verb == Some(Verb::Delete) && entry.code == 200
    });
    deleted.count()
}

async fn killed_at_every_call(cut: Cut) {
    let mut at = 0;
    while killed_at(at, cut).await {
        at += 1;
    }
    eprintln!("{cut:?}: {at} calls");
    assert!(at > 20, "a remediation has more calls: {at}");
}

#[tokio::test(start_paused = true)]
async fn killed_before_any_call_of_a_remediation_it_ends_with_one_power_off_and_the_node_back() {
    killed_at_every_call(Cut::Before).await;
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_call_of_a_remediation_it_ends_with_one_power_off_and_the_node_back() {
    killed_at_every_call(Cut::After).await;
}
