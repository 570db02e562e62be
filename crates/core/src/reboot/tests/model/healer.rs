//! The model world with healers. Its coordinators give no sign of life except their records, so
//! that each is taken for dead while it lives: cut off, slow, or with a write still under way.
//! There are two healers at a time, because one that lost its lease may not know it yet.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::super::super::{DrainTimeoutAction, ObservedNode, ParsedAnnotation};
use super::acts::Sent;
use super::server::{Answer, Write};
use super::world::{Fate, World};
use super::{Happens, fate, happens, on_timeout};
use crate::Now;
use crate::condition::CurrentCondition;
use crate::healer::{
    self, HealerAction, HealerObserve, HealerSnapshot, HealingCase, NodeRead, ObservedReturnGates,
};
use crate::lock::{HolderId, LockRecord, ObservedLease};
use crate::name::NodeName;
use crate::policy::ClusterPolicies;

#[derive(Debug, Clone)]
enum Healing {
    World(usize, Happens),
    /// A healer reads the current state or an earlier one.
    Sees {
        which: usize,
        age: usize,
    },
    /// The healer performs its decision.
    Heals {
        which: usize,
        fate: Fate,
    },
    /// The healer reads and acts several times, with nothing in between.
    Works {
        which: usize,
        turns: u8,
    },
    /// Another leader starts with an empty memory.
    Begins {
        which: usize,
    },
    Posts {
        node: usize,
    },
}

fn healing() -> impl Strategy<Value = Healing> {
    let which = 0_usize..2;
    prop_oneof![
        30 => happens().prop_map(|(node, what)| Healing::World(node, what)),
        6 => (which.clone(), 0_usize..4).prop_map(|(which, age)| Healing::Sees { which, age }),
        8 => (which.clone(), fate()).prop_map(|(which, fate)| Healing::Heals { which, fate }),
        6 => (which.clone(), 1_u8..6).prop_map(|(which, turns)| Healing::Works { which, turns }),
        1 => which.prop_map(|which| Healing::Begins { which }),
        4 => (0_usize..4).prop_map(|node| Healing::Posts { node }),
        4 => (600_u64..4000).prop_map(|seconds| Healing::World(0, Happens::Passes { seconds })),
    ]
}

struct Healer {
    nodes: BTreeMap<NodeName, ObservedNode>,
    leases: BTreeMap<String, ObservedLease>,
    seen: HealerSnapshot,
}

impl Healer {
    fn new() -> Self {
        let policies = ClusterPolicies::Known(Vec::new());
        Self {
            nodes: BTreeMap::new(),
            leases: BTreeMap::new(),
            seen: HealerSnapshot {
                policies,
                ..HealerSnapshot::default()
            },
        }
    }

    fn sees(&mut self, world: &World, age: usize, now: Now) {
        for history in &world.server.nodes {
            let shown = &history[history.len().saturating_sub(1 + age)];
            let known = self.nodes.get(&shown.name);
            if known.is_none_or(|known| !older(&shown.resource_version, &known.resource_version)) {
                self.nodes.insert(shown.name.clone(), shown.clone());
            }
        }
        let history = &world.server.leases;
        for shown in &history[history.len().saturating_sub(1 + age)] {
            let known = self.leases.get(&shown.name);
            if known.is_none_or(|known| !older(&shown.resource_version, &known.resource_version)) {
                self.leases.insert(shown.name.clone(), shown.clone());
            }
        }
        self.remember(now);
    }

    fn remember(&mut self, now: Now) {
        self.seen.nodes.clone_from(&self.nodes);
        self.seen.leases.clone_from(&self.leases);
        let (nodes, leases) = (self.nodes.values(), self.leases.values());
        self.seen.memory.observe_objects(nodes, leases, [], now);
    }

    fn decide(&self, world: &World, now: Now) -> Vec<HealingCase> {
        let config = healer::HealerConfig {
            flags: world.config.clone(),
            ..healer::HealerConfig::default()
        };
        healer::decide(&self.seen, &config, now)
    }
}

