//! The rows of the timeline, and the scale of its axis.

use std::collections::BTreeMap;

use dogwatch_core::report::{
    FleetView, GroupView, NodeEstimate, OutNodeRow, PhaseBar, RecentOutcome, WaitingNodeRow,
};
use jiff::{SignedDuration, Timestamp};

/// Ended reboots that a group shows above those under way.
const ENDED_ROWS_OF_GROUP: usize = 3;

#[derive(Debug, Clone, Copy)]
pub enum TimelineRow<'a> {
    Group(&'a GroupView),
    Ended(&'a RecentOutcome),
    Out(&'a OutNodeRow, Option<&'a NodeEstimate>),
    Waiting(&'a WaitingNodeRow, Option<&'a NodeEstimate>),
}

impl<'a> TimelineRow<'a> {
    pub fn node_name(self) -> Option<&'a str> {
        match self {
            Self::Group(_) => None,
            Self::Ended(ended) => Some(&ended.node),
            Self::Out(out, _) => Some(&out.name),
            Self::Waiting(waiting, _) => Some(&waiting.name),
        }
    }

    pub fn group_name(self) -> &'a str {
        match self {
            Self::Group(group) => &group.name,
            Self::Ended(ended) => &ended.group,
            Self::Out(out, _) => &out.group,
            Self::Waiting(waiting, _) => &waiting.group,
        }
    }

    /// The phases so far.
    pub fn phase_bars(self) -> &'a [PhaseBar] {
        match self {
            Self::Group(_) | Self::Waiting(..) => &[],
            Self::Ended(ended) => &ended.bars,
            Self::Out(out, _) => &out.bars,
        }
    }

    pub fn node_estimate(self) -> Option<&'a NodeEstimate> {
        match self {
            Self::Group(_) | Self::Ended(_) => None,
            Self::Out(_, estimate) | Self::Waiting(_, estimate) => estimate,
        }
    }
}

/// For each group that has any: some reboots that have ended, the oldest first; those under way;
/// and those that wait, in order.
pub fn timeline_rows<'a>(view: &'a FleetView) -> Vec<TimelineRow<'a>> {
    let mut of_groups: BTreeMap<&str, Vec<TimelineRow<'a>>> = BTreeMap::new();
    let estimate = |name: &str| view.estimate.as_ref()?.nodes.get(name);
    for ended in &view.recent {
        let rows = of_groups.entry(&ended.group).or_default();
        if rows.len() < ENDED_ROWS_OF_GROUP {
            rows.insert(0, TimelineRow::Ended(ended));
        }
    }
    for out in &view.out {
        let row = TimelineRow::Out(out, estimate(&out.name));
        of_groups.entry(&out.group).or_default().push(row);
    }
    for waiting in &view.waiting {
        let row = TimelineRow::Waiting(waiting, estimate(&waiting.name));
        of_groups.entry(&waiting.group).or_default().push(row);
    }
    let with_title = |group: &'a GroupView| {
        let rows = of_groups.remove(group.name.as_str()).unwrap_or_default();
        let title = (!rows.is_empty()).then_some(TimelineRow::Group(group));
        title.into_iter().chain(rows)
    };
    view.groups.iter().flat_map(with_title).collect()
}

/// The spans that `+` and `-` go through, in seconds.
const SPANS: [i64; 12] = [
    60,
    3 * 60,
    10 * 60,
    30 * 60,
    3_600,
    3 * 3_600,
    6 * 3_600,
    12 * 3_600,
    24 * 3_600,
    2 * 24 * 3_600,
    4 * 24 * 3_600,
    8 * 24 * 3_600,
];

/// The part of time that the axis shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeAxis {
    pub from: Timestamp,
    pub until: Timestamp,
}

impl TimeAxis {
    /// A third of the axis is behind `now`.
    pub fn around_now(now: Timestamp, seconds: i64) -> Self {
        let shift = |seconds| {
            now.checked_add(SignedDuration::from_secs(seconds))
                .unwrap_or(now)
        };
        let behind = seconds / 3;
        Self {
            from: shift(-behind),
            until: shift(seconds - behind),
        }
    }

    /// The narrowest axis that shows the reboots under way from their start, and the end of all.
    pub fn fit_view(view: &FleetView, now: Timestamp, zoom: i32) -> Self {
        let starts = view
            .out
            .iter()
            .filter_map(|out| Some(out.bars.first()?.from));
        let ends = view
            .estimate
            .iter()
            .filter_map(|estimate| estimate.latest_finish.or(estimate.finish));
        let windows = view.groups.iter().filter(|group| group.waiting > 0);
        let windows = windows.filter_map(|group| {
            let next = group.windows.iter().find(|window| window.until > now)?;
            Some(next.from.max(now))
        });
        let behind = starts.min().map_or(0, |start| seconds_between(start, now));
        let ahead = ends.chain(windows).max();
        let ahead = ahead.map_or(0, |end| seconds_between(now, end));
        let wanted = (behind * 3).max(ahead + ahead / 2);
        let fits = SPANS.iter().position(|span| *span >= wanted);
        let fits = fits.unwrap_or(SPANS.len() - 1);
        let chosen = i32::try_from(fits).unwrap_or(0).saturating_add(zoom);
        let last = i32::try_from(SPANS.len() - 1).unwrap_or(0);
        let chosen = usize::try_from(chosen.clamp(0, last)).unwrap_or(0);
        Self::around_now(now, SPANS[chosen])
    }

    /// The column of `width` columns that shows this time; may lie outside.
    pub fn column_of(self, time: Timestamp, width: u16) -> i64 {
        let whole = seconds_between(self.from, self.until).max(1);
        seconds_between(self.from, time) * i64::from(width) / whole
    }

    pub fn span_seconds(self) -> i64 {
        seconds_between(self.from, self.until)
    }
}

fn seconds_between(from: Timestamp, until: Timestamp) -> i64 {
    until.as_second() - from.as_second()
}
