use proptest::prelude::*;

use super::window::{KuredWindow, translate_windows};
use super::*;
use crate::policy::window::{MaintenanceWindow, WindowOpening, WindowSpec, window_opening};
use crate::policy::{PolicyGate, PrometheusQuery};
use crate::reboot::DrainTimeoutAction;

fn kured(words: &[&str]) -> KuredInstallation {
    KuredInstallation {
        arguments: words.iter().map(|word| (*word).to_owned()).collect(),
        ..KuredInstallation::default()
    }
}

fn row<'a>(plan: &'a KuredTranslation, setting: &str) -> &'a TranslatedSetting {
    let found = plan
        .rows
        .iter()
        .find(|row| row.setting.starts_with(setting));
    found.unwrap_or_else(|| panic!("no row {setting}: {:#?}", plan.rows))
}

#[test]
fn every_flag_of_kured_has_a_row_however_it_is_set() {
    for flag in KURED_FLAGS {
        let name = flag.name;
        let word = format!("--{name}=1");
        let plan = translate_kured(&kured(&["/usr/bin/kured", &word]));
        assert_eq!(
            row(&plan, &format!("--{name}")).outcome,
            flag.outcome,
            "{name}"
        );
        let mut by_name = kured(&[]);
        let variable = format!("KURED_{}", name.to_uppercase().replace('-', "_"));
        by_name.environment = vec![(variable, Some("1".into()))];
        let plan = translate_kured(&by_name);
        assert!(
            plan.rows
                .iter()
                .any(|row| row.setting.contains(name)
                    || row.setting == "KURED_BLOCKING_POD_SELECTOR"),
            "{name}"
        );
    }
}

#[test]
fn no_secret_is_in_the_result() {
    let plan = translate_kured(&kured(&[
        "--notify-url=slack://s3cret@x",
        "--slack-hook-url=https://hooks.example.com/s3cret",
        "--prometheus-url=https://ann:s3cret@prom:9090",
        "--frob=s3cret",
        "--frob",
        "s3cret",
    ]));
    assert!(!format!("{plan:?}").contains("s3cret"), "{plan:#?}");
    let asked = translate_kured(&kured(&["--prometheus-url=https://prom/?token=s3cret"]));
    assert!(!format!("{asked:?}").contains("s3cret"), "{asked:#?}");
    assert!(
        matches!(&plan.gates[0], PolicyGate::Prometheus(gate) if gate.url == "https://prom:9090")
    );
}

#[test]
fn what_is_unknown_is_listed() {
    let plan = translate_kured(&kured(&["kured", "--frob=1", "more", "-v"]));
    for setting in ["--frob", "more", "-v"] {
        assert_eq!(row(&plan, setting).outcome, SettingOutcome::NotUnderstood);
    }
}

#[test]
fn the_environment_wins_as_it_does_in_kured() {
    let mut both = kured(&[
        "--concurrency=2",
        "--time-zone",
        "Europe/Berlin",
        "--start-time=$(FROM)",
    ]);
    both.environment = vec![
        ("FROM".into(), Some("9am".into())),
        ("KURED_CONCURRENCY".into(), Some("3".into())),
    ];
    both.environment[0].1 = Some("9:00".into());
    let plan = translate_kured(&both);
    assert_eq!(plan.max_unavailable, 3);
    assert_eq!(plan.windows[0].start.as_deref(), Some("09:00"));
    assert_eq!(plan.windows[0].time_zone.as_deref(), Some("Europe/Berlin"));
}

#[test]
fn the_way_of_a_whole_kured() {
    let mut whole = kured(&[
        "/usr/bin/kured",
        "--reboot-sentinel=/sentinel/reboot-required",
        "--drain-timeout=30m",
        "--force-reboot",
        "--drain-pod-selector=app!=db",
        "--prometheus-url=http://prom",
        "--alert-filter-regexp=^Watchdog$",
        "--alert-firing-only=true",
        "--blocking-pod-selector=runtime=long,cost=expensive",
        "--blocking-pod-selector=name in (a, b),!c",
        "--reboot-method=signal",
        "--metrics-port=9000",
    ]);
    whole.mounts = vec![("/sentinel".into(), "/var/run".into())];
    whole.node_selector = [("os".to_owned(), "linux".to_owned())].into();
    let plan = translate_kured(&whole);
    assert_eq!(
        plan.flags,
        [
            "--sentinel=/run/reboot-required",
            "--reboot-method=signal",
            "--listen=:9000"
        ]
    );
    assert_eq!(plan.on_timeout, Some(DrainTimeoutAction::Force));
    assert_eq!(plan.drain_timeout, Some(std::time::Duration::from_mins(30)));
    assert_eq!(
        plan.exclude.as_ref().unwrap().to_query_string(),
        "app in (db)"
    );
    let selectors: Vec<String> = plan.gates[..2]
        .iter()
        .map(|gate| match gate {
            PolicyGate::Pods { selector } => selector.to_query_string(),
            PolicyGate::Prometheus(_) => panic!("{gate:?}"),
        })
        .collect();
    assert_eq!(
        selectors,
        ["cost=expensive,runtime=long", "name in (a,b),!c"]
    );
    let PolicyGate::Prometheus(gate) = &plan.gates[2] else {
        panic!("{plan:?}")
    };
    let PrometheusQuery::Alerts(alerts) = &gate.ask else {
        panic!("{gate:?}")
    };
    assert_eq!(
        (alerts.ignore.as_deref(), alerts.only.as_deref()),
        (Some("^Watchdog$"), None)
    );
    assert!(alerts.firing_only);
    assert_eq!(plan.paused, None);
    assert_eq!(plan.nodes.to_query_string(), "os=linux");
}

