//! Reboots at an appointed time: waits for the time of each `RebootSchedule`, then issues requests
//! to its targets.
//!
//! **For:** one domain of the loop ([`dogwatch_runtime::reconcile`]); decided by
//! [`schedule::decide`].
//! **May touch:** what [`ScheduleClient`] may.
//! **Promises:** those of the loop.

mod observe;
mod perform;
mod schedule_metrics;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use dogwatch_core::Now;
use dogwatch_core::schedule::{
    self, ScheduleAction, ScheduleDecision, ScheduleName, ScheduleSnapshot,
};
use dogwatch_k8s::schedule::{ScheduleClient, ScheduleWatch};
use dogwatch_runtime::jitter::JitterSource;
use dogwatch_runtime::reconcile::{CallEnd, LoopLimits, ReconcileDomain};

use self::observe::ScheduleMemory;
use self::perform::{ScheduleAnswer, ScheduleCalls, ScheduleFinding};
use crate::ControllerContext;
use crate::context::RETRY_PAUSES;
use crate::metrics::MetricsRegistry;
use crate::watch_error_log::WatchErrorLog;

/// How many requests are made before the schedule is decided anew, so that a schedule that is
/// suspended meanwhile stops soon.
const MAX_REQUESTS_PER_BATCH: usize = 64;
const MAX_CONCURRENT_REQUESTS: usize = 16;

/// Who carries NodeReboots to their Nodes while this process leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeRebootCarrier {
    /// Its components include the healer or remediation.
    ThisProcess,
    /// Nodes are asked by annotation.
    Nobody,
}

pub async fn run_schedules(context: ControllerContext, carrier: NodeRebootCarrier) {
    context
        .run_domain_while_leading(|| ScheduleDomain::new(&context, carrier))
        .await;
}

struct ScheduleDomain {
    watch: ScheduleWatch,
    calls: Arc<ScheduleCalls>,
    metrics: MetricsRegistry,
    memories: BTreeMap<ScheduleKey, ScheduleMemory>,
    /// UIDs of all existing schedules.
    living: BTreeSet<String>,
    watch_error: WatchErrorLog,
}

/// A schedule that was deleted and created again is another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ScheduleKey {
    name: ScheduleName,
    uid: String,
}

impl fmt::Display for ScheduleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl ScheduleDomain {
    fn new(context: &ControllerContext, carrier: NodeRebootCarrier) -> Self {
        let (client, home) = (context.client.clone(), context.namespace.clone());
        let jitter = JitterSource::of_process(&context.process);
        Self {
            watch: ScheduleWatch::new(client.clone(), home.clone(), move || jitter.next_fraction()),
            calls: Arc::new(ScheduleCalls {
                client: ScheduleClient::new(client, home),
                clock: context.clock.clone(),
                carrier,
            }),
            metrics: context.metrics.clone(),
            memories: BTreeMap::new(),
            living: BTreeSet::new(),
            watch_error: WatchErrorLog::default(),
        }
    }
}

impl ReconcileDomain for ScheduleDomain {
    type Key = ScheduleKey;
    type Calls = ScheduleCalls;

    const LIMITS: LoopLimits = LoopLimits {
        name: "schedules",
        retry: RETRY_PAUSES,
        concurrent_actions: MAX_CONCURRENT_REQUESTS,
    };

    fn domain_calls(&self) -> Arc<ScheduleCalls> {
        Arc::clone(&self.calls)
    }

    async fn wait_for_change(&mut self) {
        self.watch.wait_for_change().await;
    }

