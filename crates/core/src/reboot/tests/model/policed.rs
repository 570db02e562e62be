//! The model world with policies that are written, changed and deleted at any moment: several
//! groups whose members move, budgets that grow and shrink, pauses, windows, gates, people who
//! abort a reboot, and a lock API that takes nodes out of service. Each coordinator sees the
//! policies late, but in order.

use std::time::Duration;

use proptest::prelude::*;

use super::super::super::{AbortRequest, DrainTimeoutAction, ParsedAnnotation, RebootReason};
use super::world::{Fate, World};
use super::{Happens, happens, on_timeout};
use crate::drain::PodRules;
use crate::limit::UnavailabilityLimit;
use crate::name::GroupName;
use crate::policy::rollout::PolicyRollout;
use crate::policy::window::{MaintenanceWindow, WindowSpec};
use crate::policy::{
    DrainRules, Policy, PolicyGate, PolicyPause, ReadyCheck, ReadyTimeoutAction, RebootRules,
    ReturnRules, ruling_policy,
};
use crate::selector::LabelSelector;

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

#[derive(Debug, Clone, Copy)]
enum Ends {
    ByHand,
    InSeconds(u64),
}

/// The contents of a policy.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "a policy's own fields")]
struct Words {
    /// Selects every node, not only those of its pool.
    wide: bool,
    priority: i32,
    max: UnavailabilityLimit,
    pause: Option<Ends>,
    /// Open in the first (`true`) or the second half of the day; `None`: no window.
    window: Option<bool>,
    gated: bool,
    excludes: bool,
    invalid: bool,
    min_interval: bool,
    /// Its `return.ready` is never met; the policy then proceeds.
    unusable: bool,
}

#[derive(Debug, Clone)]
enum Rules {
    World(usize, Happens),
    Policy { which: usize, words: Option<Words> },
    Moves { node: usize, to: usize },
    Alert(bool),
    Stops { node: usize, readable: bool },
    ApiLocks { node: usize, locks: bool },
}

fn words() -> impl Strategy<Value = Words> {
    let max = prop_oneof![
        3 => Just(UnavailabilityLimit::Count(1)),
        3 => Just(UnavailabilityLimit::Count(2)),
        1 => Just(UnavailabilityLimit::Count(3)),
        2 => Just(UnavailabilityLimit::Percent(50)),
        1 => Just(UnavailabilityLimit::Percent(100).capped_at(Some(2))),
    ];
    let pause = prop_oneof![
        5 => Just(None),
        1 => Just(Some(Ends::ByHand)),
        1 => (0_u64..4000).prop_map(|seconds| Some(Ends::InSeconds(seconds))),
    ];
    let window = prop_oneof![
        5 => Just(None),
        2 => Just(Some(true)),
        1 => Just(Some(false)),
    ];
    let rare = || prop::bool::weighted(0.15);
    (
        (rare(), 0_i32..2, max, pause),
        (
            window,
            prop::bool::weighted(0.3),
            rare(),
            prop::bool::weighted(0.05),
            rare(),
            rare(),
        ),
    )
        .prop_map(
            |(
                (wide, priority, max, pause),
                (window, gated, excludes, invalid, min_interval, unusable),
            )| {
                Words {
                    wide,
                    priority,
                    max,
                    pause,
                    window,
                    gated,
                    excludes,
                    invalid,
                    min_interval,
                    unusable,
                }
            },
        )
}

fn rules() -> impl Strategy<Value = Rules> {
    let node = || 0_usize..4;
    prop_oneof![
        30 => happens().prop_map(|(node, what)| Rules::World(node, what)),
        8 => node().prop_map(|node| Rules::World(node, Happens::Works { turns: 3 })),
        3 => (0_usize..2, prop::option::weighted(0.85, words()))
            .prop_map(|(which, words)| Rules::Policy { which, words }),
        2 => (node(), 0_usize..4).prop_map(|(node, to)| Rules::Moves { node, to }),
        1 => prop::bool::weighted(0.4).prop_map(Rules::Alert),
        1 => (node(), prop::bool::weighted(0.8))
            .prop_map(|(node, readable)| Rules::Stops { node, readable }),
        1 => (node(), prop::bool::weighted(0.4))
            .prop_map(|(node, locks)| Rules::ApiLocks { node, locks }),
    ]
}

