//! Random lives of a policy whose shape changes at any time.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::kit::{RolloutWorld, build_shape};
use crate::explain::testkit::boot;
use crate::model_depth::model_cases;
use crate::policy::rollout::{PolicyRolloutState, RolloutHalt, RolloutPhase, RolloutShape};
use crate::reboot::{ParsedAnnotation, RebootPhase};

const NODES: usize = 6;
const MAX_UNAVAILABLE: usize = 3;

#[derive(Debug, Clone)]
enum RolloutMove {
    WantReboot(usize),
    Withdraw(usize),
    /// The controller sees all Nodes, decides and writes.
    WriteState,
    BeginReboot(usize),
    ComeBack(usize),
    FailReboot(usize),
    GiveUp(usize),
    EndBackOff(usize),
    SetReady(usize, bool),
    MakeAnew(usize),
    ChangeShape(Option<RolloutShape>),
    ResumePolicy,
    PassMinutes(u32),
}

fn any_move() -> impl Strategy<Value = RolloutMove> {
    let node = 1..=NODES;
    let ramp = prop_oneof![
        Just(vec![]),
        Just(vec![1]),
        Just(vec![1, 2]),
        Just(vec![2, 4])
    ];
    let asked = (0_u32..4, ramp, proptest::option::of(1_u32..3));
    let asked = asked.prop_map(|(canaries, ramp, halt)| build_shape(canaries, &ramp, halt));
    prop_oneof![
        4 => node.clone().prop_map(RolloutMove::WantReboot),
        1 => node.clone().prop_map(RolloutMove::Withdraw),
        8 => Just(RolloutMove::WriteState),
        8 => node.clone().prop_map(RolloutMove::BeginReboot),
        5 => node.clone().prop_map(RolloutMove::ComeBack),
        1 => node.clone().prop_map(RolloutMove::FailReboot),
        1 => node.clone().prop_map(RolloutMove::GiveUp),
        1 => node.clone().prop_map(RolloutMove::EndBackOff),
        1 => (node.clone(), any::<bool>()).prop_map(|(n, ready)| RolloutMove::SetReady(n, ready)),
        1 => node.prop_map(RolloutMove::MakeAnew),
        1 => proptest::option::weighted(0.9, asked).prop_map(RolloutMove::ChangeShape),
        1 => Just(RolloutMove::ResumePolicy),
        2 => (1_u32..70).prop_map(RolloutMove::PassMinutes),
    ]
}

/// The world, and what a strict observer notes beside it.
struct ModelRun {
    world: RolloutWorld,
    /// Who has begun since the canaries of this rollout are named, by UID and boot.
    began: BTreeSet<(String, String)>,
    /// Who came back since the ramp began.
    returned: u32,
    made: u32,
}

impl ModelRun {
    fn phase_of(&self, number: usize) -> Option<RebootPhase> {
        let record = self.world.nodes[number - 1].record.get();
        record.map(|record| record.phase)
    }

    fn is_out(&self, number: usize) -> bool {
        self.phase_of(number)
            .is_some_and(|phase| phase > RebootPhase::Waiting)
    }

    fn key_of(&self, number: usize) -> (String, String) {
        let node = &self.world.nodes[number - 1];
        (node.uid.clone(), node.boot_id.clone().unwrap().to_string())
    }

