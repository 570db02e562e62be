//! Weekly days, times, excluded dates.

use super::*;

#[test]
fn the_day_is_that_of_the_start() {
    // 2026-01-09 is a Friday. kured's window would cover Friday 00-04 and not Saturday 00-04.
    let friday = [window("Fri 22:00-04:00 UTC")];
    expect(
        &friday,
        &[
            ("2026-01-09T00:00:00Z", shut("2026-01-09T22:00:00Z")),
            ("2026-01-09T03:59:59Z", shut("2026-01-09T22:00:00Z")),
            ("2026-01-09T21:59:59Z", shut("2026-01-09T22:00:00Z")),
            ("2026-01-09T22:00:00Z", open("2026-01-10T04:00:00Z")),
            ("2026-01-10T00:00:00Z", open("2026-01-10T04:00:00Z")),
            ("2026-01-10T03:59:59.999Z", open("2026-01-10T04:00:00Z")),
            ("2026-01-10T04:00:00Z", shut("2026-01-16T22:00:00Z")),
        ],
    );
}

#[test]
fn the_clock_is_that_of_the_time_zone() {
    // 2026-01-12 is a Monday; 22:00 in Tokyo is 13:00 in UTC, in Los Angeles 06:00 of the next day.
    let moment = "2026-01-12T12:00:00Z";
    for (words, opens) in [
        ("Mon 22:00-23:00 Asia/Tokyo", "2026-01-12T13:00:00Z"),
        (
            "Mon 22:00-23:00 America/Los_Angeles",
            "2026-01-13T06:00:00Z",
        ),
        ("Mon 22:00-23:00 asia/kathmandu", "2026-01-12T16:15:00Z"),
    ] {
        expect(&[window(words)], &[(moment, shut(opens))]);
    }
}

#[test]
fn without_days_it_is_every_day_and_without_times_the_whole_day() {
    let nothing = MaintenanceWindow::new(&WindowSpec::default()).unwrap();
    let always = window_opening(&[nothing], at("2026-01-05T12:00:00Z"), HOUR);
    assert_eq!(always, open("2026-01-14T00:00:00Z"));
    let sunday = WindowSpec {
        days: Some(vec!["Sun".into()]),
        ..WindowSpec::default()
    };
    expect(
        &[MaintenanceWindow::new(&sunday).unwrap()],
        &[
            ("2026-01-10T23:59:59Z", shut("2026-01-11T00:00:00Z")),
            ("2026-01-11T00:00:00Z", open("2026-01-12T00:00:00Z")),
            ("2026-01-12T00:00:00Z", shut("2026-01-18T00:00:00Z")),
        ],
    );
}

#[test]
fn an_end_equal_to_the_start_is_a_day_and_midnight_may_be_written_24_00() {
    let cases = [
        ("Tue 05:00-05:00 UTC", "2026-01-14T05:00:00Z"),
        ("Tue 22:00-24:00 UTC", "2026-01-14T00:00:00Z"),
        ("Tue 00:00-24:00 UTC", "2026-01-14T00:00:00Z"),
        ("Tue 22:00-00:00 UTC", "2026-01-14T00:00:00Z"),
    ];
    for (words, until) in cases {
        expect(&[window(words)], &[("2026-01-13T23:00:00Z", open(until))]);
    }
}

#[test]
fn a_date_that_is_left_out_is_that_of_the_start() {
    let nights = [without(
        "Thu, Fri, Sat 22:00-04:00 UTC",
        &["2026-12-24", "2026-12-26"],
    )];
    // 2026-12-24 is a Thursday.
    expect(
        &nights,
        &[
            ("2026-12-24T23:00:00Z", shut("2026-12-25T22:00:00Z")),
            ("2026-12-25T03:00:00Z", shut("2026-12-25T22:00:00Z")),
            ("2026-12-26T03:00:00Z", open("2026-12-26T04:00:00Z")),
            ("2026-12-26T23:00:00Z", shut("2026-12-31T22:00:00Z")),
        ],
    );
}

#[test]
fn dates_left_out_one_after_the_other_do_not_hide_the_next_opening() {
    let freeze = [
        "2026-12-14",
        "2026-12-21",
        "2026-12-28",
        "2027-01-04",
        "2027-01-11",
    ];
    expect(
        &[without("Mon 22:00-04:00 UTC", &freeze)],
        &[("2026-12-13T00:00:00Z", shut("2027-01-18T22:00:00Z"))],
    );
}

#[test]
fn a_leap_day_is_a_day() {
    // 2028-02-29 is a Tuesday.
    expect(
        &[window("Tue 22:00-04:00 UTC")],
        &[("2028-02-29T23:00:00Z", open("2028-03-01T04:00:00Z"))],
    );
    expect(
        &[without("Tue 22:00-04:00 UTC", &["2028-02-29"])],
        &[("2028-02-29T23:00:00Z", shut("2028-03-07T22:00:00Z"))],
    );
}

#[test]
fn at_either_end_of_time_nothing_is_open_that_is_not_and_nothing_panics() {
    let windows = [window("22:00-04:00 UTC"), window("00:00-24:00 Asia/Tokyo")];
    for moment in [Timestamp::MIN, Timestamp::MAX] {
        window_opening(&windows, moment, Duration::MAX);
        window_opening(&windows[..1], moment, Duration::ZERO);
    }
}

#[test]
fn a_window_is_described_as_people_say_it() {
    let dates = ["2026-12-24", "2026-12-25"];
    let many = ["2026-12-24", "2026-12-25", "2026-12-31", "2027-01-01"];
    let cases = [
        (
            window("Wed, Mon 22:00-04:00 europe/berlin"),
            "Mon, Wed 22:00-04:00 Europe/Berlin",
        ),
        (window("22:00-24:00 UTC"), "every day 22:00-00:00 UTC"),
        (
            MaintenanceWindow::new(&WindowSpec::default()).unwrap(),
            "every day all day UTC",
        ),
        (
            without("Sat 01:00-05:30 UTC", &dates),
            "Sat 01:00-05:30 UTC, except on 2026-12-24, 2026-12-25",
        ),
        (
            without("Sat 01:00-05:30 UTC", &many),
            "Sat 01:00-05:30 UTC, except on 4 dates",
        ),
        (
            rule("rrule:freq=monthly;byday=2tu", "01:00-05:00"),
            "FREQ=MONTHLY;BYDAY=2TU 01:00-05:00 UTC",
        ),
    ];
    for (window, words) in cases {
        assert_eq!(describe_window(&window), words);
    }
}
