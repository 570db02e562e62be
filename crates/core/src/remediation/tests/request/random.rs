//! Requests with random faults: leaders that crash, BMCs that do nothing, report nothing or do not
//! answer, kubelets that come and go, health checks that ask again, give up and withdraw, people
//! with keys of their own.
//!
//! The town itself checks that no Node is released while its machine runs, and that our taint is
//! not removed before it runs. In the end nothing of ours is left, and each attempt has cut the
//! power at most once.

use proptest::prelude::{Just, ProptestConfig, any, prop_assert, prop_oneof, proptest};
use proptest::strategy::Strategy as _;

use super::super::super::*;
use super::super::town::Town;
use super::desk::{DELETE, TAINT};
use crate::power::FaultClass;
use crate::power::tests::world::{Says, Takes};

const OTHERS: &str = "reboot.metal3.io/somebody";

#[derive(Debug, Clone)]
enum Trouble {
    Ask {
        again: bool,
        taints: bool,
        retry_limit: u32,
    },
    Delete {
        again: bool,
    },
    GiveUp,
    Mark,
    Dies {
        step: u32,
    },
    Kubelet {
        is_connected: bool,
    },
    Bmc(Takes, Says),
    Others {
        hold: bool,
    },
    Pods {
        left: bool,
    },
    Pass {
        seconds: u64,
    },
}

fn trouble() -> impl proptest::strategy::Strategy<Value = Trouble> {
    let bmc = prop_oneof![
        Just(Trouble::Bmc(Takes::Runs(300), Says::Truth)),
        Just(Trouble::Bmc(Takes::Ignores, Says::Truth)),
        Just(Trouble::Bmc(
            Takes::Fails(FaultClass::Unreachable),
            Says::Fails(FaultClass::Unreachable)
        )),
        Just(Trouble::Bmc(
            Takes::Silent {
                after: 10_000,
                runs: Some(15_000)
            },
            Says::Truth
        )),
        Just(Trouble::Bmc(Takes::Runs(300), Says::Slow(4_000))),
    ];
    let ask = (any::<bool>(), any::<bool>(), 0_u32..2);
    prop_oneof![
        4 => ask.prop_map(|(again, taints, retry_limit)| Trouble::Ask { again, taints, retry_limit }),
        1 => any::<bool>().prop_map(|again| Trouble::Delete { again }),
        1 => Just(Trouble::GiveUp),
        1 => Just(Trouble::Mark),
        2 => (1_u32..12).prop_map(|step| Trouble::Dies { step }),
        3 => any::<bool>().prop_map(|is_connected| Trouble::Kubelet { is_connected }),
        2 => bmc,
        1 => any::<bool>().prop_map(|hold| Trouble::Others { hold }),
        1 => any::<bool>().prop_map(|left| Trouble::Pods { left }),
        6 => (1_u64..90).prop_map(|seconds| Trouble::Pass { seconds }),
    ]
}

fn name(again: bool) -> &'static str {
    if again { "again" } else { "a" }
}

fn befalls(town: &mut Town, trouble: &Trouble) {
    match *trouble {
        Trouble::Ask {
            again,
            taints,
            retry_limit,
        } if town.request(name(again)).is_none() => {
            let strategy = RemediationStrategy {
                retry_limit,
                timeout: std::time::Duration::from_mins(3),
                ..if taints { TAINT } else { DELETE }
            };
            town.ask_as(name(again), "a", strategy);
        }
        Trouble::Delete { again } if town.request(name(again)).is_some() => {
            town.delete(name(again));
        }
        Trouble::GiveUp if town.request("a").is_some() => {
            town.change("a", |it| it.timed_out = true);
        }
        Trouble::Ask { .. } | Trouble::Delete { .. } | Trouble::GiveUp => {}
        Trouble::Mark => town.mark("a"),
        Trouble::Dies { step } => town.dies_at = Some(town.steps + step),
        Trouble::Kubelet { is_connected } => town.site("a").is_connected = is_connected,
        Trouble::Bmc(takes, says) => {
            let bmc = &mut town.site("a").power.bmcs[0];
            bmc.default_takes = takes;
            bmc.default_says = says;
        }
        Trouble::Others { hold: true } => town.site("a").power.annotate(OTHERS, ""),
        Trouble::Others { hold: false } => town.site("a").power.remove(OTHERS),
        Trouble::Pods { left } => {
            town.desk.left = left
                .then(|| "default/web-0".to_owned())
                .into_iter()
                .collect();
        }
        Trouble::Pass { seconds } => town.run(seconds),
    }
}

/// All faults end, and the requests are withdrawn.
fn heals(town: &mut Town) {
    let bmc = &mut town.site("a").power.bmcs[0];
    bmc.default_takes = Takes::Runs(300);
    bmc.default_says = Says::Truth;
    town.site("a").is_connected = true;
    town.site("a").power.remove(OTHERS);
    town.desk.left.clear();
    town.dies_at = None;
    for again in [false, true] {
        if town.request(name(again)).is_some_and(|it| !it.deleting) {
            town.delete(name(again));
        }
    }
}

fn is_at_rest(town: &Town) -> bool {
    let annotations = &town.host("a").annotations;
    let node = town.node("a").map(|node| &node.seen);
    town.desk.requests.is_empty()
        && annotations
            .keys()
            .all(|it| !it.starts_with("reboot.metal3.io"))
        && !town.keeps("a")
        && town.is_on("a")
        && town.leases.is_empty()
        && node.is_some_and(|node| node.ready && !node.being_fenced && !node.out_of_service)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::model_depth::model_cases(24), max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_no_node_is_released_whose_machine_runs_and_nothing_is_left(
        troubles in proptest::collection::vec(trouble(), 4..24)
    ) {
        let mut town = Town::new(&["a"]);
        for trouble in &troubles {
            befalls(&mut town, trouble);
        }
        heals(&mut town);
        for _ in 0..4 {
            town.run(300);
            if is_at_rest(&town) {
                break;
            }
        }
        let annotations = &town.host("a").annotations;
        let node = town.node("a").map(|node| &node.seen);
        prop_assert!(is_at_rest(&town), "{:?}\n{annotations:?}\n{node:?}\n{:?}\n{:?}\n{:?}",
            town.desk.requests, town.leases, town.written, town.reasons);
        let keys = town.written.iter().filter(|it| *it == "AddKey").count();
        let others = troubles.iter().filter(|it| matches!(it, Trouble::Others { hold: true })).count();
        prop_assert!(town.cuts("a") <= keys + others, "{:?}", town.written);
    }
}
