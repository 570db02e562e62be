//! One Node, its NodeReboots, a coordinator, and a leader that performs what is decided.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::node_reboot::{RebootMethod, RequiredCondition, condition};
use jiff::Timestamp;

use super::super::request::lists_reboot;
use super::super::*;
use super::host_kit::{HostKit, puts_key};
use crate::Now;
use crate::condition::{CurrentCondition, transition_time};
use crate::name::{BootId, NodeName};
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootPhase};

pub const NODE: &str = "n1";
/// More calls than any story needs.
const MANY: usize = 50;

pub fn wall(second: u64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap()
}

pub fn plan(method: RebootMethod) -> NodeRebootPlan {
    NodeRebootPlan {
        node: NodeName::new(NODE).unwrap(),
        node_uid: None,
        method,
        reason: "kernel".into(),
        requester: Some("ann".into()),
        not_before: None,
        deadline: None,
        success: None,
        escalation: Vec::new(),
        cancel: false,
        ttl: Duration::from_hours(24),
    }
}

/// A reboot that counts when condition `GpuFault` is False within 10 minutes.
pub fn plan_with_success(escalation: &[RebootMethod]) -> NodeRebootPlan {
    NodeRebootPlan {
        success: Some(SuccessPlan {
            conditions: vec![RequiredCondition {
                kind: "GpuFault".into(),
                status: "False".into(),
            }],
            within: Duration::from_mins(10),
        }),
        escalation: escalation.to_vec(),
        ..plan(RebootMethod::Reboot)
    }
}

pub fn empty_node() -> ObservedNode {
    ObservedNode::ready_node(NodeName::new(NODE).unwrap(), "uid-n1".into(), boot(0))
}

pub fn boot(number: u32) -> BootId {
    BootId::new(format!("boot-{number}")).unwrap()
}

#[derive(Clone)]
pub struct World {
    pub second: u64,
    pub node: Option<ObservedNode>,
    pub reboots: BTreeMap<String, ObservedNodeReboot>,
    /// By name, as a stale leader sees them.
    pub before: (Option<ObservedNode>, BTreeMap<String, ObservedNodeReboot>),
    pub version: u32,
    pub boots: u32,
    /// How many reboots served each NodeReboot, by its UID.
    pub served: BTreeMap<String, u32>,
    pub host: HostKit,
    pub late_ask: LateAsk,
    pub estimate: NodeRebootEstimate,
}

impl World {
    pub fn new() -> Self {
        let node = Some(empty_node());
        Self {
            second: 0,
            before: (node.clone(), BTreeMap::new()),
            node,
            reboots: BTreeMap::new(),
            version: 1,
            boots: 0,
            served: BTreeMap::new(),
            host: HostKit::none(),
            late_ask: LateAsk::None,
            estimate: NodeRebootEstimate::NotMade,
        }
    }

    pub fn with_reboot(name: &str, plan: NodeRebootPlan) -> Self {
        let mut world = Self::new();
        world.create(name, plan);
        world
    }

    pub fn now(&self) -> Now {
        Now {
            wall: wall(self.second),
            mono: Duration::from_secs(self.second),
        }
    }