fn policy(which: usize, words: &Words, world: &World) -> Policy {
    let name = ["a", "b"][which];
    let mut selector = LabelSelector::default();
    if !words.wide {
        selector.match_labels.insert("pool".into(), name.into());
    }
    let gate = PolicyGate::Pods {
        selector: LabelSelector::default(),
    };
    let never_met = ReadyCheck::Resource {
        name: "example.com/gpu".into(),
    };
    let wall = world.now(0).wall;
    let until = |seconds: u64| wall + jiff::SignedDuration::from_secs(seconds.cast_signed());
    Policy {
        name: GroupName::new(name).unwrap(),
        selector,
        priority: words.priority,
        max_unavailable: Some(words.max),
        max_unavailable_nodes: None,
        topology_key: None,
        rollout: PolicyRollout::default(),
        paused: words.pause.map(|ends| PolicyPause {
            reason: String::new(),
            until: match ends {
                Ends::ByHand => None,
                Ends::InSeconds(seconds) => Some(until(seconds)),
            },
        }),
        windows: words.window.map(half_of_the_day).into_iter().collect(),
        min_interval: words.min_interval.then_some(Duration::from_hours(1)),
        drain: DrainRules {
            pods: PodRules {
                exclude: words.excludes.then(LabelSelector::default),
                ..PodRules::default()
            },
            ..DrainRules::default()
        },
        reboot: RebootRules::default(),
        on_return: ReturnRules {
            ready: words.unusable.then_some(never_met).into_iter().collect(),
            on_ready_timeout: ReadyTimeoutAction::Proceed,
            ..ReturnRules::default()
        },
        gates: words.gated.then_some(gate).into_iter().collect(),
        problems: words
            .invalid
            .then(|| "windows[0]".to_owned())
            .into_iter()
            .collect(),
    }
}

/// The model world starts at eight in the morning.
fn half_of_the_day(morning: bool) -> MaintenanceWindow {
    let (start, end) = if morning {
        ("00:00", "12:00")
    } else {
        ("12:00", "24:00")
    };
    let spec = WindowSpec {
        start: Some(start.into()),
        end: Some(end.into()),
        ..WindowSpec::default()
    };
    MaintenanceWindow::new(&spec).unwrap()
}

impl World {
    fn rules(&mut self, what: &Rules) {
        let of = |node: usize, world: &World| node % world.hosts.len();
        match what {
            Rules::World(node, what) => self.happens(*node, what),
            Rules::Policy { which, words } => {
                let mut all = self.policies.last().unwrap().clone();
                let name = ["a", "b"][*which];
                all.retain(|policy| policy.name.as_str() != name);
                all.extend(words.as_ref().map(|words| policy(*which, words, self)));
                self.policies.push(all);
                self.regroup();
            }
            Rules::Moves { node, to } => self.moves(of(*node, self), *to),
            Rules::Alert(alert) => self.alert = *alert,
            Rules::Stops { node, readable } => {
                let abort = if *readable {
                    ParsedAnnotation::Is(AbortRequest {
                        reason: "no".into(),
                        requester: "me".into(),
                    })
                } else {
                    ParsedAnnotation::Bad {
                        why: "no JSON".into(),
                    }
                };
                self.server
                    .change(of(*node, self), |node| node.abort = abort);
            }
            Rules::ApiLocks { node, locks } => {
                self.server
                    .change(of(*node, self), |node| node.api_lock = *locks);
            }
        }
    }

    /// Moves a node to pool a or b, to no pool, or into the control plane.
    fn moves(&mut self, node: usize, to: usize) {
        self.server.change(node, |node| {
            node.labels.clear();
            let label = [
                ("pool", "a"),
                ("pool", "b"),
                ("pool", ""),
                (CONTROL_PLANE, ""),
            ][to];
            node.labels.insert(label.0.into(), label.1.into());
        });
        self.regroup();
    }

    /// Each node whose reboot has not ended waits, holds nothing, and gives a reason; checks that
    /// the reason is true.
    fn assert_who_waits_has_a_reason(&mut self) {
        for node in 0..self.hosts.len() {
            let seen = self.server.node(node).clone();
            let Some(record) = seen.record.get() else {
                continue;
            };
            let last = self.hosts[node].processes.len() - 1;
            let decision = self.act(node, last, Fate::Good).expect("it lives");
            assert_eq!(decision.actions, [], "at rest");
            let policies = self.policies.last().unwrap();
            let rules = ruling_policy(policies, &seen.labels);
            let reason = decision.cause.reason;
            let holds = if reason == RebootReason::Paused {
                rules.is_some_and(|rules| rules.paused.is_some())
            } else if reason == RebootReason::PolicyInvalid {
                rules.is_some_and(|rules| !rules.problems.is_empty())
            } else if reason == RebootReason::GateShut {
                rules.is_some_and(|rules| !rules.gates.is_empty()) && self.alert
            } else {
                reason == RebootReason::LockedThroughApi && seen.api_lock
            };
            assert!(holds, "S6: {record:?} waits for {:?}", decision.cause);
            let ours = record.cordoned_by_us || seen.unschedulable;
            assert!(!ours, "S6: out of service while it waits: {record:?}");
        }
        let free = self
            .server
            .leases()
            .iter()
            .all(|lease| lease.holder.is_none());
        assert!(free, "S6: a lock that nobody uses: {}", self.words());
    }

    /// Removes everything that keeps nodes from rebooting.
    fn all_is_allowed(&mut self) {
        let mut all = self.policies.last().unwrap().clone();
        for policy in &mut all {
            policy.paused = None;
            policy.problems.clear();
        }
        self.policies.push(all);
        self.alert = false;
        for node in 0..self.hosts.len() {
            self.server.change(node, |node| node.api_lock = false);
        }
    }
}

