//! From a fence to its proof, while a tenth of all BMCs hang.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dogwatch_core::power::{HostName, OwnerRules, PowerConfig};
use dogwatch_k8s::host::HostWatch;
use futures::future::join_all;

use dogwatch_testbed::bench::number_of;

use super::controller::Controller;
use super::effort::Effort;
use super::own::{own_time, power_offs};
use super::stage::{PATIENCE, Stage, name};
use super::table::{figure, in_words, note, spread};

const FENCES: usize = 100;
/// How far apart fences are that come one by one.
const APART: Duration = Duration::from_millis(250);
const REACH: Duration = Duration::from_millis(250);
const FENCE: &str = "reboot.metal3.io/bench";
/// What the queue's metric calls "at once".
const BUCKET: &str = "dogwatch_power_queue_seconds_bucket{lane=\"urgent\",le=\"0.01\"}";
const ALL: &str = "dogwatch_power_queue_seconds_count{lane=\"urgent\"}";
const WAITED: &str = "dogwatch_power_queue_seconds_sum{lane=\"urgent\"}";

/// A host that [`measure`] leaves held off.
pub const HELD_OFF: usize = 0;

pub async fn measure(stage: &Stage, controller: &Controller, healthy: usize) {
    let fences = number_of("FENCES", FENCES);
    let hung = stage.bmcs.len() - healthy;
    for (what, hosts, apart) in [
        ("at once", 0..fences, Duration::ZERO),
        ("one by one", fences..2 * fences, APART),
    ] {
        assert!(hosts.end < healthy, "not enough hosts");
        let before = Effort::of(controller);
        let mark = stage.plane.audit_mark().await.expect("an audit log");
        let taken = spread(fence(stage, hosts.clone(), apart).await);
        let calls = stage.plane.call_times_since(mark).await;
        let calls = calls.expect("an audit log");
        eprint!("the API server's part of {fences} fences {what}:\n{calls}");
        figure(
            &format!(
                "{} fences {what}, {} BMCs, {hung} hung: off confirmed over the BMC's time and 5s",
                hosts.len(),
                stage.bmcs.len()
            ),
            &in_words(taken),
            "p99 <= 250 ms",
            taken[1] <= REACH,
        );
        before.tell(controller, fences);
        let sent: usize = hosts.map(|number| power_offs(&stage.bmcs[number])).sum();
        figure(
            "power-offs sent for them",
            &sent.to_string(),
            &fences.to_string(),
            sent == fences,
        );
    }
    queue(controller).await;
    reboot(stage, 2 * fences).await;
}

/// How far each was over what nobody can be faster than.
async fn fence(stage: &Stage, hosts: Range<usize>, apart: Duration) -> Vec<Duration> {
    let written: Arc<Mutex<BTreeMap<usize, Instant>>> = Arc::default();
    let mut watch = HostWatch::new(stage.client.clone(), OwnerRules::default(), || 0.5);
    while !watch.current_view().synced {
        watch.wait_for_changes().await;
    }
    stage.connect(hosts.len()).await;
    let numbers: BTreeMap<HostName, usize> = hosts.clone().map(|n| (name(n), n)).collect();
    let mut confirmed = BTreeMap::new();
    let asks = hosts.clone().enumerate().map(|(place, number)| {
        let written = &written;
        async move {
            tokio::time::sleep(apart * u32::try_from(place).expect("few")).await;
            stage
                .annotate(number, FENCE, Some(r#"{"mode":"hard"}"#))
                .await;
            written.lock().unwrap().insert(number, Instant::now());
        }
    });
    let sees = async {
        while confirmed.len() < hosts.len() {
            for changed in watch.wait_for_changes().await {
                let host = watch.current_view().hosts.get(&changed);
                let is_proved =
                    host.is_some_and(|host| host.status.power.off_confirmed_at.is_some());
                if let Some(number) = numbers.get(&changed).filter(|_| is_proved) {
                    confirmed.entry(*number).or_insert_with(Instant::now);
                }
            }
        }
    };
    let both = async { tokio::join!(join_all(asks), sees) };
    let both = tokio::time::timeout(PATIENCE, both).await;
    assert!(both.is_ok(), "not all were proved off");
    let written = written.lock().unwrap();
    let over = |number: usize| {
        let took = confirmed[&number].saturating_duration_since(written[&number]);
        took.saturating_sub(own_time(&stage.bmcs[number]) + PowerConfig::default().confirm)
    };
    hosts.map(over).collect()
}

async fn queue(controller: &Controller) {
    let (all, at_once) = (controller.count(ALL).await, controller.count(BUCKET).await);
    let mean = 1_000.0 * controller.count(WAITED).await / all;
    figure(
        "commands and their readings that waited longer than 10 ms for a place",
        &format!("{:.0} of {all:.0}, mean {mean:.3} ms", all - at_once),
        "none: polls are not waited for",
        (all - at_once).abs() < 1.0,
    );
}

/// What one reboot asks of a BMC.
async fn reboot(stage: &Stage, number: usize) {
    let bmc = &stage.bmcs[number];
    let before = bmc.request_counters().requests;
    stage
        .annotate(number, "reboot.metal3.io", Some(r#"{"mode":"hard"}"#))
        .await;
    let machine = bmc.machine();
    machine.wait_for_state(|state| !state.is_powered()).await;
    machine
        .wait_for_state(dogwatch_kubesim::machine::MachineState::is_powered)
        .await;
    let begun = Instant::now();
    let mut watch = HostWatch::new(stage.client.clone(), OwnerRules::default(), || 0.5);
    let is_done = |watch: &HostWatch| {
        let host = watch.current_view().hosts.get(&name(number));
        host.is_some_and(|host| host.status.power.command.is_none())
    };
    while !is_done(&watch) && begun.elapsed() < Duration::from_mins(1) {
        let _ = tokio::time::timeout(Duration::from_secs(1), watch.wait_for_changes()).await;
    }
    let asked = bmc.request_counters().requests - before;
    note(
        "requests to the BMC for one hard reboot, until it is seen on",
        &asked.to_string(),
    );
}
