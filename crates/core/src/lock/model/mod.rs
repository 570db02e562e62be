//! A small model of several nodes and their runs around one Lease store, in any order of delays,
//! losses, duplicates, crashes and configuration changes. Every choice that the rules make is made
//! by the rules themselves; the model is the world that they stand in.
//!
//! Discipline that the model shares with the reboot decision, and that S1 needs: a Lease is
//! written only under a Node record of one's own; the cordon is one Node write on the version that
//! shows this record; and before a lock is left without a cordon, the Node is written once, so that
//! a cordon still on its way fails. A verdict is not taken back on a newer count of the same win:
//! its write may still arrive.

mod asking;
mod process;
mod store;

use std::time::Duration;

use proptest::prelude::*;

use asking::{Asking, Does};
use process::Process;
use store::{Node, Phase, Store, Write, is_out};

use super::api_lock::Who;
use super::testkit::{free, node as holder, run};
use super::*;
use crate::Now;

const NODES: usize = 4;
const SLOTS: u32 = 3;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// All goes well for once: it sees, acts and is answered.
    Go(usize),
    /// Its watches catch up: of the Leases, of its Node.
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
    /// A new run; the older one may still be there.
    Start {
        node: usize,
        max: u32,
        beside: bool,
    },
    /// The trigger comes or goes; a node that is out is done when it does not want any more.
    Want(usize, bool),
    Fail {
        node: usize,
        ready: bool,
    },
    Delete(usize),
    Wait(u64),
    /// A client calls the lock API for its node; or unlocks.
    Ask {
        node: usize,
        max: u32,
        unlocks: bool,
    },
    /// The lock API does the next thing for one of its callers.
    Serve(usize),
    /// A caller goes away before its answer.
    GoAway(usize),
    /// The replica that serves a call dies, and with it whatever it knows.
    Die(usize),
}

struct World {
    store: Store,
    processes: Vec<Process>,
    asking: Vec<Asking>,
    /// Whose client was told that it holds, and has not unlocked since.
    told: [bool; NODES],
    under_way: Vec<Write>,
    mono: Duration,
    runs: u32,
    out_once: [bool; NODES],
}

fn name(node: usize) -> String {
    format!("n{node}")
}

impl World {
    fn new() -> Self {
        let leases = (0..SLOTS)
            .map(|slot| (free(slot).name, free(slot)))
            .collect();
        let node = |number| Node {
            version: 0,
            uid: format!("uid-n{number}"),
            ready: true,
            record: None,
            api: None,
            closed: None,
        };
        let nodes = (0..NODES).map(|number| Some(node(number))).collect();
        Self {
            store: Store {
                clock: 1,
                leases,
                nodes,
            },
            processes: Vec::new(),
            asking: Vec::new(),
            told: [false; NODES],
            under_way: Vec::new(),
            mono: Duration::ZERO,
            runs: 0,
            out_once: [false; NODES],
        }
    }

    fn now(&self) -> Now {
        let second = i64::try_from(self.mono.as_secs()).unwrap();
        Now {
            wall: jiff::Timestamp::from_second(second).unwrap(),
            mono: self.mono,
        }
    }

