//! Remediation's cases on the embedded API server, with a paused clock and the times of a real
//! cluster, and the cases that need its faults.

use std::time::Duration;

use dogwatch_controller::remediation::DecidedRemediation;
use dogwatch_core::Now;
use dogwatch_core::leader::LeaderTerm;
use dogwatch_core::power::PowerConfig;
use dogwatch_core::remediation::RemediationReason;
use dogwatch_kubesim::api::{ApiServer, ApiVerb, FaultEffect, RequestAuditEntry};
use dogwatch_sim::bmc::BmcFaultKind;

use serde_json::json;

use crate::power_cases::world::{Cut, World as Metal};
use crate::remedy_cases;
use crate::remedy_cases::world::{KEY, Process, World};
use crate::remedy_cases::{has_condition, until_in_hand};
use crate::support::embedded::{epoch, fail, server};

async fn world(server: &ApiServer) -> World {
    let mut metal = Metal::on(
        server.client_for_user("test"),
        PowerConfig::default(),
        epoch(),
    )
    .await;
    metal.leading = server.client_for_user("controller");
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

crate::every_remedy_case!(on_embedded);

/// A remediation whose process is killed at its `at`-th call, to the API server or to the BMC.
/// Returns whether there was such a call.
async fn killed_at(at: usize, cut: Cut) -> bool {
    let server = server();
    let world = world(&server).await;
    let member = world.member("h0").await;
    let process = world.process_over("first", &[&member]).await;
    cut_at(&server, &world, at, cut);
    world.mark_machine("h0", Some("")).await;
    let has_died = tokio::select! {
        biased;
        () = world.metal.scissors.death() => true,
        () = world.until_back(&member) => false,
    };
    drop(process);
    tokio::time::sleep(Duration::from_secs(15)).await;
    let second = world.process("second");
    world.until_back(&member).await;
    until_at_rest(&world, &second).await;
    let calls = world.metal.scissors.calls();
    let log = member.bmc.machine().transition_log();
    let numbers = (
        log.count_power_offs(),
        log.count_power_ons(),
        deletions(&server),
    );
    assert_eq!(numbers, (1, 1, 1), "{at} {cut:?}: {log} {calls:#?}");
    assert!(!world.machine_needs("h0").await, "{at} {cut:?}");
    has_died
}

async fn until_at_rest(world: &World, process: &Process) {
    let is_over = |shown: &DecidedRemediation| {
        let reason = shown.decision.cause.reason;
        [RemediationReason::Remediated, RemediationReason::NotNeeded].contains(&reason)
    };
    world
        .until("it is at rest", || async {
            process
                .board
                .list_remediations()
                .iter()
                .all(|shown| is_over(shown))
        })
        .await;
}

fn cut_at(server: &ApiServer, world: &World, at: usize, cut: Cut) {
    world.metal.scissors.set(at, cut);
    let scissors = world.metal.scissors.clone();
    server.set_faults(move |request| {
        if request.user != "controller"
            || matches!(request.verb, Some(ApiVerb::Watch | ApiVerb::List))
        {
            return Vec::new();
        }
        scissors.cut(request)
    });
}

/// Number of Nodes that the controller has deleted.
fn deletions(server: &ApiServer) -> usize {
    let log = server.audit_log();
    let deleted = log.iter().filter(|entry| {
        let is_its = entry.user == "controller" && entry.resource == "nodes";
        is_its && entry.verb == Some(ApiVerb::Delete) && entry.code == 200
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

#[tokio::test(start_paused = true)]
async fn an_api_call_that_hangs_delays_only_its_own_case() {
    let server = server();
    let world = world(&server).await;
    let member = world.member("h0").await;
    let stuck = world.member("stuck").await;
    let _process = world.process_over("first", &[&member, &stuck]).await;
    let name = world.node_name("stuck").to_string();
    let hangs = FaultEffect::DelayRequest(Duration::from_hours(1));
    fail(&server, hangs, move |request| {
        request.user == "controller" && request.name.ends_with(&name)
    });
    let marked = tokio::time::Instant::now();
    for short in ["stuck", "h0"] {
        world.mark_machine(short, Some("")).await;
    }
    world
        .until("the Node is gone", || async {
            world.node("h0").await.is_none()
        })
        .await;
    let took = marked.elapsed();
    // The kubelet of a Ready node must miss a heartbeat first, which takes 12 s.
    assert!(took < Duration::from_secs(13), "{took:?}");
    world.until_back(&member).await;
    assert_eq!(
        stuck.bmc.machine().transition_log().count_power_offs(),
        0,
        "nothing was announced"
    );
    server.clear_faults();
    world.until_back(&stuck).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_api_server_refuses_is_said_and_done_once_it_is_allowed() {
    let server = server();
    let world = world(&server).await;
    let member = world.member("h0").await;
    let _process = world.process_over("first", &[&member]).await;
    fail(&server, FaultEffect::Refuse(403), |request| {
        let is_it = request.user == "controller" && request.resource == "nodes";
        is_it && request.verb == Some(ApiVerb::Delete)
    });
    world.mark_machine("h0", Some("")).await;
    world
        .until("the Machine says so", || async {
            let machine = world.machines().get("h0").await.unwrap();
            has_condition(
                &machine,
                "Remediation",
                "reason",
                RemediationReason::Refused.as_str(),
            )
        })
        .await;
    assert_eq!(world.node_uid("h0").await, member.uid);
    server.clear_faults();
    world.until_back(&member).await;
    let said = world.said().await;
    let warned = said
        .iter()
        .any(|event| event.reason.as_deref() == Some(RemediationReason::Refused.as_str()));
    assert!(warned, "{said:?}");
    assert_eq!(member.bmc.machine().transition_log().count_power_offs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_at_rest_is_asked_nothing_and_each_event_is_said_once() {
    let server = server();
    let world = world(&server).await;
    let member = world.member("h0").await;
    let process = world.process_over("first", &[&member]).await;
    world.mark_machine("h0", Some("")).await;
    world.until_back(&member).await;
    until_at_rest(&world, &process).await;
    world.metal.time_passes().await;
    let before = asked(&server).len();
    tokio::time::sleep(Duration::from_hours(1)).await;
    let more = asked(&server).split_off(before);
    assert!(more.is_empty(), "{more:#?}");
    let said = world.said().await;
    let twice = said.iter().filter(|event| event.count.unwrap_or(1) > 1);
    let twice: Vec<_> = twice.collect();
    assert!(twice.is_empty(), "{twice:#?}");
}

/// The controller's requests, except those about hosts, whose power is polled, renewed watches, and
/// discovery of missing kinds.
fn asked(server: &ApiServer) -> Vec<RequestAuditEntry> {
    let log = server.audit_log().into_iter();
    let is_asked = |entry: &RequestAuditEntry| {
        let is_power = ["baremetalhosts", "secrets"].contains(&entry.resource.as_str());
        let is_looking = matches!(entry.verb, Some(ApiVerb::Watch | ApiVerb::List));
        let is_its = entry.user == "controller" && entry.verb.is_some();
        is_its && !is_power && !is_looking
    };
    log.filter(is_asked).collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_by_whose_lead_does_not_outlast_the_call() {
    let server = server();
    let world = world(&server).await;
    let member = world.member("h0").await;
    let process = world.process_over("first", &[&member]).await;
    // The leader's term is renewed all the time, but never for long enough.
    let (terms, clock) = (process.leader.terms.clone(), process.clock.clone());
    let renewing = tokio::spawn(async move {
        loop {
            let now = clock.now();
            let left = Duration::from_secs(4);
            let (wall, mono) = (now.wall_after(left), now.mono + left);
            let until = Now { wall, mono };
            terms.send_replace(Some(LeaderTerm { number: 1, until }));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    world
        .until("the term is short", || async {
            let term = *process.leader.terms.borrow();
            term.is_some_and(|term| term.until.mono < Duration::from_hours(1))
        })
        .await;
    let before = asked(&server).len();
    world.mark_machine("h0", Some("")).await;
    until_in_hand(&world, &process).await;
    world.metal.time_passes().await;
    let writes = asked(&server).split_off(before);
    let writes = writes
        .iter()
        .filter(|entry| entry.verb != Some(ApiVerb::Get));
    let writes: Vec<&RequestAuditEntry> = writes.collect();
    assert!(writes.is_empty(), "{writes:#?}");
    renewing.abort();
    process.leader.leads(1);
    world.until_back(&member).await;
}

/// The node's coordinator has started the reboot command, for the first time or again, and nothing
/// happens.
async fn reboots_as_planned(world: &World, short: &str, attempt: u32) {
    let at = world.metal.wall().now().wall;
    let record = json!({
        "phase": "rebooting", "run": "coordinator/x", "since": at, "planned": at,
        "trigger": { "source": "sentinel:/run/reboot-needed", "reason": "kernel" },
        "bootId": "old-boot", "cordonedByUs": false, "lease": "dogwatch-default-0",
        "attempts": attempt,
    });
    let annotations = json!({ "dogwatch.dev/reboot": record.to_string() });
    world
        .change_node(short, json!({ "metadata": { "annotations": annotations } }))
        .await;
}

/// The reason of the process' only remediation.
fn says(process: &Process) -> Option<&'static str> {
    let cases = process.board.list_remediations();
    cases
        .first()
        .map(|shown| shown.decision.cause.reason.as_str())
}

async fn until_says(world: &World, process: &Process, reason: &'static str) {
    world
        .until(reason, || async { says(process) == Some(reason) })
        .await;
}

async fn is_keyed(world: &World, short: &str) -> bool {
    world.metal.read(short).await.annotations.contains_key(KEY)
}

/// Time from `since` until the host has a key.
async fn until_keyed(world: &World, since: tokio::time::Instant) -> Duration {
    for _ in 0..7_200 {
        if is_keyed(world, "h0").await {
            return since.elapsed();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("the host is never switched off");
}

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn a_remediation_counts_as_stuck_ten_minutes_after_its_reason_changed() {
    let server = server();
    let world = world(&server).await;
    let member = world.member("h0").await;
    let process = world.process_over("first", &[&member]).await;
    member.bmc.add_fault(BmcFaultKind::Hang);
    world.mark_machine("h0", Some("")).await;
    tokio::time::sleep(MINUTE * 9).await;
    let page = process.leader.metrics.render_page();
    assert!(!page.contains("dogwatch_remediation_stuck"), "{page}");
    tokio::time::sleep(MINUTE * 3).await;
    let page = process.leader.metrics.render_page();
    let stuck = "dogwatch_remediation_stuck{reason=\"PowerUnknown\"} 1\n";
    assert!(page.contains(stuck), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_planned_reboot_that_hangs_has_its_timeout_since_it_began_whatever_happens_meanwhile() {
    let server = server();
    let world = world(&server).await;
    let member = world.member("h0").await;
    let process = world.process_over("first", &[&member]).await;
    let began = tokio::time::Instant::now();
    reboots_as_planned(&world, "h0", 1).await;
    tokio::time::sleep_until(began + MINUTE * 10).await;
    world.mark_machine("h0", Some("")).await;
    until_says(&world, &process, RemediationReason::PlannedReboot.as_str()).await;
    tokio::time::sleep_until(began + MINUTE * 20).await;
    member.bmc.add_fault(BmcFaultKind::Hang);
    until_says(&world, &process, RemediationReason::PowerUnknown.as_str()).await;
    member.bmc.cure_all_faults();
    until_says(&world, &process, RemediationReason::PlannedReboot.as_str()).await;
    let after = until_keyed(&world, began).await;
    let on_time = MINUTE * 30..MINUTE * 30 + Duration::from_secs(10);
    assert!(on_time.contains(&after), "{after:?}");
    world.until_back(&member).await;
}

#[tokio::test(start_paused = true)]
async fn the_next_leader_counts_a_planned_reboot_from_the_nodes_record_and_a_new_attempt_anew() {
    let server = server();
    let world = world(&server).await;
    let member = world.member("h0").await;
    let first = world.process_over("first", &[&member]).await;
    let began = tokio::time::Instant::now();
    reboots_as_planned(&world, "h0", 1).await;
    world.mark_machine("h0", Some("")).await;
    until_says(&world, &first, RemediationReason::PlannedReboot.as_str()).await;
    tokio::time::sleep_until(began + MINUTE * 20).await;
    first.leader.loses_the_lead();
    let second = world.process("second");
    until_says(&world, &second, RemediationReason::PlannedReboot.as_str()).await;
    tokio::time::sleep_until(began + MINUTE * 25).await;
    assert!(!is_keyed(&world, "h0").await);
    reboots_as_planned(&world, "h0", 2).await;
    tokio::time::sleep_until(began + MINUTE * 40).await;
    second.leader.loses_the_lead();
    let _third = world.process("third");
    let after = until_keyed(&world, began).await;
    let on_time = MINUTE * 55..MINUTE * 55 + Duration::from_secs(10);
    assert!(on_time.contains(&after), "{after:?}");
    world.until_back(&member).await;
}