    fn list_keys(&mut self) -> Option<Vec<ScheduleKey>> {
        let view = self.watch.current_view();
        self.watch_error
            .log_change(view.error.as_ref(), "failed to read the schedules");
        if !view.synced {
            return None;
        }
        let mut keys = Vec::new();
        for (name, schedule) in &view.schedules {
            let (name, uid) = (name.clone(), schedule.uid.clone());
            let key = ScheduleKey { name, uid };
            let memory = self.memories.entry(key.clone());
            memory
                .or_insert_with(|| ScheduleMemory::new(schedule))
                .observe_schedule(schedule);
            keys.push(key);
        }
        self.living = keys.iter().map(|key| key.uid.clone()).collect();
        self.memories.retain(|key, _| {
            let schedule = view.schedules.get(&key.name);
            schedule.is_some_and(|schedule| schedule.uid == key.uid)
        });
        Some(keys)
    }

    fn object_generation(&self, key: &ScheduleKey) -> Option<i64> {
        self.memories[key].watched_schedule().generation
    }

    fn build_snapshot(&self, key: &ScheduleKey) -> ScheduleSnapshot {
        self.memories[key].build_snapshot(&self.living)
    }

    fn decide(&self, seen: &ScheduleSnapshot, now: Now) -> ScheduleDecision {
        let mut decision = schedule::decide(seen, now);
        // Targets whose request failed before come after the others.
        decision.actions.sort_by_key(|action| match action {
            ScheduleAction::WriteStatus(_) => false,
            ScheduleAction::CreateReboot(draft) => seen.request_errors.contains_key(&draft.target),
            ScheduleAction::Ask(ask) => seen.request_errors.contains_key(&ask.target),
        });
        decision.actions.truncate(MAX_REQUESTS_PER_BATCH);
        decision
    }

    fn apply_action_end(
        &mut self,
        key: &ScheduleKey,
        seen: &ScheduleSnapshot,
        action: &ScheduleAction,
        end: CallEnd<ScheduleAnswer>,
    ) {
        schedule_metrics::record_action_end(&self.metrics, &seen.schedule, action, &end);
        let Some(memory) = self.memories.get_mut(key) else {
            return;
        };
        match (action, end) {
            (_, CallEnd::Done(ScheduleAnswer::Schedule(schedule))) => {
                memory.observe_schedule(&schedule);
            }
            (ScheduleAction::Ask(ask), CallEnd::Done(ScheduleAnswer::Target(object))) => {
                memory.record_request(&ask.target, *object);
            }
            (ScheduleAction::CreateReboot(draft), CallEnd::Done(ScheduleAnswer::Made(made))) => {
                memory.record_made_reboot(&draft.target, *made);
            }
            (_, CallEnd::Done(ScheduleAnswer::Refused(why))) => memory.record_refusal(why),
            // It may have been created: the next list shows it.
            (ScheduleAction::CreateReboot(draft), CallEnd::Failed(error)) => {
                memory.forget_reboots();
                memory.record_request_error(&draft.target, error);
            }
            (ScheduleAction::CreateReboot(_), CallEnd::Done(_) | CallEnd::Changed) => {
                memory.forget_reboots();
            }
            (ScheduleAction::Ask(_), CallEnd::Changed) => memory.forget_targets(),
            (ScheduleAction::Ask(ask), CallEnd::Failed(error)) => {
                memory.record_request_error(&ask.target, error);
            }
            // The watch shows what has changed, and the status is written again.
            (ScheduleAction::WriteStatus(_), _)
            | (ScheduleAction::Ask(_), CallEnd::Done(ScheduleAnswer::Made(_))) => {}
        }
    }

    fn apply_finding(&mut self, key: &ScheduleKey, finding: ScheduleFinding) {
        let Some(memory) = self.memories.get_mut(key) else {
            return;
        };
        match finding {
            ScheduleFinding::Targets(targets) => memory.observe_targets(targets),
            ScheduleFinding::Reboots(read) => memory.observe_reboots(read),
        }
    }

    fn publish_metrics(&self) {
        let all = self.memories.values().map(ScheduleMemory::watched_schedule);
        schedule_metrics::publish_schedules(&self.metrics, all);
    }

    fn clear_metrics(&self) {
        schedule_metrics::publish_schedules(&self.metrics, std::iter::empty());
    }
}
