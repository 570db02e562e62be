//! A small model of several nodes and their coordinators around one Lease store, with any order of
//! delays, losses, duplicates, crashes and configuration changes. The real rules make every choice;
//! the model simulates only the world around them.
//!
//! The model follows the same order of writes as the reboot decision, and S1 needs it: a
//! coordinator writes a Lease only while its own record is on the Node; the cordon is one Node
//! write on the version that shows this record; and before a lock is given up without a cordon, the
//! Node is written once, so that a cordon still on its way fails. A verdict is not withdrawn after
//! a newer count of the same win: its write may still arrive.

mod api_caller;
mod process;
mod store;

use std::time::Duration;

use proptest::prelude::*;

use api_caller::{CallerStep, LockApiCaller};
use process::CoordinatorModel;
use store::{ModelNode, ModelPhase, ModelStore, ModelWrite, is_out};

use super::api_lock::LeavingParty;
use super::testkit::{free, node as holder, run};
use super::*;
use crate::Now;

const NODE_COUNT: usize = 4;
const SLOT_COUNT: u32 = 3;

#[derive(Debug, Clone, Copy)]
enum LockModelStep {
    /// One round without faults: the process observes, acts and is answered.
    Go(usize),
    /// The process' watches catch up: of the Leases, of its Node.
    SeeLeases(usize),
    SeeNode(usize),
    Act(usize),
    /// A write on its way arrives; it may arrive once more.
    Deliver {
        which: usize,
        again: bool,
    },
    Lose(usize),
    Crash(usize),
    /// A new coordinator process; the older one may still run.
    Start {
        node: usize,
        max: u32,
        beside: bool,
    },
    /// The trigger comes or goes. A node that is out is done once its trigger is gone.
    Want(usize, bool),
    Fail {
        node: usize,
        ready: bool,
    },
    Delete(usize),
    Wait(u64),
    /// A client calls the lock API for its node, to lock or to unlock.
    Ask {
        node: usize,
        max: u32,
        unlocks: bool,
    },
    /// The lock API takes the next step for one of its callers.
    Serve(usize),
    /// A caller disconnects before its answer.
    GoAway(usize),
    /// The replica that serves a call dies, with everything it knows.
    Die(usize),
}

struct LockModel {
    store: ModelStore,
    processes: Vec<CoordinatorModel>,
    asking: Vec<LockApiCaller>,
    /// Nodes whose client was told that it holds, and has not unlocked since.
    told: [bool; NODE_COUNT],
    under_way: Vec<ModelWrite>,
    mono: Duration,
    runs: u32,
    out_once: [bool; NODE_COUNT],
}

fn node_name(node: usize) -> String {
    format!("n{node}")
}

impl LockModel {
    fn new() -> Self {
        let leases = (0..SLOT_COUNT)
            .map(|slot| (free(slot).name, free(slot)))
            .collect();
        let node = |number| ModelNode {
            version: 0,
            uid: format!("uid-n{number}"),
            ready: true,
            record: None,
            api: None,
            closed: None,
        };
        let nodes = (0..NODE_COUNT).map(|number| Some(node(number))).collect();
        Self {
            store: ModelStore {
                clock: 1,
                leases,
                nodes,
            },
            processes: Vec::new(),
            asking: Vec::new(),
            told: [false; NODE_COUNT],
            under_way: Vec::new(),
            mono: Duration::ZERO,
            runs: 0,
            out_once: [false; NODE_COUNT],
        }
    }

    fn current_time(&self) -> Now {
        let second = i64::try_from(self.mono.as_secs()).unwrap();
        Now {
            wall: jiff::Timestamp::from_second(second).unwrap(),
            mono: self.mono,
        }
    }

    fn start_run(&mut self, node: usize, max: u32) {
        let holds = self
            .store
            .leases
            .values()
            .any(|lease| lease.holder == Some(holder(&node_name(node))));
        let older = self.processes.iter().rfind(|process| process.node == node);
        // A changed maximum applies from the next lock on: what was allowed stays allowed.
        let max = older.filter(|_| holds).map_or(max, |older| older.max);
        self.runs += 1;
        self.processes.push(CoordinatorModel {
            node,
            run: run(&format!("coordinator/{}", self.runs)),
            max,
            wants: true,
            owned: false,
            leases: Vec::new(),
            seen: None,
            count: None,
        });
    }

