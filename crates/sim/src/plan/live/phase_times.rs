//! How long the phases of reboots took, by the records of the fleet.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::explain::FleetSnapshot;
use dogwatch_core::reboot::{LastReboot, RebootOutcome, RebootPhase};
use dogwatch_kubesim::seed::RandomStream;

use crate::plan::RolloutPlan;

/// At most this many records count, the newest: an old one tells of another fleet.
const MAX_RECORDS: usize = 200;
/// A group with fewer records is judged by those of the whole fleet.
const MIN_RECORDS_OF_GROUP: usize = 3;
/// With fewer records, each duration varies by up to 20 %.
const ENOUGH_RECORDS: usize = 10;
const VARIATION: f64 = 0.2;
/// A phase that has lasted longer than every recorded one goes on for this share of its time.
const OVERDUE_SHARE: f64 = 0.5;

/// The durations of one reboot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RebootTimes {
    pub(super) drain: Duration,
    pub(super) reboot: Duration,
    pub(super) back: Duration,
}

impl RebootTimes {
    /// The defaults of `dogwatch simulate`.
    pub(super) fn assumed_times() -> Self {
        let plan = RolloutPlan::default();
        Self {
            drain: plan.drain_time,
            reboot: plan.reboot_time,
            back: plan.settle,
        }
    }

    pub(super) fn total_time(&self) -> Duration {
        self.drain + self.reboot + self.back
    }

    fn of_record(last: &LastReboot) -> Option<Self> {
        let took = last.phase_durations();
        let of = |phase| took.get(&phase).copied();
        let is_whole = last.outcome == RebootOutcome::Rebooted && !last.soft;
        is_whole.then_some(())?;
        Some(Self {
            drain: of(RebootPhase::Draining)?,
            reboot: of(RebootPhase::Rebooting)?,
            back: of(RebootPhase::Returning).unwrap_or_default(),
        })
    }
}

/// Recorded durations, of each group and of the fleet.
pub(super) struct PhaseTimes {
    fleet: Vec<RebootTimes>,
    groups: BTreeMap<String, Vec<RebootTimes>>,
}

impl PhaseTimes {
    pub(super) fn of_fleet(fleet: &FleetSnapshot) -> Self {
        let ended = fleet.iter_nodes().filter_map(|node| {
            let last = node.last_reboot.get()?;
            Some((last.finished, node, RebootTimes::of_record(last)?))
        });
        let mut ended: Vec<_> = ended.collect();
        ended.sort_by(|(one, node, _), (other, next, _)| {
            (other, &node.name).cmp(&(one, &next.name))
        });
        let mut groups: BTreeMap<String, Vec<RebootTimes>> = BTreeMap::new();
        for (_, node, times) in &ended {
            let group = groups
                .entry(fleet.group_of_node(node).to_string())
                .or_default();
            if group.len() < MAX_RECORDS {
                group.push(*times);
            }
        }
        let all = ended.iter().map(|(_, _, times)| *times);
        Self {
            fleet: all.take(MAX_RECORDS).collect(),
            groups,
        }
    }

    /// Whether nothing is recorded, so that every duration is assumed.
    pub(super) fn is_empty(&self) -> bool {
        self.fleet.is_empty()
    }

    pub(super) fn for_group(&self, group: &str) -> TimeSamples<'_> {
        let own = self.groups.get(group);
        let own = own.filter(|own| own.len() >= MIN_RECORDS_OF_GROUP);
        TimeSamples(own.unwrap_or(&self.fleet))
    }
}

/// The records that a group's durations are drawn from.
#[derive(Clone, Copy)]
pub(super) struct TimeSamples<'a>(&'a [RebootTimes]);

impl TimeSamples<'_> {
    /// The durations of a reboot that begins.
    pub(super) fn draw_reboot(self, stream: &mut RandomStream) -> RebootTimes {
        let drawn = self.draw_record(stream);
        let factor = self.draw_variation(stream);
        RebootTimes {
            drain: drawn.drain.mul_f64(factor),
            reboot: drawn.reboot.mul_f64(factor),
            back: drawn.back.mul_f64(factor),
        }
    }

    /// How long a reboot still takes whose phase has lasted for `elapsed`.
    pub(super) fn draw_rest(
        self,
        phase: RebootPhase,
        elapsed: Duration,
        stream: &mut RandomStream,
    ) -> Duration {
        let later = self.draw_reboot(stream);
        match phase {
            RebootPhase::Waiting => later.total_time(),
            RebootPhase::Draining => {
                let rest = self.draw_phase_rest(|times| times.drain, elapsed, stream);
                rest + later.reboot + later.back
            }
            RebootPhase::Rebooting => {
                let rest = self.draw_phase_rest(|times| times.reboot, elapsed, stream);
                rest + later.back
            }
            RebootPhase::Returning | RebootPhase::Holding => {
                self.draw_phase_rest(|times| times.back, elapsed, stream)
            }
        }
    }

    /// Draws from the records whose phase lasted longer than `elapsed`.
    fn draw_phase_rest(
        self,
        phase: impl Fn(&RebootTimes) -> Duration,
        elapsed: Duration,
        stream: &mut RandomStream,
    ) -> Duration {
        let assumed = [RebootTimes::assumed_times()];
        let records: &[RebootTimes] = if self.0.is_empty() { &assumed } else { self.0 };
        let factor = self.draw_variation(stream);
        let all = records.iter().map(|times| phase(times).mul_f64(factor));
        let longer: Vec<Duration> = all.filter(|time| *time > elapsed).collect();
        let drawn = longer.get(draw_index(longer.len(), stream));
        drawn.map_or_else(
            || elapsed.mul_f64(OVERDUE_SHARE),
            |time| time.saturating_sub(elapsed),
        )
    }

    fn draw_record(self, stream: &mut RandomStream) -> RebootTimes {
        let drawn = self.0.get(draw_index(self.0.len(), stream)).copied();
        drawn.unwrap_or_else(RebootTimes::assumed_times)
    }

    fn draw_variation(self, stream: &mut RandomStream) -> f64 {
        if self.0.len() >= ENOUGH_RECORDS {
            return 1.0;
        }
        1.0 - VARIATION + 2.0 * VARIATION * stream.next_fraction()
    }
}

fn draw_index(count: usize, stream: &mut RandomStream) -> usize {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    usize::try_from(stream.next_below(count)).unwrap_or_default()
}
