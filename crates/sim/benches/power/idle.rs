//! What many hosts cost while nothing is to be done.

use std::time::{Duration, Instant};

use dogwatch_testbed::bench::number_of;

use super::controller::Controller;
use super::stage::Stage;
use super::table::{figure, note};

/// How long it is measured: as long as from one check of power control to the next, in seconds.
const WINDOW: usize = 300;
const MEMORY_MIB: f64 = 200.0;
const CORES: f64 = 0.5;

/// With so many hosts in all; whoever kept the others is gone.
pub async fn measure(stage: &mut Stage, hosts: usize) {
    let more = hosts.saturating_sub(stage.bmcs.len());
    stage.add_hosts(more, 0).await;
    let begun = Instant::now();
    let controller = Controller::start(stage).await;
    let seen = begun.elapsed();
    controller.until_it_leads().await;
    let led = begun.elapsed();
    controller
        .until_on((hosts * 9 / 10).saturating_sub(200))
        .await;
    let read = begun.elapsed();
    until_quiet(&controller).await;
    eprintln!(
        "listed after {seen:.1?}, leads after {led:.1?}, all read after {read:.1?}, all said after {:.1?}; \
         {:.1} s of processor",
        begun.elapsed(),
        controller.processor()
    );
    let window = Duration::from_secs(number_of("WINDOW", WINDOW) as u64);
    let (began, spent, asked) = (Instant::now(), controller.processor(), requests(stage));
    tokio::time::sleep(window).await;
    let (seconds, spent) = (
        began.elapsed().as_secs_f64(),
        controller.processor() - spent,
    );
    let cores = spent / seconds;
    let each_hour = (requests(stage) - asked) as f64 / hosts as f64 / seconds * 3600.0;
    let (now, most) = (controller.resident("VmRSS:"), controller.resident("VmHWM:"));
    figure(
        &format!("RSS of a controller with {hosts} hosts"),
        &format!("{now:.0} MiB, most {most:.0} MiB"),
        "<= 200 MiB",
        most <= MEMORY_MIB,
    );
    figure(
        "its processor time, polls every 60 s",
        &format!("{cores:.2} cores"),
        "<= 0.5 cores",
        cores <= CORES,
    );
    note(
        "requests to a BMC each hour, idle",
        &format!("{each_hour:.0}"),
    );
    eprintln!("{} warnings", controller.warnings());
}

/// Until what is to be said of the hosts is written.
async fn until_quiet(controller: &Controller) {
    const WRITES: &str = "dogwatch_power_host_writes_total";
    let mut before = controller.count(WRITES).await;
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let now = controller.count(WRITES).await;
        if now - before < 50.0 {
            return;
        }
        before = now;
    }
}

fn requests(stage: &Stage) -> u64 {
    stage
        .bmcs
        .iter()
        .map(|bmc| bmc.request_counters().requests)
        .sum()
}
