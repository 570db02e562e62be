//! Days on which clocks are set.

use super::*;

/// For each window: when it opens and closes.
fn stands(cases: &[(&str, &str, &str)]) {
    for (words, begin, end) in cases {
        let windows = [window(words)];
        let (begin, end) = (at(begin), at(end));
        let just_before = begin - jiff::SignedDuration::from_secs(1);
        let opens = WindowOpening::Shut { opens: Some(begin) };
        let found = window_opening(&windows, just_before, Duration::ZERO);
        assert_eq!(found, opens, "{words}");
        let until = WindowOpening::Open { until: end };
        let found = window_opening(&windows, begin, Duration::ZERO);
        assert_eq!(found, until, "{words}");
        let found = window_opening(&windows, end, Duration::ZERO);
        assert!(
            matches!(found, WindowOpening::Shut { .. }),
            "{words}: {found:?}"
        );
    }
}

#[test]
fn where_the_clock_jumps_ahead_a_window_begins_and_ends_no_earlier_than_the_jump() {
    stands(&[
        // 2026-03-29, a Sunday, in Berlin: 02:00+01 becomes 03:00+02.
        (
            "Sun 02:30-05:00 Europe/Berlin",
            "2026-03-29T03:00:00+02:00",
            "2026-03-29T05:00:00+02:00",
        ),
        (
            "Sun 02:00-05:00 Europe/Berlin",
            "2026-03-29T03:00:00+02:00",
            "2026-03-29T05:00:00+02:00",
        ),
        (
            "Sat 22:00-02:30 Europe/Berlin",
            "2026-03-28T22:00:00+01:00",
            "2026-03-29T03:00:00+02:00",
        ),
        (
            "Sat 22:00-04:00 Europe/Berlin",
            "2026-03-28T22:00:00+01:00",
            "2026-03-29T04:00:00+02:00",
        ),
        // 2026-03-08 in New York: 02:00-05 becomes 03:00-04.
        (
            "Sun 02:15-04:00 America/New_York",
            "2026-03-08T03:00:00-04:00",
            "2026-03-08T04:00:00-04:00",
        ),
        // 2026-10-04 on Lord Howe: 02:00+10:30 becomes 02:30+11.
        (
            "Sun 02:15-03:00 Australia/Lord_Howe",
            "2026-10-04T02:30:00+11:00",
            "2026-10-04T03:00:00+11:00",
        ),
    ]);
}

#[test]
fn where_the_clock_is_set_back_the_first_of_two_moments_counts() {
    stands(&[
        // 2026-10-25, a Sunday, in Berlin: 03:00+02 becomes 02:00+01.
        (
            "Sun 02:30-05:00 Europe/Berlin",
            "2026-10-25T02:30:00+02:00",
            "2026-10-25T05:00:00+01:00",
        ),
        (
            "Sat 22:00-02:30 Europe/Berlin",
            "2026-10-24T22:00:00+02:00",
            "2026-10-25T02:30:00+02:00",
        ),
        (
            "Sat 22:00-03:00 Europe/Berlin",
            "2026-10-24T22:00:00+02:00",
            "2026-10-25T03:00:00+01:00",
        ),
        (
            "Sun 02:10-02:50 Europe/Berlin",
            "2026-10-25T02:10:00+02:00",
            "2026-10-25T02:50:00+02:00",
        ),
        // 2026-11-01 in New York: 02:00-04 becomes 01:00-05.
        (
            "Sun 01:30-03:00 America/New_York",
            "2026-11-01T01:30:00-04:00",
            "2026-11-01T03:00:00-05:00",
        ),
        // 2026-04-05 on Lord Howe: 02:00+11 becomes 01:30+10:30.
        (
            "Sun 01:45-03:00 Australia/Lord_Howe",
            "2026-04-05T01:45:00+11:00",
            "2026-04-05T03:00:00+10:30",
        ),
        // 2006-10-29 in St. John's: 00:01 became 23:01 of the day before.
        (
            "Sun 00:00-03:00 America/St_Johns",
            "2006-10-29T00:00:00-02:30",
            "2006-10-29T03:00:00-03:30",
        ),
    ]);
}

#[test]
fn a_window_that_has_begun_stays_open_though_the_clock_shows_the_day_before_again() {
    expect(
        &[window("Sun 00:00-03:00 America/St_Johns")],
        &[(
            "2006-10-28T23:30:00-03:30",
            open("2006-10-29T03:00:00-03:30"),
        )],
    );
}

#[test]
fn a_window_that_lies_in_the_skipped_hour_does_not_exist_on_that_day() {
    expect(
        &[window("Sun 02:10-02:50 Europe/Berlin")],
        &[("2026-03-29T00:00:00Z", shut("2026-04-05T00:10:00Z"))],
    );
    // Samoa had no 2011-12-30 (a Friday).
    expect(
        &[window("Fri 10:00-12:00 Pacific/Apia")],
        &[("2011-12-29T00:00:00Z", shut("2012-01-05T20:00:00Z"))],
    );
}

#[test]
fn what_is_needed_is_measured_in_real_time() {
    let nights = [window("22:00-04:00 Europe/Berlin")];
    let five_and_a_half = Duration::from_mins(330);
    // The night of the jump is 5 hours long, that of the return 7.
    assert_eq!(
        window_opening(&nights, at("2026-03-28T22:00:00+01:00"), five_and_a_half),
        short("2026-03-29T04:00:00+02:00", "2026-03-29T22:00:00+02:00"),
    );
    assert_eq!(
        window_opening(&nights, at("2026-10-24T23:30:00+02:00"), five_and_a_half),
        open("2026-10-25T04:00:00+01:00"),
    );
}
