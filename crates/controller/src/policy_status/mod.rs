//! What each policy governs, written into its status by the one that leads.
//!
//! **For:** `kubectl get rebootpolicies`, and whoever wants to know why a group does not move.
//! **May touch:** the status of RebootPolicies.
//! **Promises:** at most one write per policy in [`WRITE_EVERY`], and the last state is always
//! written; what stands there already is not written again, so that it never wakes itself.

mod pace;

use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::reboot_policy::RebootPolicyStatus;
use dogwatch_core::policy::{self, Policies, PolicyStatus};
use dogwatch_k8s::Kind;
use dogwatch_k8s::cluster::{ClusterView, PolicyStanding};
use dogwatch_k8s::policy::{status_to_write, write_status};
use tracing::warn;

use self::pace::Pace;
use crate::Context;
use crate::metrics::{Family, Labels, Shape};

/// How often one policy may be written.
pub const WRITE_EVERY: Duration = Duration::from_secs(5);
/// How often it is all worked out: with 5,000 nodes something changes many times a second, and a
/// pass over them takes milliseconds.
const LOOK_EVERY: Duration = Duration::from_secs(1);

static NODES: Family = Family {
    name: "dogwatch_policy_nodes",
    help: "Nodes of each policy: governed, ready, out on Dogwatch's account, waiting, and blocked by the policy.",
    shape: Shape::Gauge,
};
static BLOCKED: Family = Family {
    name: "dogwatch_policy_blocked",
    help: "1 while nodes of the policy wait and none of them may go, by the reason of the one that has waited longest for it. A wait for a window, the end of a pause or minInterval does not count.",
    shape: Shape::Gauge,
};
static ACCEPTED: Family = Family {
    name: "dogwatch_policy_accepted",
    help: "0 for a policy that cannot be understood: nothing that it governs begins.",
    shape: Shape::Gauge,
};
static WRITES: Family = Family {
    name: "dogwatch_policy_status_writes_total",
    help: "Writes of a policy's status, by how they ended: written, changed or failed.",
    shape: Shape::Counter,
};

/// Keeps all statuses true while this process leads.
pub async fn run(context: Context) {
    context.while_leading(|| lead(context.clone())).await;
}

async fn lead(context: Context) {
    let _shown = Shown(&context);
    let heart = context.board.heart("policy status");
    let mut cluster = context.cluster.clone();
    let mut pace = Pace::default();
    let mut view = cluster.view();
    loop {
        heart.working("the status of policies");
        let next = pass(&context, &view, &mut pace).await;
        let again = context.clock.now().mono + LOOK_EVERY;
        heart.sleeping(next.map(|next| next.saturating_sub(context.clock.now().mono)));
        // Whatever comes first: a change, or a policy that had to wait for its turn.
        tokio::select! {
            changed = cluster.next() => view = changed,
            () = context.clock.wake_at(next) => {}
        }
        context.clock.sleep_until(again).await;
        view = newest(&cluster, view);
    }
}

fn newest(cluster: &crate::cluster::Cluster, view: Arc<ClusterView>) -> Arc<ClusterView> {
    let now = cluster.view();
    if now.synced { now } else { view }
}

/// Works out all statuses and writes those that differ; when one that has to wait may be written.
async fn pass(context: &Context, view: &ClusterView, pace: &mut Pace) -> Option<Duration> {
    let Policies::Known(policies) = &view.policies else {
        return None;
    };
    if !view.synced {
        return None;
    }
    let nodes = view.nodes.values().map(AsRef::as_ref);
    let statuses = policy::status(policies, nodes, &view.remediations());
    show(context, policies, &statuses);
    pace.keep(|name| view.policy_objects.contains_key(name));
    let mut next: Option<Duration> = None;
    for ((name, standing), status) in view.policy_objects.iter().zip(&statuses) {
        let now = context.clock.now().wall;
        let Some(wanted) = status_to_write(status, policies, standing, now) else {
            continue;
        };
        let due = pace.due(name);
        if context.clock.now().mono < due {
            next = Some(next.map_or(due, |next| next.min(due)));
            continue;
        }
        context.leadership.leads()?;
        write(context, name, standing, &wanted).await;
        let due = context.clock.now().mono + pause(view.nodes.len());
        pace.wrote(name, due);
        // Its answer comes through the watch; if it failed, this is when it is tried again.
        next = Some(next.map_or(due, |next| next.min(due)));
    }
    next
}

async fn write(
    context: &Context,
    name: &str,
    standing: &PolicyStanding,
    wanted: &RebootPolicyStatus,
) {
    let ended = match write_status(&context.client, name, standing, wanted).await {
        Ok(()) => "written",
        // Somebody was quicker: the watch shows it.
        Err(error) if matches!(error.kind(), Kind::Conflict | Kind::NotFound) => "changed",
        Err(error) => {
            warn!(
                policy = name,
                error = error.in_words(),
                "cannot write a policy's status"
            );
            "failed"
        }
    };
    context.metrics.add(&WRITES, &[("ended", ended)], 1);
}

fn show(context: &Context, policies: &[policy::Policy], statuses: &[PolicyStatus]) {
    let mut nodes: Vec<(Labels, f64)> = Vec::new();
    let mut blocked: Vec<(Labels, f64)> = Vec::new();
    let mut accepted: Vec<(Labels, f64)> = Vec::new();
    for (policy, status) in policies.iter().zip(statuses) {
        let label = || ("policy", policy.name.to_string());
        for (state, count) in counts(status) {
            nodes.push((vec![label(), ("state", state.to_owned())], f64::from(count)));
        }
        if let Some(reason) = &status.stuck {
            blocked.push((vec![label(), ("reason", reason.clone())], 1.0));
        }
        let is_accepted = policy.problems.is_empty();
        accepted.push((vec![label()], f64::from(u8::from(is_accepted))));
    }
    context.metrics.replace(&NODES, nodes);
    context.metrics.replace(&BLOCKED, blocked);
    context.metrics.replace(&ACCEPTED, accepted);
}

fn counts(status: &PolicyStatus) -> [(&'static str, u32); 5] {
    [
        ("governed", status.nodes),
        ("ready", status.ready),
        ("out", count(&status.out)),
        ("waiting", count(&status.waiting)),
        ("blocked", status.blocked),
    ]
}

fn count<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// How long after a write the next one of the same policy may come. Each is told to every node's
/// coordinator, so that 5,000 nodes get one in 30 s and not in 5.
fn pause(nodes: usize) -> Duration {
    WRITE_EVERY + Duration::from_millis(5) * u32::try_from(nodes).unwrap_or(u32::MAX)
}

/// While it lives, this process tells of policies. Who does not lead does not: two replicas would
/// count everything twice.
struct Shown<'a>(&'a Context);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        for family in [&NODES, &BLOCKED, &ACCEPTED] {
            self.0.metrics.replace(family, []);
        }
    }
}
