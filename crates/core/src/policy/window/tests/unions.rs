//! Several windows, and how long they are open.

use super::*;

#[test]
fn windows_that_touch_or_overlap_are_one_long_window() {
    let touching = [window("Mon 22:00-24:00 UTC"), window("Tue 00:00-04:00 UTC")];
    let overlapping = [window("Mon 22:00-01:00 UTC"), window("Mon 23:00-04:00 UTC")];
    let zones = [
        window("Mon 22:00-24:00 UTC"),
        window("Tue 01:00-05:00 Europe/Berlin"),
    ];
    for windows in [touching, overlapping, zones] {
        let found = window_opening(&windows, at("2026-01-12T22:00:00Z"), 6 * HOUR);
        assert_eq!(found, open("2026-01-13T04:00:00Z"), "{windows:?}");
        let found = window_opening(&windows, at("2026-01-12T21:00:00Z"), 6 * HOUR);
        assert_eq!(found, shut("2026-01-12T22:00:00Z"), "{windows:?}");
    }
}

#[test]
fn windows_with_a_minute_between_are_two() {
    let windows = [window("Mon 22:00-23:59 UTC"), window("Tue 00:00-04:00 UTC")];
    let found = window_opening(&windows, at("2026-01-12T22:00:00Z"), 2 * HOUR);
    assert_eq!(found, short("2026-01-12T23:59:00Z", "2026-01-13T00:00:00Z"));
}

#[test]
fn a_window_that_is_too_short_says_when_it_ends_and_when_one_is_long_enough() {
    let nights = [
        window("Mon, Wed 22:00-04:00 UTC"),
        window("Tue 22:00-23:00 UTC"),
    ];
    let cases = [
        ("2026-01-12T23:00:00Z", 5, open("2026-01-13T04:00:00Z")),
        (
            "2026-01-12T23:00:01Z",
            5,
            short("2026-01-13T04:00:00Z", "2026-01-14T22:00:00Z"),
        ),
        ("2026-01-13T22:00:00Z", 1, open("2026-01-13T23:00:00Z")),
        (
            "2026-01-13T22:00:00Z",
            2,
            short("2026-01-13T23:00:00Z", "2026-01-14T22:00:00Z"),
        ),
        ("2026-01-13T12:00:00Z", 2, shut("2026-01-14T22:00:00Z")),
        ("2026-01-13T12:00:00Z", 1, shut("2026-01-13T22:00:00Z")),
    ];
    for (moment, hours, expected) in cases {
        let found = window_opening(&nights, at(moment), hours * HOUR);
        assert_eq!(found, expected, "{moment} {hours}h");
    }
}

#[test]
fn what_no_window_is_long_enough_for_never_opens() {
    let nights = [window("22:00-04:00 UTC")];
    let ends = at("2026-01-13T04:00:00Z");
    assert_eq!(
        window_opening(&nights, at("2026-01-12T23:00:00Z"), 7 * HOUR),
        WindowOpening::TooShort { ends, opens: None },
    );
    assert_eq!(
        window_opening(&nights, at("2026-01-12T12:00:00Z"), 7 * HOUR),
        WindowOpening::Shut { opens: None },
    );
}

#[test]
fn no_window_is_no_opening() {
    let found = window_opening(&[], at("2026-01-12T12:00:00Z"), Duration::ZERO);
    assert_eq!(found, WindowOpening::Shut { opens: None });
}

#[test]
fn windows_without_end_are_open_for_whatever_is_needed() {
    let always = [window("00:00-24:00 Europe/Berlin")];
    let halves = [window("00:00-12:00 UTC"), window("12:00-24:00 UTC")];
    for windows in [&always[..], &halves] {
        for needs in [
            Duration::ZERO,
            20 * 24 * HOUR,
            10_000 * 24 * HOUR,
            Duration::MAX,
        ] {
            let moment = at("2026-01-12T12:30:00Z");
            let WindowOpening::Open { until } = window_opening(windows, moment, needs) else {
                panic!("not open for {needs:?}");
            };
            let ahead = until.duration_since(moment).as_hours();
            let least = (needs.as_secs() / 3600).clamp(8 * 24, 400 * 24);
            let least = i64::try_from(least).unwrap();
            assert!(
                (least..=least + 25).contains(&ahead),
                "{needs:?}: {ahead} hours"
            );
        }
    }
}

#[test]
fn a_week_that_is_open_but_for_one_hour_closes_for_that_hour() {
    let windows = [
        window("Mon, Tue, Wed, Thu, Fri, Sat 00:00-24:00 UTC"),
        window("Sun 01:00-24:00 UTC"),
    ];
    let found = window_opening(&windows, at("2026-01-05T12:00:00Z"), Duration::ZERO);
    assert_eq!(found, open("2026-01-11T00:00:00Z"));
    let found = window_opening(&windows, at("2026-01-11T00:30:00Z"), 6 * 24 * HOUR);
    assert_eq!(found, shut("2026-01-11T01:00:00Z"));
}