    fn observe_leases(&mut self, which: usize) {
        let now = self.current_time();
        let stands: Vec<ObservedLease> = self.store.leases.values().cloned().collect();
        let process = &mut self.processes[which];
        let again = |lease: ObservedLease| {
            let known = process.leases.iter().find(|known| known.name == lease.name);
            merge_observed_lease(known, lease, now)
        };
        process.leases = stands.into_iter().map(again).collect();
    }

    fn observe_node(&mut self, which: usize) {
        let node = self.processes[which].node;
        self.processes[which].seen = self.store.nodes[node].clone();
    }

    fn act_process(&mut self, which: usize) -> Option<ModelWrite> {
        let now = self.current_time();
        let act = self.processes[which].next_write(&self.store, now);
        if act.is_err() {
            self.processes.remove(which);
        }
        act.ok().flatten()
    }

    fn deliver_write(&mut self, write: ModelWrite) -> Result<(), TestCaseError> {
        self.store.apply_write(write);
        let out: Vec<&ModelNode> = self
            .store
            .nodes
            .iter()
            .flatten()
            .filter(|node| is_out(node))
            .collect();
        let maximum = |node: &&ModelNode| {
            let record = node
                .record
                .as_ref()
                .filter(|(_, phase, _)| *phase == ModelPhase::Out);
            let own = record.map(|(_, _, max)| *max);
            [own, node.closed].into_iter().flatten().min()
        };
        let maxima = out.iter().filter_map(maximum);
        if let Some(smallest) = maxima.min() {
            prop_assert!(
                out.len() <= usize::try_from(smallest).unwrap(),
                "more out than the smallest maximum {smallest}: {out:#?}\n{:#?}",
                self.store.leases
            );
        }
        self.check_answered_holders()?;
        for (number, node) in self.store.nodes.iter().enumerate() {
            self.out_once[number] |= node.as_ref().is_some_and(is_out);
        }
        Ok(())
    }

    fn check_answered_holders(&self) -> Result<(), TestCaseError> {
        for number in (0..NODE_COUNT).filter(|number| self.told[*number]) {
            let Some(node) = &self.store.nodes[number] else {
                continue;
            };
            let holder = LockApiCaller::holder_id(number);
            let held = self
                .store
                .leases
                .values()
                .any(|lease| lease.holder.as_ref() == Some(&holder));
            prop_assert!(
                held && node.closed.is_some(),
                "{} was told that it holds: {:#?}",
                holder,
                self.store
            );
        }
        Ok(())
    }

    fn start_call(&mut self, node: usize, max: u32, unlocks: bool) {
        self.runs += 1;
        let who = if unlocks {
            LeavingParty::Host
        } else {
            LeavingParty::Request
        };
        self.told[node] &= !unlocks;
        let same = self.asking.iter_mut().filter(|other| other.node == node);
        same.for_each(|other| other.overtaken |= unlocks);
        let run = run(&format!("api/p/{}", self.runs));
        // A changed maximum applies from the next lock on.
        let holder = LockApiCaller::holder_id(node);
        let record = |lease: &ObservedLease| lease.record.as_ref().map(|record| record.max);
        let mut held = self
            .store
            .leases
            .values()
            .filter(|lease| lease.holder.as_ref() == Some(&holder));
        let mut beside = self.asking.iter().filter(|other| other.node == node);
        let other = beside.next().map(|other| other.max);
        let max = held.find_map(record).or(other).unwrap_or(max);
        self.asking.push(LockApiCaller::new(node, run, who, max));
    }

