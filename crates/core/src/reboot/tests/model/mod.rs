//! A model world: one to four nodes with their hosts and coordinators, and a network and people
//! that choose the worst moments. S1, S3, S4, S5 hold after each step; S6 once no more faults
//! happen.

mod acts;
mod healer;
mod holds;
mod late;
mod policed;
mod process;
mod promises;
mod quiet;
mod server;
mod world;

use std::time::Duration;

use proptest::prelude::*;

use super::super::DrainTimeoutAction;
use world::{Fate, World};

/// The next event, and its node. Numbers choose among what is possible.
#[derive(Debug, Clone)]
enum Happens {
    Sees {
        process: usize,
        age: usize,
    },
    Counts {
        process: usize,
    },
    Acts {
        process: usize,
        fate: Fate,
    },
    /// The coordinator sees, counts, sees and acts, several times.
    Works {
        turns: u8,
    },
    Starts,
    Crashes {
        process: usize,
    },
    /// The kernel boots; without a reboot command only if `surprise`.
    Boots {
        surprise: bool,
    },
    Kubelet,
    Touches,
    Removes,
    Requests,
    /// A NodeReboot asks for a hold, or its request is withdrawn.
    Holds,
    Withdraws,
    Cordons,
    Uncordons,
    PodGoes,
    PodComes,
    Refuses,
    Passes {
        seconds: u64,
    },
    ClockSet {
        ahead: i64,
    },
    Arrives {
        which: usize,
    },
    /// A person unlocks by force; with `anew` the Lease is deleted and created again.
    Unlocks {
        anew: bool,
    },
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => Just(Fate::Good),
        1 => Just(Fate::Lost),
        2 => Just(Fate::AnswerLost),
        2 => Just(Fate::Delayed),
        1 => Just(Fate::CrashBefore),
        2 => Just(Fate::CrashAfter),
        1 => Just(Fate::CrashDelayed),
        1 => Just(Fate::NotStarted),
    ]
}

fn happens() -> impl Strategy<Value = (usize, Happens)> {
    let process = 0_usize..2;
    let what = prop_oneof![
        12 => (process.clone(), 0_usize..4).prop_map(|(process, age)| Happens::Sees { process, age }),
        8 => process.clone().prop_map(|process| Happens::Sees { process, age: 0 }),
        6 => process.clone().prop_map(|process| Happens::Counts { process }),
        24 => (process.clone(), fate()).prop_map(|(process, fate)| Happens::Acts { process, fate }),
        24 => (1_u8..6).prop_map(|turns| Happens::Works { turns }),
        4 => Just(Happens::Starts),
        2 => process.prop_map(|process| Happens::Crashes { process }),
        5 => prop::bool::weighted(0.2).prop_map(|surprise| Happens::Boots { surprise }),
        6 => Just(Happens::Kubelet),
        5 => Just(Happens::Touches),
        1 => Just(Happens::Removes),
        2 => Just(Happens::Requests),
        2 => Just(Happens::Holds),
        2 => Just(Happens::Withdraws),
        1 => Just(Happens::Cordons),
        2 => Just(Happens::Uncordons),
        6 => Just(Happens::PodGoes),
        1 => Just(Happens::PodComes),
        1 => Just(Happens::Refuses),
        6 => prop_oneof![0_u64..20, 20_u64..400, 400_u64..4000].prop_map(|seconds| Happens::Passes { seconds }),
        1 => (-4000_i64..4000).prop_map(|ahead| Happens::ClockSet { ahead }),
        5 => (0_usize..8).prop_map(|which| Happens::Arrives { which }),
    ];
    (0_usize..4, what)
}

impl World {
    fn happens(&mut self, node: usize, what: &Happens) {
        let node = node % self.hosts.len();
        match *what {
            Happens::Sees { process, age } => self.deliver(node, process, age),
            Happens::Counts { process } => self.count(node, process),
            Happens::Acts { process, fate } => {
                self.act(node, process, fate);
            }
            Happens::Works { turns } => {
                for _ in 0..turns {
                    self.works(node);
                }
            }
            Happens::Starts if self.hosts[node].processes.len() < 2 => self.start(node),
            Happens::Starts => {}
            Happens::Crashes { process } => {
                let processes = &mut self.hosts[node].processes;
                if process < processes.len() {
                    processes.remove(process);
                }
            }
            Happens::Boots { surprise } => {
                if surprise || self.hosts[node].pending {
                    self.boots(node);
                }
            }
            Happens::Kubelet => self.kubelet(node),
            Happens::Touches => self.touch(node),
            Happens::Removes => self.hosts[node].file = None,
            Happens::Requests => self.request(node),
            Happens::Holds => self.ask_for_hold(node),
            Happens::Withdraws => self.withdraw_hold(node),
            Happens::Cordons => self.cordon(node),
            Happens::Uncordons => self.uncordon(node),
            Happens::PodGoes => self.hosts[node].pods = 0,
            Happens::PodComes => self.hosts[node].pods = 1,
            Happens::Refuses => self.hosts[node].refused = true,
            Happens::Passes { seconds } => self.mono += Duration::from_secs(seconds),
            Happens::ClockSet { ahead } => self.hosts[node].wall_ahead = Some(ahead),
            Happens::Arrives { which } => self.arrive(which),
            Happens::Unlocks { anew } => {
                self.forced_unlock = true;
                self.unlock(node);
                if anew {
                    self.server.make_leases_anew();
                }
            }
        }
        self.check_budget();
    }
}

fn on_timeout() -> impl Strategy<Value = DrainTimeoutAction> {
    prop_oneof![
        Just(DrainTimeoutAction::Abort),
        Just(DrainTimeoutAction::Delete),
        Just(DrainTimeoutAction::Force)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::model_depth::model_cases(400)))]

    #[test]
    fn in_any_order_of_crashes_and_messages_the_promises_hold_and_a_quiet_world_comes_to_its_end(
        nodes in 1_usize..5,
        max in 1_u32..3,
        tmpfs: bool,
        on in on_timeout(),
        what in prop::collection::vec(happens(), 1..160),
    ) {
        let mut world = World::new(nodes, max, tmpfs, on);
        for (node, what) in &what {
            world.happens(*node, what);
        }
        world.comes_to_its_end();
    }

    #[test]
    fn a_lock_taken_away_by_a_person_hurts_no_other_promise(
        nodes in 1_usize..4,
        anew: bool,
        before in prop::collection::vec(happens(), 1..80),
        after in prop::collection::vec(happens(), 1..80),
    ) {
        let mut world = World::new(nodes, 1, true, DrainTimeoutAction::Abort);
        for (node, what) in before.iter().chain([&(0, Happens::Unlocks { anew })]).chain(&after) {
            world.happens(*node, what);
        }
        world.comes_to_its_end();
    }
}