fn older(version: &str, than: &str) -> bool {
    version.parse::<u64>().unwrap() < than.parse::<u64>().unwrap()
}

struct Healed {
    world: World,
    healers: [Healer; 2],
    did: usize,
}

impl Healed {
    fn new(world: World) -> Self {
        Self {
            world,
            healers: [Healer::new(), Healer::new()],
            did: 0,
        }
    }

    fn now(&self) -> Now {
        self.world.now(0)
    }

    fn happens(&mut self, what: &Healing) {
        match what {
            Healing::World(node, what) => self.world.happens(*node, what),
            Healing::Sees { which, age } => self.sees(*which, *age),
            Healing::Heals { which, fate } => self.heals(*which, *fate),
            Healing::Works { which, turns } => {
                for _ in 0..*turns {
                    self.sees(*which, 0);
                    self.heals(*which, Fate::Good);
                }
            }
            Healing::Begins { which } => self.healers[*which] = Healer::new(),
            Healing::Posts { node } => self.posts(node % self.world.hosts.len()),
        }
        self.world.check_budget();
    }

    fn posts(&mut self, node: usize) {
        self.world.kubelet(node);
        let at = self.now().wall;
        self.world.server.change(node, |node| {
            node.conditions = vec![CurrentCondition {
                kind: "Ready".into(),
                status: "True".into(),
                reason: "KubeletReady".into(),
                message: String::new(),
                last_transition: None,
                last_heartbeat: Some(at),
            }];
        });
    }

    fn sees(&mut self, which: usize, age: usize) {
        let now = self.now();
        self.healers[which].sees(&self.world, age, now);
    }

    fn heals(&mut self, which: usize, fate: Fate) {
        let now = self.now();
        for case in self.healers[which].decide(&self.world, now) {
            for look in &case.decision.observe {
                self.looks(which, look, now);
            }
            let Some(action) = case.decision.actions.first() else {
                continue;
            };
            self.did += 1;
            if self.performs(which, action, fate, now) {
                self.healers[which] = Healer::new();
                return;
            }
        }
    }

    fn looks(&mut self, which: usize, look: &HealerObserve, now: Now) {
        let taken = now.mono;
        let seen = &mut self.healers[which].seen;
        match look {
            HealerObserve::Node { name, .. } => {
                let mut nodes = self.world.server.nodes.iter();
                let node = nodes.find_map(|node| node.last().filter(|node| node.name == *name));
                let node = node.cloned();
                let empty = node
                    .as_ref()
                    .is_none_or(|node| node.record == ParsedAnnotation::Absent);
                seen.memory
                    .record_node_read(&HolderId::for_node(name), empty, taken);
                let escalated = ParsedAnnotation::Absent;
                let read = NodeRead {
                    node,
                    escalated,
                    taken,
                };
                seen.observations.nodes.insert(name.clone(), read);
            }
            HealerObserve::Gates { node, .. } => {
                let gates = ObservedReturnGates {
                    shut: Vec::new(),
                    taken,
                };
                seen.observations.gates.insert(node.clone(), gates);
            }
            HealerObserve::Holder { .. }
            | HealerObserve::Api { .. }
            | HealerObserve::Hosts { .. } => {
                panic!("no Node is ever deleted here, and nobody else holds: {look:?}")
            }
        }
    }

