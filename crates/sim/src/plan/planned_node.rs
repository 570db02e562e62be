//! One node of a planned rollout: its object on the API server, its process, its host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_coordinator::agent::facts::{self, ObservedFact};
use dogwatch_core::Now;
use dogwatch_core::condition::{self, ConditionWrite, CurrentCondition, DesiredCondition};
use dogwatch_core::decision::{DecisionEvent, DecisionReport};
use dogwatch_core::lock::HolderId;
use dogwatch_core::name::{BootId, GroupName, NodeName, RunId};
use dogwatch_core::policy::{self, ClusterPolicies, EffectivePolicy, MinInterval, RebootAllowance};
use dogwatch_core::reboot::{
    NodePatch, ObservedNode, ObservedTrigger, OwnNodeState, ParsedAnnotation, RebootConfig,
    RebootObserve, RebootRecord, RebootSnapshot, RecordChange, TriggerFingerprint, TriggerState,
};
use dogwatch_kubesim::seed::RandomStream;

use crate::names;

/// The path of every simulated sentinel; a boot deletes it.
const SENTINEL_SOURCE: &str = "sentinel:/run/reboot-needed";

pub(super) struct PlannedNode {
    pub(super) holder_id: HolderId,
    pub(super) group: GroupName,
    policies: Arc<ClusterPolicies>,
    /// The Node on the API server.
    pub(super) object: ObservedNode,
    /// The process's view; `None` while the host is down.
    pub(super) snapshot: Option<RebootSnapshot>,
    /// An action is in progress.
    pub(super) busy: bool,
    /// Wake-ups of older generations are ignored.
    pub(super) generation: u64,
    pub(super) observations: Vec<RebootObserve>,
    pub(super) observing_since: Duration,
    /// The version of its group's Leases that its process has seen.
    pub(super) lease_version: Option<u64>,
    /// Since when it has waited for holders to release.
    pub(super) waiting_for_holders_since: Option<Duration>,
    pub(super) report_scheduled: bool,
    pub(super) triggered_at: Option<Duration>,
    pub(super) won_at: Option<Duration>,
    pending_events: Vec<DecisionEvent>,
    /// The conditions of the latest decision.
    desired_conditions: Vec<DesiredCondition>,
    published_events: Vec<DecisionEvent>,
    sentinel: bool,
    version: u64,
    stream: RandomStream,
    /// By up to how many per cent its own durations differ.
    spread: u8,
}

impl PlannedNode {
    pub(super) fn new(
        name: NodeName,
        labels: BTreeMap<String, String>,
        policies: &Arc<ClusterPolicies>,
        mut stream: RandomStream,
        spread: u8,
    ) -> Self {
        let boot = names::boot_id(&stream.next_boot_id());
        let mut machine = Self {
            holder_id: HolderId::for_node(&name),
            group: policy::group_of_labels(policies, &labels),
            object: build_node(name, labels, boot.clone()),
            policies: Arc::clone(policies),
            snapshot: None,
            busy: false,
            generation: 0,
            observations: Vec::new(),
            observing_since: Duration::ZERO,
            lease_version: None,
            waiting_for_holders_since: None,
            report_scheduled: false,
            triggered_at: None,
            won_at: None,
            pending_events: Vec::new(),
            desired_conditions: Vec::new(),
            published_events: Vec::new(),
            sentinel: false,
            version: 1,
            stream,
            spread,
        };
        machine.start_run(boot);
        machine
    }

    fn start_run(&mut self, boot: BootId) {
        let run = RunId::new(format!("coordinator/{}", self.stream.next_uuid()))
            .expect("a UUID after a known prefix");
        let mut seen = facts::initial_snapshot(&run, self.holder_id.clone(), Ok(boot));
        seen.policies = ClusterPolicies::clone(&self.policies);
        // `PlannedRollout::count_holder_checks` counts what it would do.
        seen.run.break_forbidden = true;
        self.snapshot = Some(seen);
    }

    pub(super) fn trigger_reboot(&mut self, now: Now) {
        self.sentinel = true;
        self.triggered_at = Some(now.mono);
        self.observe_policies(now);
        self.apply_fact(self.trigger_fact(), now);
    }

    fn trigger_fact(&self) -> ObservedFact {
        let state = if self.sentinel {
            TriggerState::Present {
                fingerprint: TriggerFingerprint("1".into()),
                reason: "planned rollout".into(),
            }
        } else {
            TriggerState::Absent
        };
        ObservedFact::Triggers(vec![ObservedTrigger {
            source: SENTINEL_SOURCE.into(),
            state,
        }])
    }

    pub(super) fn is_control_plane(&self) -> bool {
        policy::is_control_plane(&self.object.labels)
    }

    /// The node's zone, if its policy considers zones.
    pub(super) fn zone_of_node(&self) -> Option<String> {
        policy::zone_of_labels(&self.policies, &self.object.labels)
    }

