//! One node of a planned rollout: its object on the API server, its process, its host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_coordinator::agent::facts::{self, Fact};
use dogwatch_core::Now;
use dogwatch_core::condition::{self, Condition, Write};
use dogwatch_core::decision::Event;
use dogwatch_core::lock::HolderId;
use dogwatch_core::name::{BootId, GroupName, NodeName, RunId};
use dogwatch_core::policy::{self, Allowance, MinInterval, Policies, Rule};
use dogwatch_core::reboot::{
    Config, Decision, Fingerprint, Look, NodeFact, NodePatch, NodeSeen, Parsed, Record,
    RecordChange, Seen, TriggerSeen, TriggerState,
};

use crate::seed::Stream;

/// Where every simulated sentinel lies; a boot wipes it.
const SENTINEL: &str = "sentinel:/run/reboot-needed";

pub(super) struct Machine {
    pub(super) me: HolderId,
    pub(super) group: GroupName,
    policies: Arc<Policies>,
    /// As the API server has it.
    pub(super) object: NodeSeen,
    /// As the process sees it; the process is gone while the host is down.
    pub(super) seen: Option<Seen>,
    /// An action is under way.
    pub(super) busy: bool,
    /// Wake-ups of older decisions are void.
    pub(super) generation: u64,
    pub(super) looks: Vec<Look>,
    pub(super) looks_since: Duration,
    pub(super) say_scheduled: bool,
    pub(super) wanted_at: Option<Duration>,
    pub(super) won_at: Option<Duration>,
    unsaid: Vec<Event>,
    said: Vec<Event>,
    sentinel: bool,
    version: u64,
    stream: Stream,
    /// Up to how many per cent its own times differ.
    spread: u8,
}

impl Machine {
    pub(super) fn new(
        name: NodeName,
        labels: BTreeMap<String, String>,
        policies: &Arc<Policies>,
        mut stream: Stream,
        spread: u8,
    ) -> Self {
        let boot = stream.boot_id();
        let mut machine = Self {
            me: HolderId::node(&name),
            group: policy::group(policies, &labels),
            object: object(name, labels, boot.clone()),
            policies: Arc::clone(policies),
            seen: None,
            busy: false,
            generation: 0,
            looks: Vec::new(),
            looks_since: Duration::ZERO,
            say_scheduled: false,
            wanted_at: None,
            won_at: None,
            unsaid: Vec::new(),
            said: Vec::new(),
            sentinel: false,
            version: 1,
            stream,
            spread,
        };
        machine.start(boot);
        machine
    }

    fn start(&mut self, boot: BootId) {
        let run = RunId::new(format!("coordinator/{}", self.stream.uuid()))
            .expect("a UUID after a known prefix");
        let mut seen = facts::first_sight(&run, self.me.clone(), Ok(boot));
        seen.policies = Policies::clone(&self.policies);
        self.seen = Some(seen);
    }

    /// The sentinel appears.
    pub(super) fn want(&mut self, now: Now) {
        self.sentinel = true;
        self.wanted_at = Some(now.mono);
        self.take(self.triggers(), now);
    }

    fn triggers(&self) -> Fact {
        let state = if self.sentinel {
            TriggerState::Present {
                fingerprint: Fingerprint("1".into()),
                reason: "planned rollout".into(),
            }
        } else {
            TriggerState::Absent
        };
        Fact::Triggers(vec![TriggerSeen {
            source: SENTINEL.into(),
            state,
        }])
    }

    pub(super) fn is_control_plane(&self) -> bool {
        policy::is_control_plane(&self.object.labels)
    }

    /// In which zone it is, where its policy goes by one.
    pub(super) fn zone(&self) -> Option<String> {
        policy::zone(&self.policies, &self.object.labels)
    }