    pub fn create(&mut self, name: &str, plan: NodeRebootPlan) {
        self.version += 1;
        let reboot = ObservedNodeReboot {
            name: name.into(),
            uid: format!("uid-{name}-{}", self.version),
            resource_version: self.version.to_string(),
            generation: Some(1),
            created: wall(self.second),
            deleting: false,
            has_finalizer: false,
            other_finalizers: Vec::new(),
            status_problem: None,
            plan: Ok(plan),
            status: NodeRebootState::default(),
        };
        self.reboots.insert(name.into(), reboot);
    }

    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut ObservedNodeReboot)) {
        self.version += 1;
        if let Some(reboot) = self.reboots.get_mut(name) {
            change(reboot);
            reboot.resource_version = self.version.to_string();
        }
    }

    /// `kubectl delete`.
    pub fn delete(&mut self, name: &str) {
        self.change(name, |reboot| reboot.deleting = true);
        if self.reboots.get(name).is_some_and(|one| !one.has_finalizer) {
            self.reboots.remove(name);
        }
    }

    pub fn cancel(&mut self, name: &str) {
        self.change(name, |reboot| reboot.plan.as_mut().unwrap().cancel = true);
    }

    pub fn change_node(&mut self, change: impl FnOnce(&mut ObservedNode)) {
        self.version += 1;
        if let Some(node) = &mut self.node {
            change(node);
            node.resource_version = self.version.to_string();
        }
    }

    pub fn set_condition(&mut self, kind: &str, status: &str) {
        let wanted = CurrentCondition {
            kind: kind.into(),
            status: status.into(),
            reason: String::new(),
            message: String::new(),
            last_transition: None,
            last_heartbeat: None,
        };
        self.change_node(|node| {
            node.conditions.retain(|one| one.kind != wanted.kind);
            node.conditions.push(wanted);
        });
    }

    pub fn snapshot(&self, name: &str, is_stale: bool) -> Option<NodeRebootSnapshot> {
        let (node, reboots) = if is_stale {
            (&self.before.0, &self.before.1)
        } else {
            (&self.node, &self.reboots)
        };
        let others = reboots.values().filter(|other| other.name != name);
        let own = reboots.get(name)?;
        let attempt = own.open_attempt();
        let is_concerned = !self.host.known_reads.is_empty()
            || attempt.is_some_and(|attempt| attempt.power.is_some());
        Some(NodeRebootSnapshot {
            own: Arc::new(own.clone()),
            others: others.cloned().map(Arc::new).collect(),
            node: node.clone().map(Arc::new),
            read: None,
            late_ask: self.late_ask.clone(),
            host: self.host.view(is_concerned),
            estimate: self.estimate.clone(),
        })
    }

    /// The leader works on one NodeReboot until it has nothing to do, or dies after `calls` writes.
    /// Returns the number of writes.
    pub fn lead(&mut self, name: &str, calls: usize, is_stale: bool) -> usize {
        let mut seen = self.snapshot(name, is_stale);
        let (mut done, mut reads) = (0, 0);
        while let Some(snapshot) = seen.take() {
            let decision = decide(&snapshot, self.now());
            reads += decision.observe.len();
            assert!(reads < MANY, "it reads for ever: {decision:?}");
            if let [NodeRebootObserve::Host(lookup)] = decision.observe.as_slice() {
                let mut snapshot = snapshot;
                self.host.read_host(lookup, self.now());
                snapshot.host = self.host.view(true);
                seen = Some(snapshot);
                continue;
            }
            if !decision.observe.is_empty() {
                let node = self.node.clone().map(Arc::new);
                let read = RebootNodeRead {
                    node: Ok(node.clone()),
                    taken: self.now().mono,
                };
                seen = Some(NodeRebootSnapshot {
                    node,
                    read: Some(read),
                    ..snapshot
                });
                continue;
            }
            if decision.actions.is_empty() || done == calls {
                break;
            }
            for action in &decision.actions {
                done += usize::from(self.perform(&snapshot, &decision, action));
            }
            // A stale leader meets conflicts, and then dies.
            if !is_stale {
                seen = self.snapshot(name, false);
            }
        }
        done
    }

    /// The leader works on all NodeReboots until nothing is left to do.
    pub fn settle(&mut self) {
        for _ in 0..MANY {
            let names: Vec<String> = self.reboots.keys().cloned().collect();
            let done: usize = names.iter().map(|name| self.lead(name, MANY, false)).sum();
            if done == 0 {
                return;
            }
        }
        panic!("the leader does not stop writing");
    }

    /// Whether the write was accepted.
    fn perform(
        &mut self,
        seen: &NodeRebootSnapshot,
        decision: &NodeRebootDecision,
        action: &NodeRebootAction,
    ) -> bool {
        let name = seen.own.name.clone();
        // Right before it asks a Node or puts a key on a host, the controller reads the NodeReboot.
        let own = self.reboots.get(&name);
        let is_current = own.is_some_and(|own| own.resource_version == seen.own.resource_version);
        if let NodeRebootAction::PatchHost(patch) = action {
            return (is_current || patch.value.is_none()) && self.patch_host(patch);
        }
        if let NodeRebootAction::PatchNode(patch) = action {
            return (is_current || !patch.asks_for(&seen.own)) && self.patch_node(seen, patch);
        }
        if let NodeRebootAction::BlockLateAsk(block) = action {
            return self.block_late_ask(block);
        }
        if !is_current {
            return false;
        }
        match action {
            NodeRebootAction::AddFinalizer => self.change(&name, |own| own.has_finalizer = true),
            NodeRebootAction::RemoveFinalizer => {
                self.change(&name, |own| own.has_finalizer = false);
                self.assert_left_alone(&seen.own);
                if seen.own.deleting {
                    self.reboots.remove(&name);
                }
            }
            NodeRebootAction::WriteStatus(status) => self.write_status(seen, decision, status),
            NodeRebootAction::DeleteObject => self.delete(&name),
            NodeRebootAction::PatchNode(_)
            | NodeRebootAction::PatchHost(_)
            | NodeRebootAction::BlockLateAsk(_) => {
                unreachable!("handled above")
            }
        }
        true
    }

    fn block_late_ask(&mut self, block: &LateAskBlock) -> bool {
        let node = self.node.as_ref();
        let is_accepted = node.is_some_and(|node| block.is_decided_on(node));
        if is_accepted {
            self.change_node(|_| {});
            self.late_ask = LateAsk::None;
        }
        is_accepted
    }

    fn write_status(
        &mut self,
        seen: &NodeRebootSnapshot,
        decision: &NodeRebootDecision,
        status: &NodeRebootState,
    ) {
        assert!(!seen.own.is_final(), "the end is written once");
        let (standing, now) = (&seen.own.status.conditions, self.now().wall);
        let conditions = decision.report.conditions.iter().map(|wanted| {
            let at = transition_time(standing, wanted, now);
            CurrentCondition {
                kind: wanted.kind.into(),
                status: wanted.status.as_str().into(),
                reason: wanted.reason.clone(),
                message: wanted.message.clone(),
                last_transition: Some(at),
                last_heartbeat: None,
            }
        });
        let status = NodeRebootState {
            conditions: conditions.collect(),
            ..status.clone()
        };
        self.change(&seen.own.name, |own| own.status = status);
        if self.reboots[&seen.own.name].is_final() {
            self.assert_left_alone(&seen.own);
        }
    }

    /// Nothing on the Node is for this NodeReboot any more.
    fn assert_left_alone(&self, own: &ObservedNodeReboot) {
        let Some(node) = &self.node else { return };
        let request = node.request.get().map(|request| &request.node_reboots);
        assert!(
            !request.is_some_and(|refs| lists_reboot(refs, own)),
            "it ended, and the Node is still asked"
        );
        let record = node.record.get();
        let begun = record.filter(|record| record.phase != RebootPhase::Waiting);
        // A hold goes on for others.
        let runs = begun.is_some_and(|record| lists_reboot(&record.trigger.node_reboots, own));
        assert!(!runs || request.is_some(), "it ended while its reboot runs");
        let keys = self.host.keys();
        let is_its = |key: &(String, String)| key.0.ends_with(&own.uid);
        assert!(
            !keys.iter().any(is_its),
            "it ended, and its key is on the host"
        );
    }

    fn patch_host(&mut self, patch: &HostKeyPatch) -> bool {
        let is_done = self.host.patch(patch);
        if is_done && puts_key(patch) {
            self.assert_drained();
        }
        is_done
    }

    fn patch_node(&mut self, seen: &NodeRebootSnapshot, patch: &NodeRequestPatch) -> bool {
        let node = self.node.as_ref();
        if node.is_none_or(|node| node.resource_version != patch.resource_version) {
            return false;
        }
        let attempts = &self.reboots[&seen.own.name].status.attempts;
        assert!(!attempts.is_empty(), "asked for what nobody wrote down");
        self.change_node(|node| {
            node.request = match &patch.request {
                Some(request) => ParsedAnnotation::Is(request.clone()),
                None => ParsedAnnotation::Absent,
            };
        });
        true
    }

    /// `STATUS REASON` of condition Succeeded.
    pub fn succeeded(&self, name: &str) -> String {
        let conditions = &self.reboots[name].status.conditions;
        let mut all = conditions.iter();
        let found = all.find(|one| one.kind == condition::SUCCEEDED);
        found.map_or_else(String::new, |one| format!("{} {}", one.status, one.reason))
    }
}