    fn make_move(&mut self, step: &RolloutMove) {
        match step {
            RolloutMove::WantReboot(n) if self.phase_of(*n).is_none() => self.world.want_reboot(*n),
            RolloutMove::Withdraw(n) if self.phase_of(*n) == Some(RebootPhase::Waiting) => {
                self.world.node_mut(*n).record = ParsedAnnotation::Absent;
            }
            RolloutMove::WriteState => self.write_and_check(),
            RolloutMove::BeginReboot(n) if self.phase_of(*n) == Some(RebootPhase::Waiting) => {
                self.try_begin(*n);
            }
            RolloutMove::ComeBack(n) if self.is_out(*n) => {
                self.world.come_back(*n);
                self.returned += 1;
                self.forget_stranger(*n);
            }
            RolloutMove::FailReboot(n) if self.is_out(*n) => self.world.fail_reboot(*n),
            RolloutMove::GiveUp(n) if self.is_out(*n) => {
                self.began.remove(&self.key_of(*n));
                self.world.back_off(*n);
                self.world.node_mut(*n).conditions.clear();
            }
            RolloutMove::EndBackOff(n) if self.phase_of(*n) == Some(RebootPhase::Waiting) => {
                self.world.end_back_off(*n);
            }
            RolloutMove::SetReady(n, ready) => self.world.set_ready(*n, *ready),
            RolloutMove::MakeAnew(n) => {
                self.made += 1;
                let (uid, new) = (
                    format!("made-{}", self.made),
                    boot(&format!("b{}", self.made)),
                );
                let node = self.world.node_mut(*n);
                node.uid = uid;
                node.boot_id = Some(new);
                node.record = ParsedAnnotation::Absent;
                node.last_reboot = ParsedAnnotation::Absent;
                node.conditions.clear();
            }
            RolloutMove::ChangeShape(asked) => self.world.policy.rollout.shape.clone_from(asked),
            RolloutMove::ResumePolicy => {
                let state = self.world.policy.rollout.state.as_ref();
                if state.is_some_and(|state| state.halted.is_some()) {
                    self.world.resume_policy();
                }
            }
            RolloutMove::PassMinutes(minutes) => {
                self.world
                    .pass_time(Duration::from_mins(u64::from(*minutes)));
            }
            RolloutMove::WantReboot(_)
            | RolloutMove::Withdraw(_)
            | RolloutMove::BeginReboot(_)
            | RolloutMove::ComeBack(_)
            | RolloutMove::FailReboot(_)
            | RolloutMove::GiveUp(_)
            | RolloutMove::EndBackOff(_) => {}
        }
    }

    /// A node that began before this rollout takes the place of a canary only until it is back.
    fn forget_stranger(&mut self, number: usize) {
        let uid = &self.world.nodes[number - 1].uid;
        let state = self.world.policy.rollout.state.as_ref();
        let canaries = state.map_or(&[][..], |state| &state.canaries);
        if canaries.iter().all(|canary| canary.uid != *uid) {
            self.began.retain(|(began, _)| began != uid);
        }
    }

    fn return_to_waiting(&mut self, number: usize) {
        self.began.remove(&self.key_of(number));
        let node = self.world.node_mut(number);
        let mut record = node.record.get().unwrap().clone();
        record.phase = RebootPhase::Waiting;
        node.record = ParsedAnnotation::Is(record);
        node.conditions.clear();
    }

    /// A coordinator that won the lock reads the policy afresh, counts and begins.
    fn try_begin(&mut self, number: usize) {
        let record = self.world.nodes[number - 1].record.get();
        if record.is_some_and(|record| record.retry_after.is_some()) {
            return;
        }
        let policy = &self.world.policy;
        let limit = policy.limit_nodes_over(crate::limit::UnavailabilityLimit::Count(
            u32::try_from(MAX_UNAVAILABLE).unwrap(),
        ));
        let out = (1..=NODES).filter(|n| self.is_out(*n)).count();
        if self.world.begin_refusal(number).is_some() || out >= limit.allowed_nodes(NODES) {
            return;
        }
        assert!(out < MAX_UNAVAILABLE);
        let rollout = self.world.policy.rollout.clone();
        if let Some(state) = &rollout.state {
            assert_eq!(state.halted, None, "nothing begins while halted");
        }
        self.world.set_phase(number, RebootPhase::Draining);
        let Some(asked) = &rollout.shape else {
            return;
        };
        let state = rollout.state.expect("nothing begins without a state");
        assert_eq!(state.shape, asked.to_string(), "the state is of this shape");
        assert_ne!(state.phase, RolloutPhase::Soaking);
        if state.phase == RolloutPhase::Canary {
            self.began.insert(self.key_of(number));
            assert!(
                self.began.len() <= asked.canary_count(),
                "{:?} began of {}",
                self.began,
                asked.canary_count()
            );
        } else if let Some(most) = asked.ramp_limit(state.step) {
            assert!(u32::try_from(out).unwrap() < most);
        }
    }

