//! Whatever crashes, is late, or is changed: one request is one reboot, the end is written once and
//! never while anything runs (`World` asserts it at each write), and nobody is left held.

use dogwatch_api::node_reboot::RebootMethod;
use proptest::prelude::*;

use super::host_kit::HostKit;
use super::kit::*;
use crate::node_reboot::LateAsk;
use crate::reboot::{ParsedAnnotation, RebootOutcome};

const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Debug, Clone)]
enum Happens {
    /// This many minutes pass.
    Time(u8),
    Created(usize, Kind),
    Deleted(usize),
    Cancelled(usize),
    /// The leader works on one; killed after so many writes. With `is_stale` it sees all as it was
    /// before its last turn.
    Leads {
        which: usize,
        calls: usize,
        is_stale: bool,
    },
    Coordinates,
    SentinelAppears,
    DrainGivenUp,
    Aborted,
    RequestRemoved,
    NodeCrashes,
    Cured(bool),
    /// The power controller and the machine take their next step.
    HostTurns,
    BmcAnswers(bool),
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Reboot,
    Escalating,
    Hold,
    Hurried,
    PowerCycle,
    PowerCycleSecond,
}

fn happens() -> impl Strategy<Value = Happens> {
    let which = 0..NAMES.len();
    let kind = prop_oneof![
        3 => Just(Kind::Reboot),
        1 => Just(Kind::Escalating),
        1 => Just(Kind::Hold),
        1 => Just(Kind::Hurried),
        2 => Just(Kind::PowerCycle),
        1 => Just(Kind::PowerCycleSecond)
    ];
    let leads = (which.clone(), 0..5_usize, any::<bool>());
    prop_oneof![
        2 => (1..20_u8).prop_map(Happens::Time),
        4 => (which.clone(), kind).prop_map(|(which, kind)| Happens::Created(which, kind)),
        1 => which.clone().prop_map(Happens::Deleted),
        1 => which.prop_map(Happens::Cancelled),
        4 => Just(Happens::HostTurns),
        1 => any::<bool>().prop_map(Happens::BmcAnswers),
        10 => leads.prop_map(|(which, calls, is_stale)| Happens::Leads { which, calls, is_stale }),
        8 => Just(Happens::Coordinates),
        1 => Just(Happens::SentinelAppears),
        1 => Just(Happens::DrainGivenUp),
        1 => Just(Happens::Aborted),
        1 => Just(Happens::RequestRemoved),
        1 => Just(Happens::NodeCrashes),
        1 => any::<bool>().prop_map(Happens::Cured),
    ]
}

impl World {
    fn happens(&mut self, what: &Happens) {
        match what {
            Happens::Time(minutes) => self.second += u64::from(*minutes) * 60,
            Happens::Created(which, kind) => {
                if !self.reboots.contains_key(NAMES[*which]) {
                    let plan = self.plan_of(*kind);
                    self.create(NAMES[*which], plan);
                }
            }
            Happens::Deleted(which) => self.delete(NAMES[*which]),
            Happens::Cancelled(which) => {
                if self.reboots.contains_key(NAMES[*which]) {
                    self.cancel(NAMES[*which]);
                }
            }
            Happens::Leads {
                which,
                calls,
                is_stale,
            } => {
                let now = (self.node.clone(), self.reboots.clone());
                self.late_ask = LateAsk::Unknown;
                self.lead(NAMES[*which], *calls, *is_stale);
                self.before = now;
            }
            Happens::Coordinates => self.coordinate(),
            Happens::HostTurns => self.switch_host(),
            Happens::BmcAnswers(answers) => self.host.bmc_answers = *answers,
            Happens::SentinelAppears => self.plan_reboot(true),
            Happens::DrainGivenUp => self.give_up_drain(),
            Happens::Aborted => self.finish(RebootOutcome::Aborted),
            Happens::RequestRemoved if self.record().is_none() => {
                self.change_node(|node| node.request = ParsedAnnotation::Absent);
            }
            Happens::NodeCrashes if self.record().is_none() => {
                self.boots += 1;
                let boot = crate::name::BootId::new(format!("boot-{}", self.boots)).unwrap();
                self.change_node(|node| node.boot_id = Some(boot));
            }
            Happens::RequestRemoved | Happens::NodeCrashes => {}
            Happens::Cured(is_cured) => {
                let status = if *is_cured { "False" } else { "True" };
                self.set_condition("GpuFault", status);
            }
        }
    }

    fn plan_of(&self, kind: Kind) -> crate::node_reboot::NodeRebootPlan {
        match kind {
            Kind::Reboot => plan(RebootMethod::Reboot),
            Kind::Hold => plan(RebootMethod::Hold),
            Kind::PowerCycle => plan(RebootMethod::PowerCycle),
            Kind::PowerCycleSecond => plan_with_success(&[RebootMethod::PowerCycle]),
            Kind::Escalating => plan_with_success(&[RebootMethod::Reboot]),
            Kind::Hurried => {
                let mut hurried = plan(RebootMethod::Reboot);
                hurried.deadline = Some(wall(self.second + 600));
                hurried
            }
        }
    }

    fn waits_with_reason(&self, reason: &str) -> bool {
        let mut conditions = self.reboots.values().flat_map(|one| &one.status.conditions);
        conditions.any(|one| one.kind == "Progressing" && one.reason == reason)
    }

    fn assert_one_reboot_each(&self) {
        for (uid, times) in &self.served {
            let mut all = self.reboots.values();
            let own = all.find(|own| own.uid == *uid);
            let most = own.map_or(2, |own| own.status.attempts.len());
            let most = u32::try_from(most).unwrap();
            assert!(*times <= most, "{uid}: {times} reboots, {most} attempts");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::model_depth::model_cases(8_000)))]

    #[test]
    fn one_request_is_one_reboot_and_nobody_is_left_held(
        story in proptest::collection::vec(happens(), 1..80)
    ) {
        let mut world = World::new();
        world.host = HostKit::one();
        for what in &story {
            world.happens(what);
            world.assert_one_reboot_each();
        }
        world.host.bmc_answers = true;
        // Without further events everything but holds comes to its end.
        for _ in 0..40 {
            world.settle();
            assert!(!world.release_orphan_keys(), "a key without its NodeReboot");
            world.switch_host();
            world.coordinate();
            world.second += 60;
        }
        // Nobody has cut the power in time, so no new boot comes: that needs a person.
        if world.waits_with_reason("OffNotProved") {
            world.finish(RebootOutcome::Aborted);
        }
        for name in NAMES {
            world.delete(name);
        }
        for _ in 0..40 {
            world.settle();
            assert!(!world.release_orphan_keys(), "a key without its NodeReboot");
            world.switch_host();
            world.coordinate();
            world.assert_one_reboot_each();
            world.second += 60;
        }
        prop_assert!(world.reboots.is_empty(), "{:#?}", world.reboots);
        prop_assert!(world.host.is_on && world.host.keys().is_empty(), "left off");
        prop_assert_eq!(world.record(), None);
        prop_assert_eq!(&world.node.as_ref().unwrap().request, &ParsedAnnotation::Absent);
    }
}
