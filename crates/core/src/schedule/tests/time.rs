//! Which times a schedule means.

use super::kit::*;
use crate::schedule::*;

fn next(plan: SchedulePlan, now_: &str) -> Option<String> {
    let (seen, _) = seen(plan).settled(now(now_));
    seen.schedule.status.next.map(|next| next.to_string())
}

fn zoned(at: &str, zone: &str) -> Result<SchedulePlan, String> {
    ScheduleTiming::new(Some(at), None, Some(zone))
        .map(plan)
        .map_err(|bad| bad.to_string())
}

#[test]
fn an_appointed_time_is_a_moment_or_a_time_on_a_clock() {
    let table = [
        ("2026-12-24T03:00:00Z", None, "2026-12-24T03:00:00Z"),
        ("2026-12-24T03:00:00+01:00", None, "2026-12-24T02:00:00Z"),
        ("2026-12-24T03:00", None, "2026-12-24T03:00:00Z"),
        (
            "2026-12-24T03:00:30",
            Some("Europe/Berlin"),
            "2026-12-24T02:00:30Z",
        ),
        // A skipped local time is the moment of the jump; one that occurs twice is the first.
        (
            "2026-03-29T02:30",
            Some("Europe/Berlin"),
            "2026-03-29T01:00:00Z",
        ),
        (
            "2026-10-25T02:30",
            Some("Europe/Berlin"),
            "2026-10-25T00:30:00Z",
        ),
        (
            "2028-02-29T12:00",
            Some("Pacific/Apia"),
            "2028-02-28T23:00:00Z",
        ),
    ];
    for (text, zone, expected) in table {
        let (when, _) = ScheduleTiming::new(Some(text), None, zone).unwrap();
        assert_eq!(when, ScheduleTiming::At(at(expected)), "{text} {zone:?}");
    }
}

#[test]
fn what_is_no_time_is_refused_with_the_field_and_what_to_write() {
    for text in [
        "",
        "tomorrow",
        "2026-12-24",
        "2026-12-24 03:00",
        "2026-02-29T03:00",
        "2026-12-24T25:00",
    ] {
        let bad = ScheduleTiming::new(Some(text), None, None);
        if text == "2026-12-24 03:00" {
            // A space instead of the T, as RFC 3339 allows.
            assert!(bad.is_ok());
            continue;
        }
        let said = bad.unwrap_err().to_string();
        assert!(
            said.starts_with("spec.at:") && said.contains("write one like"),
            "{said}"
        );
    }
    let both = zoned("2026-12-24T03:00:00Z", "Europe/Berlin").unwrap_err();
    assert!(
        both.contains("spec.timeZone") && both.contains("offset"),
        "{both}"
    );
    let mars = zoned("2026-12-24T03:00", "Mars/Olympus").unwrap_err();
    assert!(
        mars.starts_with("spec.timeZone: \"Mars/Olympus\""),
        "{mars}"
    );
    let daily = recurrence("03:00");
    assert_eq!(
        ScheduleTiming::new(None, None, None),
        Err(TimingError::Neither)
    );
    assert_eq!(
        ScheduleTiming::new(Some("x"), Some(&daily), None),
        Err(TimingError::Both)
    );
    let rule = ScheduleRecurrence {
        rrule: Some("FREQ=HOURLY".into()),
        ..daily
    };
    let said = ScheduleTiming::new(None, Some(&rule), None)
        .unwrap_err()
        .to_string();
    assert!(
        said.starts_with("spec.recurrence.rrule: FREQ=HOURLY"),
        "{said}"
    );
}

#[test]
fn a_recurrence_goes_by_its_zones_clock_over_every_change_of_it() {
    let berlin = |start| {
        plan(ScheduleTiming::new(None, Some(&recurrence(start)), Some("Europe/Berlin")).unwrap())
    };
    let table = [
        ("03:00", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"),
        ("02:30", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"),
        ("02:30", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"),
        // Only once in that night.
        ("02:30", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"),
    ];
    for (start, now_, expected) in table {
        let mut seen = seen(berlin(start));
        seen.schedule.created = at(now_);
        let (seen, _) = seen.settled(now(now_));
        assert_eq!(
            seen.schedule.status.next,
            Some(at(expected)),
            "{start} {now_}"
        );
    }
}

#[test]
fn a_rule_finds_its_day_however_far_it_is_and_says_when_there_is_none() {
    let rule = |rrule: &str| {
        let recurrence = ScheduleRecurrence {
            rrule: Some(rrule.into()),
            ..recurrence("03:00")
        };
        plan(ScheduleTiming::new(None, Some(&recurrence), None).unwrap())
    };
    let leap = "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29";
    assert_eq!(
        next(rule(leap), "2026-01-02T00:00:00Z").unwrap(),
        "2028-02-29T03:00:00Z"
    );
    let mut far = seen(rule(leap));
    // 2100 is not a leap year.
    far.schedule.created = at("2096-03-01T00:00:00Z");
    let (far, _) = far.settled(now("2096-03-01T00:00:00Z"));
    assert_eq!(far.schedule.status.next, Some(at("2104-02-29T03:00:00Z")));
    let tuesday = next(rule("FREQ=MONTHLY;BYDAY=2TU"), "2026-01-02T00:00:00Z");
    assert_eq!(tuesday.unwrap(), "2026-01-13T03:00:00Z");
    let ended = seen(rule("DTSTART:20250101\nFREQ=DAILY;COUNT=3"));
    let (ended, decision) = ended.settled(now("2026-01-02T00:00:00Z"));
    assert_eq!(ended.schedule.status.next, None);
    assert_eq!(decision.cause.reason, ScheduleReason::Completed);
    assert_eq!(decision.wake, None);
}

#[test]
fn the_next_time_is_said_on_the_clock_it_was_written_for() {
    let berlin = zoned("2026-12-24T03:00", "Europe/Berlin").unwrap();
    let decision = decide(&seen(berlin), now("2026-12-01T00:00:00Z"));
    assert_eq!(
        decision.cause.message,
        "the next occurrence is at 2026-12-24T03:00:00+01:00[Europe/Berlin]"
    );
}

#[test]
fn a_clock_that_is_set_is_noticed_within_a_minute() {
    let decision = decide(
        &seen(once("2026-12-24T03:00:00Z")),
        now("2026-12-01T00:00:00Z"),
    );
    let before = now("2026-12-01T00:00:00Z").mono;
    assert_eq!(
        decision.wake.unwrap().at.saturating_sub(before).as_secs(),
        60
    );
    let soon = decide(
        &seen(once("2026-12-24T03:00:00Z")),
        now("2026-12-24T02:59:50Z"),
    );
    let before = now("2026-12-24T02:59:50Z").mono;
    assert_eq!(soon.wake.unwrap().at.saturating_sub(before).as_secs(), 10);
}