    fn write_and_check(&mut self) {
        let before = self.world.policy.rollout.clone();
        self.world.write_state();
        let after = self.world.policy.rollout.state.clone();
        let halt_of = |state: &Option<PolicyRolloutState>| -> Option<RolloutHalt> {
            state.as_ref()?.halted.clone()
        };
        if let Some(halt) = halt_of(&before.state) {
            let ended = before.resumed == Some(halt.since);
            assert!(ended || halt_of(&after) == Some(halt), "a halt was lost");
        }
        let Some(after) = after else {
            self.began.clear();
            return;
        };
        if let Some(asked) = &before.shape {
            assert!(after.canaries.len() <= asked.canary_count());
        }
        self.check_counts(before.state.as_ref(), &after);
        if after.halted.is_some() {
            self.undo_drains();
        }
    }

    fn check_counts(&mut self, before: Option<&PolicyRolloutState>, after: &PolicyRolloutState) {
        let same = before.filter(|before| before.shape == after.shape);
        let was_ramping = same.is_some_and(|state| state.phase == RolloutPhase::Ramping);
        let is_canary = after.phase == RolloutPhase::Canary;
        if same.is_none() || (was_ramping && is_canary) {
            self.began.clear();
        }
        // A canary that lost its name has done nothing; one whose Node is gone has.
        let named = |uid: &String| after.canaries.iter().any(|canary| canary.uid == *uid);
        let nodes = &self.world.nodes;
        let gone = |uid: &String| nodes.iter().all(|node| node.uid != *uid);
        self.began.retain(|(uid, _)| named(uid) || !gone(uid));
        if is_canary && after.canaries.is_empty() {
            // A rollout that began anew after an hour of rest.
            let out: BTreeSet<String> = (1..=NODES)
                .filter(|n| self.is_out(*n))
                .map(|n| self.key_of(n).0)
                .collect();
            self.began.retain(|(uid, _)| out.contains(uid));
        }
        if !was_ramping {
            self.returned = 0;
        }
        if let Some(before) = same {
            let known = |uid: &str, boot: &str| {
                let mut failed = before.failed.iter();
                failed.any(|it| it.uid == uid && it.boot_id == boot)
            };
            let new = after.failed.iter();
            let new = new.filter(|it| !known(&it.uid, &it.boot_id)).count();
            assert!(
                after.failures <= before.failures + u32::try_from(new).unwrap(),
                "a failure was counted twice"
            );
        }
        if let Some(asked) = &self.world.policy.rollout.shape {
            let steps = usize::try_from(after.step).unwrap();
            let counted: u32 = asked.ramp.iter().take(steps).sum();
            if was_ramping && after.phase == RolloutPhase::Ramping && after.limit.is_some() {
                assert!(
                    counted + after.successes <= self.returned,
                    "a success was counted twice"
                );
            }
        }
    }

    /// Coordinators undo their drains when they see a halt.
    fn undo_drains(&mut self) {
        for number in 1..=NODES {
            if self.phase_of(number) == Some(RebootPhase::Draining) {
                self.return_to_waiting(number);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(model_cases(4000)))]

    #[test]
    fn whatever_changes_when_nothing_begins_beyond_the_shape(
        moves in proptest::collection::vec(any_move(), 1..120),
    ) {
        let mut run = ModelRun {
            world: RolloutWorld::new(build_shape(1, &[1, 2], Some(2)), NODES),
            began: BTreeSet::new(),
            returned: 0,
            made: 0,
        };
        for (number, step) in moves.iter().enumerate() {
            // Boots of different nodes differ.
            if number == 0 {
                for n in 1..=NODES {
                    run.world.node_mut(n).boot_id = Some(boot(&format!("boot-{n}")));
                }
            }
            run.make_move(step);
        }
    }
}
