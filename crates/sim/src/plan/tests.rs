//! What a plan promises.

use std::time::Duration;

use dogwatch_core::limit::Limit;

use super::{Plan, run};
use crate::seed::Seed;

fn plan(nodes: u32, max_unavailable: Limit) -> Plan {
    Plan {
        nodes,
        max_unavailable,
        ..Plan::default()
    }
}

#[test]
fn every_node_reboots_and_never_more_are_out_than_the_budget_allows() {
    let outcome = run(&plan(60, Limit::Percent(10)));
    assert_eq!(outcome.rebooted, 63);
    assert_eq!(outcome.budget, 6);
    assert!(outcome.most_out <= 6, "{outcome:#?}");
    assert_eq!(outcome.most_control_plane_out, 1);
    assert_eq!(outcome.handovers, 63);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let plan = plan(20, Limit::Count(2));
    let text = |plan: &Plan| format!("{:?}", run(plan));
    assert_eq!(text(&plan), text(&plan));
    let other = Plan {
        seed: Seed(2),
        ..plan.clone()
    };
    assert_ne!(text(&plan), text(&other));
}

#[test]
fn nobody_who_came_later_is_served_much_earlier() {
    let outcome = run(&plan(40, Limit::Count(1)));
    assert!(
        outcome.worst_inversion < Duration::from_secs(2),
        "{outcome:#?}"
    );
}

#[test]
fn a_rollout_takes_as_long_as_its_parts() {
    let exact = Plan {
        spread_percent: 0,
        control_plane: 0,
        arrival: Duration::ZERO,
        ..plan(4, Limit::Count(1))
    };
    let outcome = run(&exact);
    let parts = exact.drain_time + exact.reboot_time + exact.settle;
    let overhead = outcome
        .took
        .checked_sub(parts * 4)
        .expect("no part is skipped");
    assert!(overhead < Duration::from_secs(4), "{overhead:?}");
}