    /// What holds for it.
    pub(super) fn rule<'a>(&'a self, flags: &Config) -> Rule<'a> {
        policy::rule(&self.policies, &self.object.labels, flags)
    }

    /// When the policy will give leave to begin that it does not give now; `None`: never, or it
    /// does.
    pub(super) fn leave_comes(&self, flags: &Config, now: Now) -> Option<Duration> {
        match self.leave(flags, now) {
            Allowance::No { until, .. } => until.map(|at| now.mono_at(at)),
            Allowance::Yes { .. } => None,
        }
    }

    /// Whether a reboot may begin.
    pub(super) fn leave(&self, flags: &Config, now: Now) -> Allowance {
        let rule = self.rule(flags);
        let interval = MinInterval::of(self.object.last.get());
        let needs = rule.config.drain_timeout;
        policy::allowed(&self.policies, rule.policy, needs, interval, now.wall)
    }

    /// The host goes down: the process, and all it knew, is gone.
    pub(super) fn down(&mut self) {
        self.object.ready = false;
        self.seen = None;
        self.busy = false;
        self.generation += 1;
        self.looks.clear();
        self.unsaid.clear();
        self.said.clear();
        self.say_scheduled = false;
    }

    /// A new boot, with nothing in `/run`.
    pub(super) fn up(&mut self, now: Now) {
        let boot = self.stream.boot_id();
        self.sentinel = false;
        self.object.ready = true;
        self.object.boot_id = Some(boot.clone());
        self.touched();
        self.start(boot);
        self.take(self.triggers(), now);
        self.sees_itself(now);
    }

    /// Its watch shows it its own Node.
    pub(super) fn sees_itself(&mut self, now: Now) {
        self.take(
            Fact::Node(NodeFact::There(Box::new(self.object.clone()))),
            now,
        );
    }

    pub(super) fn take(&mut self, fact: Fact, now: Now) {
        if let Some(seen) = &mut self.seen {
            facts::apply(seen, fact, now);
        }
    }

    /// One conditional patch; `false` is a conflict.
    pub(super) fn patch(&mut self, patch: &NodePatch, now: Now) -> bool {
        let Some(seen) = &mut self.seen else {
            return false;
        };
        seen.run.sending(self.object.record.get(), patch);
        if patch.resource_version != self.object.resource_version {
            return false;
        }
        seen.run.answered(patch, now);
        self.object.unschedulable = patch.unschedulable.unwrap_or(self.object.unschedulable);
        self.object.waiting_label = patch.waiting_label.unwrap_or(self.object.waiting_label);
        self.object.record = match &patch.record {
            RecordChange::Set(record) => Parsed::Is(record.clone()),
            RecordChange::Remove => Parsed::Absent,
        };
        if let Some(last) = &patch.last {
            self.object.last = Parsed::Is(last.clone());
        }
        self.touched();
        self.sees_itself(now);
        true
    }

    fn touched(&mut self) {
        self.version += 1;
        self.object.resource_version = self.version.to_string();
    }

    pub(super) fn record(&self) -> Option<&Record> {
        self.object.record.get()
    }

    /// Gathers what is to be said; whether there is anything.
    pub(super) fn gather(&mut self, decision: &Decision, now: Now) -> bool {
        for event in &decision.report.events {
            if !self.said.contains(event) && !self.unsaid.contains(event) {
                self.unsaid.push(event.clone());
            }
        }
        !self.unsaid.is_empty() || !self.writes(decision, now).is_empty()
    }

    fn writes(&self, decision: &Decision, now: Now) -> Vec<Write> {
        condition::to_write(&self.object.conditions, &decision.report.conditions, now)
    }

    /// Says it; answers how many Events and condition patches that were.
    pub(super) fn say(&mut self, decision: &Decision, now: Now) -> (u64, u64) {
        let events = u64::try_from(self.unsaid.len()).unwrap_or(u64::MAX);
        self.said.append(&mut self.unsaid);
        let writes = self.writes(decision, now);
        if writes.is_empty() {
            return (events, 0);
        }
        for write in writes {
            self.write(write, now);
        }
        self.touched();
        self.sees_itself(now);
        (events, 1)
    }

    fn write(&mut self, write: Write, now: Now) {
        let condition = Condition {
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

    /// Its own version of a time that was given for all.
    pub(super) fn own(&mut self, time: Duration) -> Duration {
        let spread = f64::from(self.spread) / 100.0;
        time.mul_f64(1.0 - spread + 2.0 * spread * self.stream.fraction())
    }
}

fn object(name: NodeName, labels: BTreeMap<String, String>, boot: BootId) -> NodeSeen {
    NodeSeen {
        uid: format!("node-{name}"),
        name,
        resource_version: "1".into(),
        unschedulable: false,
        ready: true,
        boot_id: Some(boot),
        labels,
        keep_cordoned: false,
        needs_remediation: false,
        out_of_service: false,
        fenced: false,
        system_uuid: None,
        provider_id: None,
        waiting_label: false,
        record: Parsed::Absent,
        request: Parsed::Absent,
        request_fingerprint: None,
        abort: Parsed::Absent,
        api_lock: false,
        last: Parsed::Absent,
        conditions: Vec::new(),
    }
}