#[test]
fn what_held_reboots_back_and_cannot_be_said_pauses_the_policy() {
    for word in [
        "--blocking-pod-selector=cpu>4",
        "--blocking-pod-selector=",
        "--prometheus-url=unix:///x",
        "--reboot-days=",
        "--reboot-days=mon,someday",
        "--start-time=25:00",
        "--time-zone=Nowhere/Land",
    ] {
        assert!(translate_kured(&kured(&[word])).paused.is_some(), "{word}");
    }
    let mut elsewhere = kured(&[]);
    elsewhere.environment = vec![("KURED_PROMETHEUS_URL".into(), None)];
    assert!(translate_kured(&elsewhere).paused.is_some());
    elsewhere.environment = vec![
        ("KURED_NODE_ID".into(), None),
        ("KURED_NOTIFY_URL".into(), None),
    ];
    assert_eq!(translate_kured(&elsewhere).paused, None);
}

#[test]
fn a_reboot_over_pods_needs_a_time_limit_in_kured_too() {
    let forced = translate_kured(&kured(&["--force-reboot"]));
    assert_eq!((forced.on_timeout, forced.drain_timeout), (None, None));
}

#[test]
fn a_drain_has_room_in_the_window() {
    let short = translate_kured(&kured(&["--start-time=2:00", "--end-time=2:59:59"]));
    assert_eq!(
        short.drain_timeout,
        Some(std::time::Duration::from_mins(30))
    );
    let long = translate_kured(&kured(&["--start-time=2:00", "--end-time=4:00"]));
    assert_eq!(long.drain_timeout, None);
}

#[test]
fn a_window_over_midnight_is_two_of_the_same_days() {
    let days = ["fri".to_owned()];
    let told = KuredWindow {
        days: Some(&days),
        start: Some("10pm"),
        end: Some("04:00"),
        zone: None,
    };
    let made = translate_windows(&told).unwrap().list;
    let times = |window: &WindowSpec| {
        format!(
            "{:?} {:?}",
            window.start.clone().unwrap(),
            window.end.clone().unwrap()
        )
    };
    assert_eq!(
        made.iter().map(times).collect::<Vec<_>>(),
        ["\"00:00\" \"04:00\"", "\"22:00\" \"24:00\""]
    );
    let every = KuredWindow { days: None, ..told };
    assert_eq!(translate_windows(&every).unwrap().list.len(), 1);
    assert_eq!(
        translate_windows(&KuredWindow {
            start: None,
            end: None,
            ..every
        })
        .unwrap()
        .list,
        []
    );
}

/// kured's own rule, in seconds of a week that begins on Sunday.
fn kured_allows(days: [bool; 7], start: u32, end: u32, at: u32) -> bool {
    let (day, time) = (at / 86_400, at % 86_400);
    let inside = if start > end {
        time <= end || time >= start
    } else {
        start <= time && time <= end
    };
    days[day as usize] && inside
}

proptest! {
    /// On whole minutes the windows contain the same times as kured's; with seconds never more.
    #[test]
    fn a_moment_is_inside_exactly_when_kured_would_reboot(
        days in any::<[bool; 7]>().prop_filter("some day", |days| days.contains(&true)),
        start in 0_u32..1440, end in 0_u32..1440, at in 0_u32..7 * 1440,
    ) {
        prop_assume!(start != end);
        let names: Vec<String> = (0..7).filter(|day| days[*day]).map(|day| day.to_string()).collect();
        let clock = |minute: u32| format!("{:02}:{:02}", minute / 60, minute % 60);
        let last = format!("{}:59", clock(end));
        let told = KuredWindow { days: Some(&names), start: Some(&clock(start)), end: Some(&last), zone: None };
        let made = translate_windows(&told).unwrap().list;
        let ours: Vec<MaintenanceWindow> = made.iter().map(|spec| MaintenanceWindow::new(spec).unwrap()).collect();
        // 2026-01-04 is a Sunday.
        let sunday: jiff::Timestamp = "2026-01-04T00:00:00Z".parse().unwrap();
        let now = sunday + jiff::SignedDuration::from_secs(i64::from(at) * 60 + 30);
        let open = made.is_empty() || inside(&ours, now);
        prop_assert_eq!(open, kured_allows(days, start * 60, end * 60 + 59, at * 60 + 30), "{:?}", made);
    }

    #[test]
    fn no_command_line_makes_it_panic(words in prop::collection::vec("(--[a-z-]{0,24}(=[ -~]{0,20})?)|[ -~]{0,12}", 0..6)) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        translate_kured(&kured(&words));
    }
}

fn inside(windows: &[MaintenanceWindow], now: jiff::Timestamp) -> bool {
    let open = window_opening(windows, now, std::time::Duration::ZERO);
    matches!(
        open,
        WindowOpening::Open { .. } | WindowOpening::TooShort { .. }
    )
}

#[test]
fn a_policy_for_every_node_and_when_its_reboots_begin_are_said() {
    let plan = translate_kured(&kured(&["--start-time=2:00", "--end-time=4:00"]));
    let every = &row(&plan, "no nodeSelector").becomes;
    assert!(every.contains("applies to every node"), "{every}");
    let begins = &row(&plan, "when a reboot begins").becomes;
    assert!(begins.contains("from 02:00 to 03:00 only"), "{begins}");
}