fn run(nodes: usize, tmpfs: bool, on: DrainTimeoutAction, what: &[Rules]) -> World {
    let mut world = World::new(nodes, 1, tmpfs, on);
    world.policies.push(Vec::new());
    for what in what {
        world.rules(what);
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::model_depth::model_cases(400)))]

    #[test]
    fn whatever_becomes_of_the_policies_the_promises_hold_and_who_waits_has_a_reason(
        nodes in 1_usize..5,
        tmpfs: bool,
        on in on_timeout(),
        first in words(),
        pools in prop::collection::vec(0_usize..4, 4),
        what in prop::collection::vec(rules(), 1..200),
    ) {
        let policy = Rules::Policy { which: 0, words: Some(first) };
        let moves = pools.iter().enumerate().map(|(node, to)| Rules::Moves { node, to: *to });
        let all: Vec<Rules> = [policy].into_iter().chain(moves).chain(what).collect();
        let mut world = run(nodes, tmpfs, on, &all);
        world.comes_to_rest();
        world.assert_who_waits_has_a_reason();
        world.all_is_allowed();
        world.comes_to_its_end();
    }
}

fn plain(max: UnavailabilityLimit) -> Words {
    Words {
        wide: true,
        priority: 0,
        max,
        pause: None,
        window: None,
        gated: false,
        excludes: false,
        invalid: false,
        min_interval: false,
        unusable: false,
    }
}

/// Two nodes under one policy. The first has won the lock and counted, and is about to cordon.
fn about_to_cordon(max: UnavailabilityLimit) -> World {
    let words = Some(plain(max));
    let mut world = run(
        2,
        true,
        DrainTimeoutAction::Abort,
        &[Rules::Policy { which: 0, words }],
    );
    for node in 0..2 {
        world.touch(node);
        world.start(node);
    }
    while world
        .server
        .leases()
        .iter()
        .all(|lease| lease.holder.is_none())
    {
        world.deliver(0, 0, 0);
        world.act(0, 0, Fate::Good);
    }
    world.deliver(0, 0, 0);
    world.act(0, 0, Fate::Good);
    world.count(0, 0);
    world.deliver(0, 0, 0);
    world
}

#[test]
fn a_cordon_that_is_still_on_its_way_never_arrives_after_the_lock_was_given_up() {
    let mut world = about_to_cordon(UnavailabilityLimit::Count(1));
    world.act(0, 0, Fate::Delayed);
    assert!(world.late.iter().any(|(_, done)| !done), "it is on its way");
    let words = Some(Words {
        pause: Some(Ends::ByHand),
        ..plain(UnavailabilityLimit::Count(1))
    });
    world.rules(&Rules::Policy { which: 0, words });
    while world
        .server
        .leases()
        .iter()
        .any(|lease| lease.holder.is_some())
    {
        world.deliver(0, 0, 0);
        world.act(0, 0, Fate::Good);
    }
    while !world.late.is_empty() {
        world.arrive(0);
    }
    assert!(
        !world.server.node(0).unschedulable,
        "S1: out without a lock"
    );
    world.comes_to_rest();
    world.assert_who_waits_has_a_reason();
}

#[test]
fn an_attempt_that_was_undone_goes_by_a_new_count_and_the_new_maximum() {
    let mut world = about_to_cordon(UnavailabilityLimit::Count(2));
    world.act(0, 0, Fate::Good);
    assert!(world.server.node(0).unschedulable);
    world.hosts[1].pods = 1;
    while !world.server.node(1).unschedulable {
        world.mono += Duration::from_secs(1);
        world.works(1);
    }
    let paused = Some(Words {
        pause: Some(Ends::ByHand),
        ..plain(UnavailabilityLimit::Count(2))
    });
    world.rules(&Rules::Policy {
        which: 0,
        words: paused,
    });
    world.deliver(0, 0, 0);
    world.act(0, 0, Fate::Good);
    assert!(!world.server.node(0).unschedulable, "undone");
    let words = Some(plain(UnavailabilityLimit::Count(1)));
    world.rules(&Rules::Policy { which: 0, words });
    for _ in 0..20 {
        world.works(0);
        assert!(
            !world.server.node(0).unschedulable,
            "S1: the other one is out, of one"
        );
    }
    world.comes_to_its_end();
}

#[test]
fn a_lock_that_is_held_stays_in_sight_when_its_maximum_becomes_a_percentage() {
    let mut world = about_to_cordon(UnavailabilityLimit::Count(1));
    let words = Some(Words {
        wide: false,
        ..plain(UnavailabilityLimit::Count(1))
    });
    world.rules(&Rules::Policy { which: 0, words });
    let words = Some(plain(UnavailabilityLimit::Percent(50)));
    world.rules(&Rules::Policy { which: 1, words });
    world.deliver(0, 0, 0);
    world.act(0, 0, Fate::Lost);
    world.works(0);
    world.works(0);
    let held = |lease: &crate::lock::ObservedLease| {
        lease.holder.is_some() && lease.name.starts_with("dogwatch-a-")
    };
    assert!(
        !world.server.leases().iter().any(held),
        "S6: left behind in the old group"
    );
    world.comes_to_its_end();
}
