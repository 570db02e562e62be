//! The estimated times in the status.

use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;
use jiff::Timestamp;

use super::kit::*;
use crate::node_reboot::NodeRebootEstimate;
use crate::report::NodeEstimate;

impl World {
    /// The planner says that the node begins so many minutes after second 0, and is back five
    /// minutes later.
    fn estimate_start(&mut self, minutes: u64) {
        let start = wall(60 * minutes);
        let finish = start + Duration::from_mins(5);
        self.estimate = NodeRebootEstimate::Known(NodeEstimate {
            start,
            latest_start: start,
            finish,
            latest_finish: finish,
        });
    }

    fn times(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let status = &self.reboots["a"].status;
        (status.estimated_start, status.estimated_finish)
    }

    fn version(&self) -> String {
        self.reboots["a"].resource_version.clone()
    }
}

/// A NodeReboot whose node waits for the lock.
fn waiting_world() -> World {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    world.settle();
    world.coordinate();
    world.settle();
    world
}

fn at(minutes: u64) -> Timestamp {
    wall(60 * minutes)
}

#[test]
fn the_times_are_those_of_the_planner_until_the_node_is_back() {
    let mut world = waiting_world();
    assert_eq!(world.times(), (None, None));
    world.estimate_start(20);
    world.settle();
    assert_eq!(world.times(), (Some(at(20)), Some(at(25))));
    for phase in ["Draining", "Rebooting", "Returning"] {
        world.coordinate();
        world.settle();
        assert_eq!(world.reboots["a"].status.phase.as_str(), phase);
        assert_eq!(world.times(), (None, Some(at(25))), "{phase}");
    }
    world.coordinate();
    world.settle();
    assert_eq!(world.succeeded("a"), "True Rebooted");
    assert_eq!(world.times(), (None, None));
}

#[test]
fn a_time_that_moves_by_a_minute_or_by_a_tenth_of_the_rest_is_not_written() {
    let mut world = waiting_world();
    for (standing, next, is_written) in [
        (5, 6, false),
        (5, 7, true),
        (100, 109, false),
        (100, 120, true),
        (100, 80, true),
    ] {
        world.estimate_start(standing);
        world.settle();
        world.estimate = NodeRebootEstimate::Unknown;
        world.settle();
        world.estimate_start(standing);
        world.settle();
        let before = world.version();
        world.estimate_start(next);
        world.settle();
        assert_eq!(world.version() != before, is_written, "{standing}, {next}");
        let shown = if is_written { next } else { standing };
        assert_eq!(world.times(), (Some(at(shown)), Some(at(shown + 5))));
    }
}

#[test]
fn what_is_not_known_is_absent_and_a_new_leader_keeps_the_times_until_it_knows() {
    let mut world = waiting_world();
    world.estimate_start(20);
    world.settle();
    world.estimate = NodeRebootEstimate::NotMade;
    world.settle();
    assert_eq!(world.times(), (Some(at(20)), Some(at(25))));
    world.estimate = NodeRebootEstimate::Unknown;
    world.settle();
    assert_eq!(world.times(), (None, None));
}

#[test]
fn a_hold_has_no_end_and_a_cancelled_request_no_times() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Hold));
    world.settle();
    world.coordinate();
    world.estimate_start(20);
    for _ in 0..2 {
        world.coordinate();
    }
    world.settle();
    assert_eq!(world.reboots["a"].status.phase.as_str(), "Held");
    assert_eq!(world.times(), (None, None));
    let mut world = waiting_world();
    world.estimate_start(20);
    world.settle();
    world.cancel("a");
    world.settle();
    assert_eq!(world.times(), (None, None));
}