    /// The rule that applies to this node.
    pub(super) fn policy_rule<'a>(&'a self, flags: &RebootConfig) -> EffectivePolicy<'a> {
        policy::resolve_policy(&self.policies, &self.object.labels, flags)
    }

    /// When the policy will next allow a reboot to begin; `None`: never, or it does so now.
    pub(super) fn next_allowance(&self, flags: &RebootConfig, now: Now) -> Option<Duration> {
        match self.reboot_allowance(flags, now) {
            RebootAllowance::No { until, .. } => until.map(|at| now.mono_time_of(at)),
            RebootAllowance::Yes { .. } => None,
        }
    }

    pub(super) fn reboot_allowance(&self, flags: &RebootConfig, now: Now) -> RebootAllowance {
        let rule = self.policy_rule(flags);
        let interval = MinInterval::since_last_reboot(self.object.last_reboot.get());
        let needs = rule.config.longest_drain();
        let candidate = self.object.rollout_candidate();
        policy::may_reboot_begin(
            &self.policies,
            rule.policy,
            needs,
            interval,
            candidate,
            now.wall,
        )
    }

    /// Takes the policies with a newer state of their rollouts, as the watch would bring them.
    /// Returns whether the node decides by them: one that wants no reboot looks at them when it does.
    pub(super) fn take_policies(&mut self, policies: &Arc<ClusterPolicies>, now: Now) -> bool {
        self.policies = Arc::clone(policies);
        let is_concerned = self.sentinel || self.reboot_record().is_some();
        if is_concerned {
            self.observe_policies(now);
        }
        is_concerned
    }

    fn observe_policies(&mut self, now: Now) {
        let policies = ClusterPolicies::clone(&self.policies);
        self.apply_fact(ObservedFact::Policies(policies), now);
    }

    /// Shuts the host down; the process and its memory are gone.
    pub(super) fn shut_down(&mut self) {
        self.object.ready = false;
        self.snapshot = None;
        self.busy = false;
        self.generation += 1;
        self.observations.clear();
        self.pending_events.clear();
        self.desired_conditions.clear();
        self.published_events.clear();
        self.report_scheduled = false;
    }

    /// Starts a new boot; the files in `/run` are gone.
    pub(super) fn boot_up(&mut self, now: Now) {
        let boot = names::boot_id(&self.stream.next_boot_id());
        self.sentinel = false;
        self.object.ready = true;
        self.object.boot_id = Some(boot.clone());
        self.bump_version();
        self.start_run(boot);
        self.apply_fact(self.trigger_fact(), now);
        self.observe_own_node(now);
    }

    /// Updates the process's view with its own Node, as its watch would.
    pub(super) fn observe_own_node(&mut self, now: Now) {
        self.apply_fact(
            ObservedFact::Node(OwnNodeState::There(Box::new(self.object.clone()))),
            now,
        );
    }

    pub(super) fn apply_fact(&mut self, fact: ObservedFact, now: Now) {
        if let Some(seen) = &mut self.snapshot {
            facts::apply_fact(seen, fact, now);
        }
    }

    /// Sends one conditional patch; returns `false` on a conflict.
    pub(super) fn patch_node(&mut self, patch: &NodePatch, now: Now) -> bool {
        let Some(seen) = &mut self.snapshot else {
            return false;
        };
        seen.run
            .record_patch_sending(self.object.record.get(), patch);
        if patch.resource_version != self.object.resource_version {
            return false;
        }
        seen.run.record_patch_answer(patch, now);
        self.object.unschedulable = patch.unschedulable.unwrap_or(self.object.unschedulable);
        self.object.waiting_label = patch.waiting_label.unwrap_or(self.object.waiting_label);
        self.object.record = match &patch.record {
            RecordChange::Set(record) => ParsedAnnotation::Is(record.clone()),
            RecordChange::Remove => ParsedAnnotation::Absent,
        };
        if let Some(last) = &patch.last {
            self.object.last_reboot = ParsedAnnotation::Is(last.clone());
        }
        self.bump_version();
        self.observe_own_node(now);
        true
    }

    fn bump_version(&mut self) {
        self.version += 1;
        self.object.resource_version = self.version.to_string();
    }

    pub(super) fn reboot_record(&self) -> Option<&RebootRecord> {
        self.object.record.get()
    }

    /// Collects what must be reported; returns whether there is anything.
    pub(super) fn collect_report(&mut self, report: DecisionReport, now: Now) -> bool {
        for event in report.events {
            if !self.published_events.contains(&event) && !self.pending_events.contains(&event) {
                self.pending_events.push(event);
            }
        }
        self.desired_conditions = report.conditions;
        !self.pending_events.is_empty() || !self.condition_writes(now).is_empty()
    }

    fn condition_writes(&self, now: Now) -> Vec<ConditionWrite> {
        condition::conditions_to_write(&self.object.conditions, &self.desired_conditions, now)
    }

    /// Reports what the latest decision says; returns the number of Events and of condition patches.
    pub(super) fn publish_report(&mut self, now: Now) -> (u64, u64) {
        let events = u64::try_from(self.pending_events.len()).unwrap_or(u64::MAX);
        self.published_events.append(&mut self.pending_events);
        let writes = self.condition_writes(now);
        if writes.is_empty() {
            return (events, 0);
        }
        for write in writes {
            self.write_condition(write, now);
        }
        self.bump_version();
        self.observe_own_node(now);
        (events, 1)
    }

    fn write_condition(&mut self, write: ConditionWrite, now: Now) {
        let condition = CurrentCondition {
            kind: write.observation.kind.to_owned(),
            status: write.observation.status.as_str().to_owned(),
            reason: write.observation.reason,
            message: write.observation.message,
            last_transition: Some(write.last_transition),
            last_heartbeat: Some(now.wall),
        };
        self.object
            .conditions
            .retain(|there| there.kind != condition.kind);
        self.object.conditions.push(condition);
    }

    /// Varies a duration by this node's random share of the spread.
    pub(super) fn spread_duration(&mut self, time: Duration) -> Duration {
        let spread = f64::from(self.spread) / 100.0;
        time.mul_f64(1.0 - spread + 2.0 * spread * self.stream.next_fraction())
    }
}

fn build_node(name: NodeName, labels: BTreeMap<String, String>, boot: BootId) -> ObservedNode {
    let uid = format!("node-{name}");
    ObservedNode {
        labels,
        ..ObservedNode::ready_node(name, uid, boot)
    }
}
