//! The coordinator's own steps, taken in its place: what it would see, and what of its answer the
//! healer does. Its words stay; what only its own eyes or hands can do is left out.

use std::time::Duration;

use super::case::{Action, Decision, Look};
use super::node::Patient;
use super::{reason, seen};
use crate::decision::{Event, Severity, because};
use crate::lock::{HolderId, LeaseSeen, LockRecord};
use crate::name::{BootId, RunId};
use crate::reboot::{self, CommandSeen, HostSeen, Instead, LockSeen, NodeFact, PhaseSeen, RunSeen};

/// How old an answer of the return gates may be.
const GATES_FRESH: Duration = Duration::from_secs(30);

impl Patient<'_> {
    /// The same; where not even its boot is known, that.
    pub(super) fn instead_or_watch(
        &self,
        way: &Instead,
        why: &'static str,
        text: String,
    ) -> Decision {
        let unknown = "its boot id is not known";
        self.instead(way, why, text)
            .unwrap_or_else(|| because(reason::AWAITING_KUBELET, unknown))
    }

    /// What its coordinator would do, with the eyes of one that has just come back.
    pub(super) fn instead(
        &self,
        way: &Instead,
        why: &'static str,
        text: String,
    ) -> Option<Decision> {
        let seen = self.as_coordinator()?;
        let flags = &self.ctx.config.flags;
        let decision = reboot::decide_instead(&seen, flags, self.ctx.now, way, why, text)?;
        Some(self.taken_over(decision))
    }

    fn as_coordinator(&self) -> Option<reboot::Seen> {
        let record = self.node.record.get();
        let run = record.map_or_else(unknown_run, |record| record.run.clone());
        let boot_id = self.boot()?;
        let leases = self.ctx.seen.held_by(&self.node.name);
        Some(reboot::Seen {
            node: NodeFact::There(Box::new(self.node.clone())),
            host: HostSeen {
                boot_id: Ok(boot_id),
                triggers: Vec::new(),
            },
            policies: self.ctx.seen.policies.clone(),
            lock: LockSeen {
                leases: Some(leases.map(|lease| of_run(lease, &run)).collect()),
                // Only a maximum in percent asks for it, and we take no lock.
                group_size: Some(1),
                ..LockSeen::default()
            },
            start_gates: None,
            drain: None,
            attachments: None,
            gates: self.gates(),
            trouble: std::collections::BTreeMap::new(),
            run: self.run_seen(run),
        })
    }

    /// The boot the node is in, by its kubelet; before it has said so, the one it was in.
    fn boot(&self) -> Option<BootId> {
        let record = || self.node.record.get().map(|record| record.boot_id.clone());
        self.node.boot_id.clone().or_else(record)
    }

    fn run_seen(&self, id: RunId) -> RunSeen {
        let phase = self.node.record.get().map(|record| PhaseSeen {
            since: record.since,
            before: Duration::ZERO,
            seen: self.memory.stage_since,
        });
        RunSeen {
            id,
            holder: HolderId::node(&self.node.name),
            jitter: 0.5,
            owned: Some(self.memory.stage_since),
            phase,
            permit: None,
            adopted_attempt: None,
            command: CommandSeen::None,
            ready_since: self.memory.ready_since(),
            bid_after: None,
            swept: true,
            refused: false,
            leave_since: None,
            held_back: reboot::HeldBack::default(),
            waiting_since: None,
            may_not_break: false,
            unanswered: None,
        }
    }

    /// What the gates said, asked after our last write: a pod that fits only here could not come
    /// back to a cordoned node.
    fn gates(&self) -> Option<Vec<String>> {
        let seen = self.ctx.seen.looked.gates.get(&self.node.name)?;
        (seen.taken >= self.gates_newer_than()).then(|| seen.shut.clone())
    }

    fn gates_newer_than(&self) -> Duration {
        let wrote = self.memory.ours.as_ref().map(|(_, at)| *at);
        let fresh = self.ctx.now.mono.saturating_sub(GATES_FRESH);
        wrote.map_or(fresh, |wrote| wrote.max(fresh))
    }

    /// The coordinator's decision as ours: its writes on the Node and on the Leases it holds, and
    /// what a person should see. Looks that only its own eyes can follow are left out.
    fn taken_over(&self, decision: reboot::Decision) -> Decision {
        let mut ours = because(decision.because.reason, decision.because.message);
        ours.wake = decision.wake;
        ours.actions = decision
            .actions
            .into_iter()
            .filter_map(|action| self.action(action))
            .collect();
        ours.looks = decision
            .looks
            .into_iter()
            .filter_map(|look| self.look(look))
            .collect();
        for observation in decision.report.conditions {
            if seen::CONDITIONS.contains(&observation.kind) {
                let heartbeat = false;
                ours.report.conditions.push(crate::condition::Observation {
                    heartbeat,
                    ..observation
                });
            }
        }
        let events = decision.report.events;
        let event = Self::event(&ours, &events);
        ours.report.events.extend(event);
        ours
    }

    /// What is done is said; and what the step itself says loudly.
    fn event(ours: &Decision, theirs: &[Event]) -> Option<Event> {
        let why = &ours.because;
        let loud = theirs
            .iter()
            .any(|event| event.severity == Severity::Warning && event.reason == why.reason);
        let severity = if loud {
            Severity::Warning
        } else {
            Severity::Normal
        };
        (loud || !ours.actions.is_empty()).then(|| Event {
            severity,
            reason: why.reason,
            message: format!("by the healer: {}", why.message),
        })
    }

    fn action(&self, action: reboot::Action) -> Option<Action> {
        match action {
            reboot::Action::PatchNode(patch) => Some(Action::PatchNode {
                node: Box::new(self.node.clone()),
                patch,
            }),
            reboot::Action::Release { lease, .. } => {
                let lease = self.ctx.seen.leases.get(&lease.name)?;
                Some(release(lease))
            }
            // Only a coordinator bids, reboots and stops; whose Node is gone has no patient.
            reboot::Action::Bid { .. }
            | reboot::Action::Break { .. }
            | reboot::Action::Reboot { .. }
            | reboot::Action::Stop { .. } => None,
        }
    }

    fn look(&self, look: reboot::Look) -> Option<Look> {
        match look {
            reboot::Look::Gates { gates, budgets } => self.gates().is_none().then(|| Look::Gates {
                node: self.node.name.clone(),
                gates,
                budgets,
                newer_than: self.gates_newer_than(),
            }),
            reboot::Look::Locks { .. }
            | reboot::Look::GroupSize { .. }
            | reboot::Look::Count { .. }
            | reboot::Look::Holder { .. }
            | reboot::Look::Drain { .. }
            | reboot::Look::StartGates { .. }
            | reboot::Look::Attachments { .. } => None,
        }
    }
}

