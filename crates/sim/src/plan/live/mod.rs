//! Estimates when the reboots of a real cluster will start and finish.
//!
//! **For:** [`LivePlanner`]: `dogwatch status`, the feed of `top` and of the dashboard, and the
//! controller.
//! **May touch:** nothing; the snapshot and the time are passed in.
//! **Promises:** who waits, in which order, how many may be out, windows, pauses and the shape of a
//! rollout come from the functions that decide about them; durations come from the fleet's own
//! records; what is not known is said; the same snapshot and time give the same estimate.
//!
//! [`super::run_plan`] lets every node decide for itself, which takes seconds for thousands of
//! nodes. An estimate needs dozens of runs every half a minute, so that this planner has only the
//! rules in common with it: a place in the budget frees, and the next in line that may begin takes
//! it. Tests compare the two.

mod estimate;
mod group_calendar;
mod group_run;
mod group_shape;
mod left_out;
mod live_group;
mod phase_times;
mod queue;
#[cfg(test)]
mod tests;

use dogwatch_core::Now;
use dogwatch_core::explain::FleetSnapshot;
use dogwatch_core::report::{
    EstimateRollout, FleetEstimate, FleetView, FleetViewInput, build_fleet_view,
};
use dogwatch_kubesim::seed::SimulationSeed;

use self::estimate::RunTimes;
use self::group_run::run_group;
use self::live_group::LiveGroup;
use self::phase_times::PhaseTimes;

/// The planner of estimates.
#[derive(Debug, Clone, Copy, Default)]
pub struct LivePlanner;

/// The most runs of one estimate.
const MAX_RUNS: usize = 40;
/// The fewest: fewer give no ninetieth percentile.
const MIN_RUNS: usize = 10;
/// About this many reboots are simulated for one estimate, whatever the size of the fleet.
const REBOOTS_PER_ESTIMATE: usize = 100_000;

impl EstimateRollout for LivePlanner {
    fn estimate_rollout(&self, fleet: &FleetSnapshot, now: Now) -> Option<FleetEstimate> {
        let view = build_fleet_view(FleetViewInput::of_fleet(fleet), now);
        estimate_view(fleet, &view, now)
    }
}

/// `None`: nothing waits, and nothing is out.
fn estimate_view(fleet: &FleetSnapshot, view: &FleetView, now: Now) -> Option<FleetEstimate> {
    let reboots = view.out.len() + view.waiting.len();
    if reboots == 0 {
        return None;
    }
    let times = PhaseTimes::of_fleet(fleet);
    let groups = LiveGroup::list_groups(fleet, view, now);
    let runs = (REBOOTS_PER_ESTIMATE / reboots).clamp(MIN_RUNS, MAX_RUNS);
    let mut all = RunTimes::default();
    for run in 0..runs {
        let seed = SimulationSeed(u64::try_from(run).unwrap_or(u64::MAX));
        for group in &groups {
            let mut stream = seed.stream_for_actor(&group.name);
            let times = times.for_group(&group.name);
            all.add_group_run(run_group(group, times, &mut stream, now));
        }
        all.end_run();
    }
    let left_out = left_out::describe_left_out(fleet, view, &times);
    Some(all.into_estimate(view, &groups, left_out, now))
}
