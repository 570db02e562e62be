//! What a planned node looks at, and what it then sees.

use std::time::Duration;

use dogwatch_coordinator::agent::facts::{self, Fact};
use dogwatch_core::drain::Progress;
use dogwatch_core::lock::{self, Count, HolderNode, LeaseSeen, NodeRow, Reads};
use dogwatch_core::name::GroupName;
use dogwatch_core::reboot::{CountSeen, HolderSeen, Look, StartGatesSeen};

use super::{Event, Rollout, WATCH_LIFETIME};
use crate::plan::machine::Machine;

impl Rollout<'_> {
    /// Begins what is looked at anew, and ends what is not looked at any more.
    pub(super) fn look(&mut self, number: usize, looks: &[Look]) {
        let machine = &mut self.machines[number];
        let begun: Vec<Look> = looks
            .iter()
            .filter(|look| !machine.looks.contains(look))
            .cloned()
            .collect();
        let had_locks = machine.looks.iter().any(is_locks);
        if had_locks && !looks.iter().any(is_locks) {
            let renewals =
                self.now.saturating_sub(machine.looks_since).as_secs() / WATCH_LIFETIME.as_secs();
            self.result.calls.add("renew watches", renewals);
        }
        machine.looks = looks.to_vec();
        if let Some(seen) = &mut machine.seen {
            facts::forget(seen, looks, false);
        }
        for look in begun {
            self.begin(number, look);
        }
    }

    pub(super) fn begin(&mut self, number: usize, look: Look) {
        let latency = self.plan.api_latency;
        let (after, fact) = match &look {
            Look::Locks { group, slots } => {
                let made = self.slots.ensure(group, *slots);
                self.count("create leases", made);
                self.count("list and watch leases", 2);
                self.machines[number].looks_since = self.now;
                let me = self.machines[number].me.clone();
                (latency, Fact::Leases(self.slots.view(group, &me, self.now)))
            }
            Look::GroupSize { group } => {
                self.count("list nodes", 1);
                (latency, Fact::GroupSize(self.members(group)))
            }
            Look::Count { lease, .. } => {
                self.count("count the budget", 3);
                (3 * latency, self.counted(number, lease))
            }
            Look::Holder { lease } => {
                self.count("look at holders", 2);
                (2 * latency + Duration::from_secs(1), self.holder(lease))
            }
            Look::Drain { exclude, .. } => {
                let pods = u64::from(self.plan.pods_per_node);
                self.count("evict pods", pods);
                self.count("list and watch pods", 3);
                let time = self.machines[number].own(self.plan.drain_time);
                let gone = usize::try_from(pods).unwrap_or(usize::MAX);
                (
                    time,
                    Fact::Drain(Progress {
                        listed: true,
                        exclude: exclude.clone(),
                        gone,
                        ..Progress::default()
                    }),
                )
            }
            Look::Attachments { .. } => {
                self.count("list and watch volumes", 2);
                (latency, Fact::Attachments(Vec::new()))
            }
            Look::StartGates { gates } => {
                let (gates, taken) = (gates.clone(), self.now);
                let shut = Vec::new();
                (
                    latency,
                    Fact::StartGates(StartGatesSeen { gates, shut, taken }),
                )
            }
            Look::Gates { .. } => {
                self.count("look at return gates", 2);
                (2 * latency, Fact::Gates(Vec::new()))
            }
        };
        self.queue
            .put(self.now + after, Event::Fact(number, look, Box::new(fact)));
    }

    pub(super) fn members(&self, group: &GroupName) -> u32 {
        self.groups.get(group).map_or(0, |group| group.nodes)
    }

    /// Who else is out. Members that are in service change nothing, so only the others are named.
    pub(super) fn counted(&self, number: usize, lease: &LeaseSeen) -> Fact {
        let machine = &self.machines[number];
        let out = self.out.get(&machine.group).into_iter().flatten();
        let nodes = out.map(|other| row(&self.machines[*other])).collect();
        let held = self.slots.held(&machine.group);
        let reads = Reads {
            lease: lease.name.clone(),
            group: machine.group.clone(),
            nodes,
            held,
        };
        let members = self.members(&machine.group);
        let count = Count {
            members,
            ..lock::count(&reads, &machine.me)
        };
        Fact::Count(CountSeen {
            count,
            taken: self.now,
        })
    }

    pub(super) fn holder(&self, lease: &LeaseSeen) -> Fact {
        let uid = lease
            .record
            .as_ref()
            .and_then(|record| record.node_uid.clone())
            .unwrap_or_default();
        let there = HolderNode::There { uid };
        Fact::Holder(HolderSeen {
            lease: lease.name.clone(),
            resource_version: lease.resource_version.clone(),
            reads: lock::HolderReads {
                nodes: [there.clone(), there],
                apart: lock::BETWEEN_HOLDER_READS,
            },
            taken: self.now,
        })
    }

    pub(super) fn learn(&mut self, number: usize, look: &Look, fact: Fact) {
        if self.machines[number].looks.contains(look) {
            let now = self.time();
            self.machines[number].take(fact, now);
            self.turn(number);
        }
    }
}

pub(super) fn is_locks(look: &Look) -> bool {
    matches!(look, Look::Locks { .. })
}

fn row(machine: &Machine) -> NodeRow {
    NodeRow {
        name: machine.object.name.clone(),
        ready: machine.object.ready,
        unschedulable: machine.object.unschedulable,
        ignored: false,
        control_plane: false,
    }
}
