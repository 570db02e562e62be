//! From "needs remediation" to "Node deleted", many at once, while some of their BMCs hang.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use dogwatch_core::power::PowerConfig;
use dogwatch_sim::bmc::BmcFaultKind;
use futures::StreamExt as _;
use futures::future::join_all;
use kube::api::{ListParams, WatchEvent, WatchParams};

use super::controller::Controller;
use super::effort::Effort;
use super::own::{own_time, power_offs};
use super::stage::{PATIENCE, Stage, name};
use super::table::{figure, in_words, spread};
use super::yard::{give_up, mark, nodes};

/// From the node controller's verdict to the health check's.
const GIVEN_UP_FOR: Duration = Duration::from_secs(30);
const REACH: Duration = Duration::from_millis(300);
/// How long those that hang are looked at after the others are done.
const LATER: Duration = Duration::from_secs(10);

/// The first `hung` of the first `failing` machines have a BMC that takes requests and never answers.
pub async fn measure(stage: &Stage, controller: &Controller, failing: usize, hung: usize) {
    stage.bmcs[..hung]
        .iter()
        .for_each(|bmc| bmc.add_fault(BmcFaultKind::Hang));
    stage.connect(failing).await;
    join_all((0..failing).map(|number| give_up(stage, number))).await;
    tokio::time::sleep(GIVEN_UP_FOR).await;
    let before = Effort::of(controller);
    let audit = stage.plane.audit_mark().await.expect("an audit log");
    let taken = remediate(stage, failing, hung).await;
    before.tell(controller, failing);
    let calls = stage.plane.call_times_since(audit).await;
    let calls = calls.expect("an audit log");
    eprint!("the API server's part of {failing} remediations:\n{calls}");
    let taken = spread(taken);
    figure(
        &format!(
            "{failing} of {} machines fail at once, {hung} of their BMCs hung: Node deleted over the BMC's time and 5s",
            stage.bmcs.len()
        ),
        &in_words(taken),
        "p99 <= 300 ms",
        taken[1] <= REACH,
    );
    tokio::time::sleep(LATER).await;
    let there = nodes(stage).list(&ListParams::default()).await.unwrap();
    let gone = stage.bmcs.len() - there.items.len();
    // One that hangs takes the command as well, again and again.
    let sent: usize = stage.bmcs[hung..].iter().map(power_offs).sum();
    figure(
        "Nodes deleted, power-offs sent to the BMCs that answer",
        &format!("{gone}, {sent}"),
        "one for each whose BMC answers",
        gone == failing - hung && sent == gone,
    );
}

/// How far each was over what nobody can be faster than.
async fn remediate(stage: &Stage, failing: usize, hung: usize) -> Vec<Duration> {
    let marks = (0..failing).map(|number| async move {
        mark(stage, number).await;
        Instant::now()
    });
    let deleted = deletions(stage, hung..failing).await;
    let both = async { tokio::join!(join_all(marks), deleted) };
    let both = tokio::time::timeout(PATIENCE, both).await;
    let (marked, deleted) = both.expect("every Node whose BMC answers is deleted");
    let over = |number: usize| {
        let took = deleted[&name(number).name].saturating_duration_since(marked[number]);
        took.saturating_sub(own_time(&stage.bmcs[number]) + PowerConfig::default().confirm)
    };
    (hung..failing).map(over).collect()
}

/// When each of these Nodes was seen to be gone, once all are. Its watch stands when this returns.
async fn deletions(
    stage: &Stage,
    numbers: std::ops::Range<usize>,
) -> impl Future<Output = BTreeMap<String, Instant>> {
    let nodes = nodes(stage);
    let now = nodes.list_metadata(&ListParams::default()).await.unwrap();
    let version = now.metadata.resource_version.unwrap();
    let params = WatchParams::default();
    let events = nodes.watch_metadata(&params, &version).await.unwrap();
    async move {
        let mut events = pin!(events);
        let mut gone = BTreeMap::new();
        while gone.len() < numbers.len() {
            let event = events.next().await.expect("it is not that long");
            if let WatchEvent::Deleted(node) = event.unwrap() {
                let name = node.metadata.name.unwrap();
                gone.entry(name).or_insert_with(Instant::now);
            }
        }
        gone
    }
}