/// What the coordinator's runs rely on goes; whoever else relies on it stays.
pub(super) fn release(lease: &LeaseSeen) -> Action {
    let runs = lease.record.iter().flat_map(|record| &record.runs);
    let others = runs.filter(|run| !run.as_str().starts_with("coordinator/"));
    Action::Release {
        remaining: others.cloned().collect(),
        lease: Box::new(lease.clone()),
    }
}

/// The Lease as the record's own run would see it: whichever run of this coordinator is written
/// there, it is gone, and its lock is to be let go of.
fn of_run(lease: &LeaseSeen, run: &RunId) -> LeaseSeen {
    let record = lease.record.as_ref();
    let group =
        reboot::group_of_lease(&lease.name).unwrap_or_else(crate::name::GroupName::default_group);
    LeaseSeen {
        record: Some(LockRecord {
            node: record.and_then(|record| record.node.clone()),
            node_uid: record.and_then(|record| record.node_uid.clone()),
            boot_id: None,
            group: record.map_or(group, |record| record.group.clone()),
            max: 1,
            since: jiff::Timestamp::UNIX_EPOCH,
            runs: vec![run.clone()],
        }),
        ..lease.clone()
    }
}

fn unknown_run() -> RunId {
    RunId::new("coordinator/none").expect("a run id by its own rules")
}