    /// Returns whether the healer crashed.
    fn performs(&mut self, which: usize, action: &HealerAction, fate: Fate, now: Now) -> bool {
        let write = match action {
            HealerAction::PatchNode { node, patch } => {
                let mut nodes = self.world.server.nodes.iter();
                let index = nodes.position(|all| all[0].name == node.name).unwrap();
                let patch = patch.clone();
                Write::Patch { node: index, patch }
            }
            HealerAction::Release { lease, remaining } => Write::Lease {
                seen: lease.clone(),
                holder: lease.holder.clone().filter(|_| !remaining.is_empty()),
                record: lease
                    .record
                    .clone()
                    .filter(|_| !remaining.is_empty())
                    .map(|record| LockRecord {
                        runs: remaining.clone(),
                        ..record
                    }),
            },
            HealerAction::Break { .. }
            | HealerAction::PatchApiNode { .. }
            | HealerAction::DeletePresence { .. }
            | HealerAction::NoteEscalation { .. }
            | HealerAction::Escalate { .. } => panic!("nothing here asks for it: {action:?}"),
        };
        let sent = self.world.send(write, fate);
        let healer = &mut self.healers[which];
        match sent {
            Sent::Answered(Answer::Node(node)) => {
                healer.seen.memory.record_node_write(&node, now);
                healer.nodes.insert(node.name.clone(), *node);
                healer.remember(now);
            }
            Sent::Answered(Answer::Lease(lease)) => {
                healer.leases.insert(lease.name.clone(), *lease);
                healer.remember(now);
            }
            Sent::Answered(Answer::Conflict) | Sent::Unanswered => {}
            Sent::Crashed => return true,
        }
        false
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::model_depth::model_cases(400)))]

    #[test]
    fn healers_that_take_every_living_coordinator_for_dead_break_no_promise_and_lose_no_request(
        nodes in 1_usize..4,
        max in 1_u32..3,
        on in on_timeout(),
        what in prop::collection::vec(healing(), 1..200),
    ) {
        let mut healed = Healed::new(World::new(nodes, max, true, on));
        for what in &what {
            healed.happens(what);
        }
        healed.world.comes_to_its_end();
    }
}

/// The model proves nothing if its healers never act.
#[test]
fn the_healers_of_the_model_do_heal() {
    let mut healed = Healed::new(World::new(1, 1, true, DrainTimeoutAction::Abort));
    let mut step = |what: Healing| healed.happens(&what);
    step(Healing::Posts { node: 0 });
    step(Healing::World(0, Happens::Starts));
    step(Healing::World(0, Happens::Touches));
    for _ in 0..6 {
        step(Healing::World(0, Happens::Works { turns: 5 }));
    }
    for turns in [1, 1, 2] {
        step(Healing::Works { which: 0, turns });
        step(Healing::World(0, Happens::Passes { seconds: 3000 }));
    }
    assert!(healed.did > 0);
    let passed = Duration::from_secs(1000 + 9000);
    assert_eq!(healed.world.mono, passed);
}

/// The critical moment: a coordinator has won the lock, counted, and is about to cordon; then it is
/// cut off for a quarter of an hour.
#[test]
fn who_was_about_to_cordon_when_its_lock_was_given_away_cannot_cordon_any_more() {
    let mut healed = Healed::new(World::new(2, 1, true, DrainTimeoutAction::Abort));
    for node in 0..2 {
        healed.posts(node);
        healed.world.touch(node);
        healed.world.start(node);
    }
    let world = &mut healed.world;
    while world.server.leases()[0].holder.is_none() {
        world.deliver(0, 0, 0);
        world.act(0, 0, Fate::Good);
    }
    world.deliver(0, 0, 0);
    world.act(0, 0, Fate::Good);
    world.count(0, 0);
    world.deliver(0, 0, 0);
    let cut_off = world.act(0, 0, Fate::Delayed).expect("it lives, and acts");
    assert!(
        !cut_off.actions.is_empty(),
        "it thinks that it may go: {cut_off:?}"
    );
    healed.sees(0, 0);
    healed.world.mono += Duration::from_secs(901);
    for _ in 0..2 {
        healed.sees(0, 0);
        healed.heals(0, Fate::Good);
    }
    let world = &mut healed.world;
    assert!(world.server.leases()[0].holder.is_none(), "given away");
    while !world.server.node(1).unschedulable {
        world.mono += Duration::from_secs(1);
        world.works(1);
    }
    while !world.late.is_empty() {
        world.arrive(0);
    }
    world.check_budget();
    assert!(!world.server.node(0).unschedulable);
    // By now its count is too old to go by.
    let again = world.act(0, 0, Fate::Good).expect("it lives");
    assert_eq!(again.actions, []);
    world.comes_to_its_end();
}
