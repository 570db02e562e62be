//! Compares the calendar with an oracle that checks each minute.

use std::collections::BTreeSet;

use jiff::civil::{DateTime, Time};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, ToSpan};
use proptest::prelude::*;

use super::*;

const NAMES: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MINUTES_A_DAY: usize = 24 * 60;
/// The oracle's calendar: days before and after the moment.
const BEFORE: i64 = 3;
const AFTER: usize = 34;

/// Each zone with days near which its clock is set.
const ZONES: [(&str, &[&str]); 7] = [
    ("UTC", &["2026-01-01"]),
    ("Europe/Berlin", &["2026-03-29", "2026-10-25", "2026-06-01"]),
    (
        "America/New_York",
        &["2026-03-08", "2026-11-01", "2028-02-29"],
    ),
    ("Australia/Lord_Howe", &["2026-04-05", "2026-10-04"]),
    ("America/St_Johns", &["2006-10-29", "2007-03-11"]),
    ("Pacific/Apia", &["2011-12-30"]),
    ("Asia/Beirut", &["2026-03-29", "2026-10-25"]),
];

#[derive(Debug, Clone)]
struct Plan {
    days: [bool; 7],
    start: (i8, i8),
    end: (i8, i8),
    zone: usize,
    /// Days after the moment.
    excluded: Vec<i64>,
}

impl Plan {
    fn spec(&self, around: DateTime) -> WindowSpec {
        let days = NAMES.iter().zip(self.days).filter(|(_, chosen)| *chosen);
        let dates = self
            .excluded
            .iter()
            .map(|days| (around + days.days()).date());
        let time = |(hour, minute)| Some(format!("{hour:02}:{minute:02}"));
        WindowSpec {
            days: Some(days.map(|(name, _)| (*name).to_owned()).collect()),
            start: time(self.start),
            end: time(self.end),
            time_zone: Some(ZONES[self.zone].0.into()),
            excluded_dates: dates.map(|date| date.to_string()).collect(),
            rrule: None,
        }
    }

    /// Sets the minutes at which this window is open.
    fn mark(&self, around: DateTime, first: Timestamp, open: &mut [bool]) {
        let zone = zone(self.zone);
        let shown: Vec<DateTime> = (0..open.len())
            .scan(DateTime::MIN, |latest, minute| {
                *latest = zone.to_datetime(moment(first, minute)).max(*latest);
                Some(*latest)
            })
            .collect();
        let excluded: BTreeSet<_> = self
            .excluded
            .iter()
            .map(|d| (around + d.days()).date())
            .collect();
        let reached = |clock: DateTime| shown.partition_point(|latest| *latest < clock);
        let time = |(hour, minute)| Time::constant(hour, minute, 0, 0);
        let (start, end) = (time(self.start), time(self.end));
        let mut day = shown[0].date() + 1.day();
        while day < shown[shown.len() - 1].date() {
            let index = usize::try_from(day.weekday().to_monday_zero_offset()).unwrap();
            if self.days[index] && !excluded.contains(&day) {
                let last = if end > start { day } else { day + 1.day() };
                let (from, to) = (
                    reached(day.to_datetime(start)),
                    reached(last.to_datetime(end)),
                );
                open[from..to].fill(true);
            }
            day += 1.day();
        }
    }
}

fn zone(index: usize) -> TimeZone {
    TimeZoneDatabase::bundled().get(ZONES[index].0).unwrap()
}

fn moment(first: Timestamp, minute: usize) -> Timestamp {
    first + SignedDuration::from_mins(i64::try_from(minute).unwrap())
}

/// For how many minutes from `minute` on it is open without a break.
fn run(open: &[bool], minute: usize) -> usize {
    open[minute..].iter().take_while(|open| **open).count()
}

/// The first minute after `minute` at which a run begins that is long enough.
fn next(open: &[bool], minute: usize, needs: usize) -> Option<usize> {
    (minute + 1..open.len())
        .find(|next| open[*next] && !open[next - 1] && run(open, *next) >= needs)
}

fn a_plan() -> impl Strategy<Value = Plan> {
    let minute = prop_oneof![Just(0_i8), Just(30), 0..60_i8];
    let time = (0..24_i8, minute);
    let excluded = prop::collection::vec(-2..9_i64, 0..3);
    let days = any::<[bool; 7]>().prop_filter("a day", |days| days.contains(&true));
    (days, time.clone(), time, 0..ZONES.len(), excluded).prop_map(
        |(days, start, end, zone, excluded)| Plan {
            days,
            start,
            end,
            zone,
            excluded,
        },
    )
}

fn a_moment() -> impl Strategy<Value = Timestamp> {
    let near: Vec<&str> = ZONES
        .iter()
        .flat_map(|(_, near)| near.iter().copied())
        .collect();
    let minutes = -2880..1440_i64;
    (prop::sample::select(near), minutes).prop_map(|(day, minutes)| {
        at(&format!("{day}T12:00:00Z")) + SignedDuration::from_mins(minutes)
    })
}

/// Compares the result with the one that follows from the minutes.
fn agrees(got: WindowOpening, open: &[bool], now: usize, needs: usize, first: Timestamp) -> bool {
    let ends = now + run(open, now);
    let sure = |opens: Option<Timestamp>| {
        let shown = next(open, ends, needs).map(|minute| moment(first, minute));
        let day = |days| moment(first, now + days * MINUTES_A_DAY);
        match (opens, shown) {
            // The search goes 21 days ahead for weekly windows; the oracle's calendar ends a while
            // later.
            (None, Some(shown)) => shown > day(21),
            (Some(opens), shown) => Some(opens) == shown || opens > day(25),
            (None, None) => true,
        }
    };
    match got {
        WindowOpening::Open { until } if ends - now > 8 * MINUTES_A_DAY => {
            until <= moment(first, ends) && until >= moment(first, now + 8 * MINUTES_A_DAY)
        }
        WindowOpening::Open { until } => {
            open[now] && ends - now >= needs && until == moment(first, ends)
        }
        WindowOpening::TooShort { ends: said, opens } => {
            open[now] && ends - now < needs && said == moment(first, ends) && sure(opens)
        }
        WindowOpening::Shut { opens } => !open[now] && sure(opens),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_answer_is_what_the_minutes_show(
        plans in prop::collection::vec(a_plan(), 1..4),
        at in a_moment(),
        needs in prop_oneof![Just(0_usize), 0..400_usize, 0..4000_usize],
    ) {
        let around = zone(0).to_datetime(at);
        let now = usize::try_from(BEFORE).unwrap() * MINUTES_A_DAY;
        let first = at - SignedDuration::from_hours(24 * BEFORE);
        let mut open = vec![false; now + AFTER * MINUTES_A_DAY];
        for plan in &plans {
            plan.mark(around, first, &mut open);
        }
        let windows: Vec<MaintenanceWindow> = plans.iter().map(|p| MaintenanceWindow::new(&p.spec(around)).unwrap()).collect();
        let needed = Duration::from_mins(u64::try_from(needs).unwrap());
        let got = window_opening(&windows, at, needed);
        prop_assert!(agrees(got, &open, now, needs, first), "{got:?} at {at}");
    }
}
