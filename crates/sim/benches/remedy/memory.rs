//! What the watches of remediation hold: a process that has nothing but them.

use std::path::Path;
use std::time::Duration;

use dogwatch_core::power::OwnerRules;
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_k8s::connect::connect_by_kubeconfig;
use dogwatch_k8s::host::HostWatch;
use dogwatch_k8s::remediation::RemediationWatch;
use tokio::process::Command;

use super::controller::{Controller, kibibytes};
use super::stage::Stage;
use super::table::{figure, note};
use super::yard::furnish;

/// Set for the process that watches: the kubeconfig.
pub const WATCHES: &str = "DOGWATCH_BENCH_WATCHES";
const MEMORY_MIB: f64 = 150.0;
const HOME: &str = "dogwatch";
/// How long it is left alone once all is listed.
const REST: Duration = Duration::from_secs(5);

/// With so many Machines, Nodes and hosts in all, of which the BMCs of `hung` do not answer; whoever
/// kept the others is gone.
pub async fn measure(stage: &mut Stage, many: usize, hung: usize) {
    furnish(stage, many).await;
    let [now, most] = watches(stage).await;
    figure(
        &format!("RSS of the controller's watches with {many} Machines, Nodes and hosts"),
        &format!("{now:.0} MiB, most {most:.0} MiB"),
        "<= 150 MiB",
        most <= MEMORY_MIB,
    );
    let controller = Controller::remediating(stage).await;
    controller.until_on(many - hung).await;
    let (now, most) = (controller.resident("VmRSS:"), controller.resident("VmHWM:"));
    note(
        &format!("RSS of a controller that keeps and remediates {many} hosts"),
        &format!("{now:.0} MiB, most {most:.0} MiB"),
    );
}

async fn watches(stage: &Stage) -> [f64; 2] {
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own)
        .env(WATCHES, stage.plane.admin_kubeconfig())
        .output();
    let output = output.await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let mebibytes: Vec<f64> = said
        .split(' ')
        .map(|word| word.trim().parse().unwrap())
        .collect();
    [mebibytes[0], mebibytes[1]]
}

/// The process that watches: prints its memory now and at most, in MiB, once it sees all.
pub async fn watch(kubeconfig: &Path) {
    let client = connect_by_kubeconfig(kubeconfig)
        .await
        .expect("a kubeconfig");
    let mut cluster = ClusterWatch::new(client.clone(), HOME, || 0.5);
    let mut hosts = HostWatch::new(client.clone(), OwnerRules::default(), || 0.5);
    let mut remedy = RemediationWatch::new(client, None, || 0.5);
    let mut until = None;
    while until.is_none_or(|until| tokio::time::Instant::now() < until) {
        tokio::select! {
            () = cluster.wait_for_change() => {}
            _ = hosts.wait_for_changes() => {}
            () = remedy.wait_for_change() => {}
            () = tokio::time::sleep(REST) => {}
        }
        let is_synced = cluster.current_view().synced
            && hosts.current_view().synced
            && remedy.current_view().synced;
        if is_synced && until.is_none() {
            until = Some(tokio::time::Instant::now() + REST);
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mebibytes = |field: &str| kibibytes(&status, field) / 1024.0;
    println!("{:.1} {:.1}", mebibytes("VmRSS:"), mebibytes("VmHWM:"));
}