    fn serve_call(&mut self, which: usize) -> Result<(), TestCaseError> {
        let now = self.current_time();
        let node = self.asking[which].node;
        match self.asking[which].next_step(&self.store, now) {
            CallerStep::Nothing => {}
            CallerStep::Send(write) => self.under_way.push(write),
            CallerStep::Done(write) => {
                let on_node = matches!(write, ModelWrite::Api { .. });
                let before = self.store.clock;
                self.deliver_write(write)?;
                if on_node && self.store.clock > before {
                    self.asking[which].node_write_arrived();
                }
            }
            CallerStep::Told => {
                let unlocks =
                    |other: &LockApiCaller| other.node == node && other.who == LeavingParty::Host;
                let old_news = self.asking[which].overtaken || self.asking.iter().any(unlocks);
                self.told[node] |= !old_news;
                self.asking.remove(which);
            }
            CallerStep::Gone => drop(self.asking.remove(which)),
        }
        self.check_answered_holders()
    }

    fn run_step(&mut self, step: LockModelStep) -> Result<(), TestCaseError> {
        let processes = self.processes.len();
        let writes = self.under_way.len();
        let asking = self.asking.len();
        match step {
            LockModelStep::Go(which) if processes > 0 => {
                self.observe_node(which % processes);
                self.observe_leases(which % processes);
                if let Some(write) = self.act_process(which % processes) {
                    self.deliver_write(write)?;
                }
            }
            LockModelStep::SeeLeases(which) if processes > 0 => {
                self.observe_leases(which % processes);
            }
            LockModelStep::SeeNode(which) if processes > 0 => self.observe_node(which % processes),
            LockModelStep::Act(which) if processes > 0 => {
                let write = self.act_process(which % processes);
                self.under_way.extend(write);
            }
            LockModelStep::Deliver { which, again } if writes > 0 => {
                let write = self.under_way[which % writes].clone();
                if !again {
                    self.under_way.remove(which % writes);
                }
                self.deliver_write(write)?;
            }
            LockModelStep::Lose(which) if writes > 0 => drop(self.under_way.remove(which % writes)),
            LockModelStep::Crash(which) if processes > 0 => {
                drop(self.processes.remove(which % processes));
            }
            LockModelStep::Want(which, wants) if processes > 0 => {
                self.processes[which % processes].wants = wants;
            }
            LockModelStep::Start { node, max, beside } => {
                self.processes
                    .retain(|process| beside || process.node != node);
                self.start_run(node, max);
            }
            LockModelStep::Fail { node, ready } => {
                let version = self.store.next_version();
                if let Some(node) = &mut self.store.nodes[node] {
                    (node.ready, node.version) = (ready, version);
                }
            }
            LockModelStep::Delete(node) => {
                // The machine is gone, and everything that ran there.
                self.store.nodes[node] = None;
                self.processes.retain(|process| process.node != node);
                self.under_way.retain(|write| !matches!(write, ModelWrite::Bid { holder: of, .. } if *of == holder(&node_name(node))));
            }
            LockModelStep::Wait(millis) => self.mono += Duration::from_millis(millis),
            LockModelStep::Ask { node, max, unlocks } => self.start_call(node, max, unlocks),
            LockModelStep::Serve(which) if asking > 0 => self.serve_call(which % asking)?,
            LockModelStep::GoAway(which) if asking > 0 => self.asking[which % asking].leaves = true,
            LockModelStep::Die(which) if asking > 0 => drop(self.asking.remove(which % asking)),
            LockModelStep::Go(_)
            | LockModelStep::SeeLeases(_)
            | LockModelStep::SeeNode(_)
            | LockModelStep::Act(_)
            | LockModelStep::Deliver { .. }
            | LockModelStep::Lose(_)
            | LockModelStep::Crash(_)
            | LockModelStep::Want(..)
            | LockModelStep::Serve(_)
            | LockModelStep::GoAway(_)
            | LockModelStep::Die(_) => {}
        }
        Ok(())
    }

