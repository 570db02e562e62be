//! The power controller's cases on the embedded API server, with a paused clock and the times of a
//! real cluster, and the cases that need its faults.

use std::time::Duration;

use dogwatch_core::power::PowerConfig;
use dogwatch_kubesim::api::{ApiServer, ApiVerb, FaultEffect};

use crate::power_cases;
use crate::power_cases::world::{ANY, Cut, HARD, World};
use crate::support::embedded::{epoch, fail, server};

async fn world(server: &ApiServer) -> World {
    let mut world = World::on(
        server.client_for_user("test"),
        PowerConfig::default(),
        epoch(),
    )
    .await;
    world.leading = server.client_for_user("controller");
    world
}

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            let server = server();
            power_cases::$name(&world(&server).await).await;
        }
    )* };
}

crate::every_power_case!(on_embedded);

/// A reboot whose process is killed at its `at`-th call, to the API server or to the BMC. Returns
/// whether there was such a call.
async fn killed_at(mode: &str, at: usize, cut: Cut) -> bool {
    let server = server();
    let world = world(&server).await;
    let bmc = world.host("h0").await;
    let process = world.process("first");
    world.until_ready("h0").await;
    world.scissors.set(at, cut);
    let scissors = world.scissors.clone();
    server.set_faults(move |request| {
        if request.user != "controller" || request.resource == "leases" {
            return Vec::new();
        }
        scissors.cut(request)
    });
    world.annotate("h0", ANY, Some(mode)).await;
    let has_died = tokio::select! {
        biased;
        () = world.scissors.death() => true,
        () = world.until_rebooted("h0", &bmc) => false,
    };
    drop(process);
    tokio::time::sleep(Duration::from_secs(15)).await;
    let _second = world.process("second");
    world.until_rebooted("h0", &bmc).await;
    world.time_passes().await;
    let log = bmc.machine().transition_log();
    let numbers = (log.count_power_offs(), log.count_power_ons());
    let calls = world.scissors.calls();
    assert_eq!(numbers, (1, 1), "{mode} {at} {cut:?}: {log} {calls:#?}");
    has_died
}

async fn killed_at_every_call(mode: &str, cut: Cut) {
    let mut at = 0;
    while killed_at(mode, at, cut).await {
        at += 1;
    }
    eprintln!("{mode:?} {cut:?}: {at} calls");
    assert!(at > 10, "a reboot has more calls: {at}");
}

#[tokio::test(start_paused = true)]
async fn killed_before_any_call_of_a_reboot_it_ends_with_one_power_off_and_the_host_on() {
    for mode in ["", HARD] {
        killed_at_every_call(mode, Cut::Before).await;
    }
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_call_of_a_reboot_it_ends_with_one_power_off_and_the_host_on() {
    for mode in ["", HARD] {
        killed_at_every_call(mode, Cut::After).await;
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_lost_cost_time_and_no_power_off() {
    for nth in 0..12 {
        let server = server();
        let world = world(&server).await;
        let bmc = world.host("h0").await;
        let _process = world.process("first");
        world.until_ready("h0").await;
        let begun = std::sync::atomic::AtomicU64::new(0);
        fail(&server, FaultEffect::LoseAnswer, move |request| {
            let is_write = request.user == "controller" && request.resource == "baremetalhosts";
            let count = begun.fetch_add(u64::from(is_write), std::sync::atomic::Ordering::Relaxed);
            is_write && count == nth
        });
        world.annotate("h0", ANY, Some(HARD)).await;
        world.until_rebooted("h0", &bmc).await;
        let log = bmc.machine().transition_log();
        assert_eq!(
            (log.count_power_offs(), log.count_power_ons()),
            (1, 1),
            "{nth}: {log}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_at_rest_costs_one_request_a_poll_and_a_check_every_five_minutes() {
    let server = server();
    let world = world(&server).await;
    let bmc = world.host("h0").await;
    let _process = world.process("first");
    world.until_ready("h0").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let (before, asked) = (bmc.request_counters().requests, server.audit_log().len());
    tokio::time::sleep(Duration::from_hours(1)).await;
    let requests = bmc.request_counters().requests - before;
    let log = server.audit_log();
    // A process has one set of watches, however many hosts there are.
    let asked = log[asked..]
        .iter()
        .filter(|entry| entry.user == "controller" && entry.verb != Some(ApiVerb::Watch));
    let asked = asked.count();
    eprintln!("an hour at rest: {requests} requests to the BMC, {asked} to the API server");
    assert!((60..=90).contains(&requests), "{requests}");
    assert!(
        (15..=24).contains(&asked),
        "a Secret at each check, a status at each tenth poll: {asked}"
    );
}