    fn start(&mut self, node: usize, max: u32) {
        let holds = self
            .store
            .leases
            .values()
            .any(|lease| lease.holder == Some(holder(&name(node))));
        let older = self.processes.iter().rfind(|process| process.node == node);
        // A changed maximum rules from the next lock on: what was allowed stays allowed.
        let max = older.filter(|_| holds).map_or(max, |older| older.max);
        self.runs += 1;
        self.processes.push(Process {
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

    fn see_leases(&mut self, which: usize) {
        let now = self.now();
        let stands: Vec<LeaseSeen> = self.store.leases.values().cloned().collect();
        let process = &mut self.processes[which];
        let again = |lease: LeaseSeen| {
            let known = process.leases.iter().find(|known| known.name == lease.name);
            seen_again(known, lease, now)
        };
        process.leases = stands.into_iter().map(again).collect();
    }

    fn see_node(&mut self, which: usize) {
        let node = self.processes[which].node;
        self.processes[which].seen = self.store.nodes[node].clone();
    }

    fn act(&mut self, which: usize) -> Option<Write> {
        let now = self.now();
        let act = self.processes[which].act(&self.store, now);
        if act.is_err() {
            self.processes.remove(which);
        }
        act.ok().flatten()
    }

    fn deliver(&mut self, write: Write) -> Result<(), TestCaseError> {
        self.store.write(write);
        let out: Vec<&Node> = self
            .store
            .nodes
            .iter()
            .flatten()
            .filter(|node| is_out(node))
            .collect();
        let maximum = |node: &&Node| {
            let record = node
                .record
                .as_ref()
                .filter(|(_, phase, _)| *phase == Phase::Out);
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
        self.who_was_told_holds()?;
        for (number, node) in self.store.nodes.iter().enumerate() {
            self.out_once[number] |= node.as_ref().is_some_and(is_out);
        }
        Ok(())
    }

    fn who_was_told_holds(&self) -> Result<(), TestCaseError> {
        for number in (0..NODES).filter(|number| self.told[*number]) {
            let Some(node) = &self.store.nodes[number] else {
                continue;
            };
            let holder = Asking::holder(number);
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

    fn ask(&mut self, node: usize, max: u32, unlocks: bool) {
        self.runs += 1;
        let who = if unlocks { Who::Host } else { Who::Request };
        self.told[node] &= !unlocks;
        let same = self.asking.iter_mut().filter(|other| other.node == node);
        same.for_each(|other| other.overtaken |= unlocks);
        let run = run(&format!("api/p/{}", self.runs));
        // A changed maximum rules from the next lock on.
        let holder = Asking::holder(node);
        let record = |lease: &LeaseSeen| lease.record.as_ref().map(|record| record.max);
        let mut held = self
            .store
            .leases
            .values()
            .filter(|lease| lease.holder.as_ref() == Some(&holder));
        let mut beside = self.asking.iter().filter(|other| other.node == node);
        let other = beside.next().map(|other| other.max);
        let max = held.find_map(record).or(other).unwrap_or(max);
        self.asking.push(Asking::new(node, run, who, max));
    }

    fn serve(&mut self, which: usize) -> Result<(), TestCaseError> {
        let now = self.now();
        let node = self.asking[which].node;
        match self.asking[which].act(&self.store, now) {
            Does::Nothing => {}
            Does::Send(write) => self.under_way.push(write),
            Does::Done(write) => {
                let on_node = matches!(write, Write::Api { .. });
                let before = self.store.clock;
                self.deliver(write)?;
                if on_node && self.store.clock > before {
                    self.asking[which].arrived();
                }
            }
            Does::Told => {
                let unlocks = |other: &Asking| other.node == node && other.who == Who::Host;
                let old_news = self.asking[which].overtaken || self.asking.iter().any(unlocks);
                self.told[node] |= !old_news;
                self.asking.remove(which);
            }
            Does::Gone => drop(self.asking.remove(which)),
        }
        self.who_was_told_holds()
    }

    #[expect(clippy::too_many_lines, reason = "one arm per kind of step")]
    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let processes = self.processes.len();
        let writes = self.under_way.len();
        let asking = self.asking.len();
        match step {
            Step::Go(which) if processes > 0 => {
                self.see_node(which % processes);
                self.see_leases(which % processes);
                if let Some(write) = self.act(which % processes) {
                    self.deliver(write)?;
                }
            }
            Step::SeeLeases(which) if processes > 0 => self.see_leases(which % processes),
            Step::SeeNode(which) if processes > 0 => self.see_node(which % processes),
            Step::Act(which) if processes > 0 => {
                let write = self.act(which % processes);
                self.under_way.extend(write);
            }
            Step::Deliver { which, again } if writes > 0 => {
                let write = self.under_way[which % writes].clone();
                if !again {
                    self.under_way.remove(which % writes);
                }
                self.deliver(write)?;
            }
            Step::Lose(which) if writes > 0 => drop(self.under_way.remove(which % writes)),
            Step::Crash(which) if processes > 0 => drop(self.processes.remove(which % processes)),
            Step::Want(which, wants) if processes > 0 => {
                self.processes[which % processes].wants = wants;
            }
            Step::Start { node, max, beside } => {
                self.processes
                    .retain(|process| beside || process.node != node);
                self.start(node, max);
            }
            Step::Fail { node, ready } => {
                let version = self.store.next();
                if let Some(node) = &mut self.store.nodes[node] {
                    (node.ready, node.version) = (ready, version);
                }
            }
            Step::Delete(node) => {
                // Its machine is gone, and what ran there.
                self.store.nodes[node] = None;
                self.processes.retain(|process| process.node != node);
                self.under_way.retain(|write| !matches!(write, Write::Bid { holder: of, .. } if *of == holder(&name(node))));
            }
            Step::Wait(millis) => self.mono += Duration::from_millis(millis),
            Step::Ask { node, max, unlocks } => self.ask(node, max, unlocks),
            Step::Serve(which) if asking > 0 => self.serve(which % asking)?,
            Step::GoAway(which) if asking > 0 => self.asking[which % asking].leaves = true,
            Step::Die(which) if asking > 0 => drop(self.asking.remove(which % asking)),
            Step::Go(_)
            | Step::SeeLeases(_)
            | Step::SeeNode(_)
            | Step::Act(_)
            | Step::Deliver { .. }
            | Step::Lose(_)
            | Step::Crash(_)
            | Step::Want(..)
            | Step::Serve(_)
            | Step::GoAway(_)
            | Step::Die(_) => {}
        }
        Ok(())
    }

    /// From here on nothing is lost or late, every node that there is wants a reboot, and one that
    /// is out is back after a while.
    fn quiet(&mut self) -> Result<(), TestCaseError> {
        self.under_way.clear();
        self.processes.clear();
        self.out_once = [false; NODES];
        for number in 0..NODES {
            if let Some(node) = &mut self.store.nodes[number] {
                node.ready = true;
                node.record = None;
                self.start(number, 1);
            }
        }
        for _ in 0..600 {
            self.mono += Duration::from_millis(700);
            let mut which = 0;
            while which < self.processes.len() {
                self.see_node(which);
                self.see_leases(which);
                let node = self.processes[which].node;
                self.processes[which].wants &= !self.out_once[node];
                let before = self.processes.len();
                if let Some(write) = self.act(which) {
                    self.deliver(write)?;
                }
                which += usize::from(before == self.processes.len());
            }
        }
        Ok(())
    }
}

fn step() -> impl Strategy<Value = Step> {
    let which = || 0..64_usize;
    let node = || 0..NODES;
    prop_oneof![
        30 => which().prop_map(Step::Go),
        5 => which().prop_map(Step::SeeLeases),
        5 => which().prop_map(Step::SeeNode),
        10 => which().prop_map(Step::Act),
        7 => (which(), prop::bool::weighted(0.3))
            .prop_map(|(which, again)| Step::Deliver { which, again }),
        1 => which().prop_map(Step::Lose),
        1 => which().prop_map(Step::Crash),
        3 => (node(), 1..=SLOTS, prop::bool::weighted(0.3))
            .prop_map(|(node, max, beside)| Step::Start { node, max, beside }),
        4 => (which(), any::<bool>()).prop_map(|(which, wants)| Step::Want(which, wants)),
        1 => (node(), prop::bool::weighted(0.8)).prop_map(|(node, ready)| Step::Fail { node, ready }),
        1 => prop::bool::weighted(0.2)
            .prop_map(|delete| if delete { Step::Delete(NODES - 1) } else { Step::Wait(60_000) }),
        4 => (0..8_000_u64).prop_map(Step::Wait),
    ]
}

/// The same, and the lock API beside it.
fn step_with_callers() -> impl Strategy<Value = Step> {
    let which = || 0..64_usize;
    prop_oneof![
        40 => step(),
        8 => (0..NODES - 1, 1..=SLOTS, prop::bool::weighted(0.2))
            .prop_map(|(node, max, unlocks)| Step::Ask { node, max, unlocks }),
        80 => which().prop_map(Step::Serve),
        20 => (which(), prop::bool::weighted(0.2))
            .prop_map(|(which, again)| Step::Deliver { which, again }),
        3 => which().prop_map(Step::GoAway),
        1 => which().prop_map(Step::Die),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn never_more_nodes_out_than_the_smallest_maximum_allows(
        steps in prop::collection::vec(step(), 0..250),
    ) {
        let mut world = World::new();
        for step in steps {
            world.step(step)?;
        }
    }

    #[test]
    fn callers_of_the_lock_api_keep_the_budget_and_what_they_were_told(
        steps in prop::collection::vec(step_with_callers(), 0..400),
    ) {
        let mut world = World::new();
        for step in steps {
            world.step(step)?;
        }
    }

    #[test]
    fn in_a_quiet_world_everybody_gets_the_lock_in_the_end(
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut world = World::new();
        for step in steps {
            world.step(step)?;
        }
        world.quiet()?;
        for (number, node) in world.store.nodes.iter().enumerate() {
            prop_assert!(node.is_none() || world.out_once[number], "n{} never got it: {:#?}", number, world.store);
        }
        prop_assert!(world.store.leases.values().all(|lease| lease.holder.is_none()), "{:#?}", world.store);
    }
}