    /// From here on nothing is lost or late, every existing node wants a reboot, and a node that is
    /// out comes back after a while.
    fn run_quiet_phase(&mut self) -> Result<(), TestCaseError> {
        self.under_way.clear();
        self.processes.clear();
        self.out_once = [false; NODE_COUNT];
        for number in 0..NODE_COUNT {
            if let Some(node) = &mut self.store.nodes[number] {
                node.ready = true;
                node.record = None;
                self.start_run(number, 1);
            }
        }
        for _ in 0..600 {
            self.mono += Duration::from_millis(700);
            let mut which = 0;
            while which < self.processes.len() {
                self.observe_node(which);
                self.observe_leases(which);
                let node = self.processes[which].node;
                self.processes[which].wants &= !self.out_once[node];
                let before = self.processes.len();
                if let Some(write) = self.act_process(which) {
                    self.deliver_write(write)?;
                }
                which += usize::from(before == self.processes.len());
            }
        }
        Ok(())
    }
}

fn any_step() -> impl Strategy<Value = LockModelStep> {
    let which = || 0..64_usize;
    let node = || 0..NODE_COUNT;
    prop_oneof![
        30 => which().prop_map(LockModelStep::Go),
        5 => which().prop_map(LockModelStep::SeeLeases),
        5 => which().prop_map(LockModelStep::SeeNode),
        10 => which().prop_map(LockModelStep::Act),
        7 => (which(), prop::bool::weighted(0.3))
            .prop_map(|(which, again)| LockModelStep::Deliver { which, again }),
        1 => which().prop_map(LockModelStep::Lose),
        1 => which().prop_map(LockModelStep::Crash),
        3 => (node(), 1..=SLOT_COUNT, prop::bool::weighted(0.3))
            .prop_map(|(node, max, beside)| LockModelStep::Start { node, max, beside }),
        4 => (which(), any::<bool>()).prop_map(|(which, wants)| LockModelStep::Want(which, wants)),
        1 => (node(), prop::bool::weighted(0.8)).prop_map(|(node, ready)| LockModelStep::Fail { node, ready }),
        1 => prop::bool::weighted(0.2)
            .prop_map(|delete| if delete { LockModelStep::Delete(NODE_COUNT - 1) } else { LockModelStep::Wait(60_000) }),
        4 => (0..8_000_u64).prop_map(LockModelStep::Wait),
    ]
}

/// Steps of coordinators and of lock API callers.
fn any_step_with_callers() -> impl Strategy<Value = LockModelStep> {
    let which = || 0..64_usize;
    prop_oneof![
        40 => any_step(),
        8 => (0..NODE_COUNT - 1, 1..=SLOT_COUNT, prop::bool::weighted(0.2))
            .prop_map(|(node, max, unlocks)| LockModelStep::Ask { node, max, unlocks }),
        80 => which().prop_map(LockModelStep::Serve),
        20 => (which(), prop::bool::weighted(0.2))
            .prop_map(|(which, again)| LockModelStep::Deliver { which, again }),
        3 => which().prop_map(LockModelStep::GoAway),
        1 => which().prop_map(LockModelStep::Die),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::model_depth::model_cases(500), max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn never_more_nodes_out_than_the_smallest_maximum_allows(
        steps in prop::collection::vec(any_step(), 0..250),
    ) {
        let mut world = LockModel::new();
        for step in steps {
            world.run_step(step)?;
        }
    }

    #[test]
    fn callers_of_the_lock_api_keep_the_budget_and_what_they_were_told(
        steps in prop::collection::vec(any_step_with_callers(), 0..400),
    ) {
        let mut world = LockModel::new();
        for step in steps {
            world.run_step(step)?;
        }
    }

    #[test]
    fn in_a_quiet_world_everybody_gets_the_lock_in_the_end(
        steps in prop::collection::vec(any_step(), 0..120),
    ) {
        let mut world = LockModel::new();
        for step in steps {
            world.run_step(step)?;
        }
        world.run_quiet_phase()?;
        for (number, node) in world.store.nodes.iter().enumerate() {
            prop_assert!(node.is_none() || world.out_once[number], "n{} never got it: {:#?}", number, world.store);
        }
        prop_assert!(world.store.leases.values().all(|lease| lease.holder.is_none()), "{:#?}", world.store);
    }
}
