//! Which alerts block. The reference is kured: it applies `MatchString` to the name, compares the
//! result with "match only", and the state with "firing".

use http::{HeaderMap, StatusCode};
use serde_json::json;

use super::*;
use crate::answer::{self, TokenSent};

const ACTIVE: [(&str, &str); 4] = [
    ("RebootRequired", "firing"),
    ("DiskFull", "firing"),
    ("DiskFullSoon", "pending"),
    ("Watchdog", "firing"),
];

fn active(alerts: &[(&str, &str)]) -> QueryResults {
    let series = |(name, state): &(&str, &str)| json!({ "metric": { "alertname": name, "alertstate": state }, "value": [1, "1"] });
    let result: Vec<_> = alerts.iter().map(series).collect();
    let body = json!({ "status": "success", "data": { "resultType": "vector", "result": result } });
    let body = body.to_string();
    answer::parse_answer(
        StatusCode::OK,
        &HeaderMap::new(),
        body.as_bytes(),
        TokenSent::NoneThere,
    )
    .unwrap()
}

fn blocking(ignore: &str, only: &str, firing_only: bool) -> Vec<String> {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let alerts = BlockingAlerts {
        ignore: text(ignore),
        only: text(only),
        firing_only,
    };
    let results = active(&ACTIVE);
    let filter = AlertMatcher::new(&alerts).map_err(|trouble| trouble.error_chain());
    let filter = filter.unwrap_or_else(|why| panic!("{why}"));
    let names = filter.blocking_alerts(&results);
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn the_filters_are_kureds() {
    for (ignore, only, firing_only, expected) in [
        (
            "",
            "",
            false,
            &["DiskFull", "DiskFullSoon", "RebootRequired", "Watchdog"][..],
        ),
        ("", "", true, &["DiskFull", "RebootRequired", "Watchdog"]),
        // Anywhere in the name.
        ("Disk", "", false, &["RebootRequired", "Watchdog"]),
        ("^(RebootRequired|Watchdog)$", "", true, &["DiskFull"]),
        (
            "^Disk$",
            "",
            true,
            &["DiskFull", "RebootRequired", "Watchdog"],
        ),
        ("(?i)diskfull", "", false, &["RebootRequired", "Watchdog"]),
        ("", "Full$", false, &["DiskFull"]),
        ("", "Disk", true, &["DiskFull"]),
        ("", "NoSuch", false, &[]),
        ("Soon", "Disk", false, &["DiskFull"]),
        (".*", "", false, &[]),
    ] {
        assert_eq!(
            blocking(ignore, only, firing_only),
            expected,
            "{ignore} {only} {firing_only}"
        );
    }
}

#[test]
fn an_empty_expression_ignores_nothing() {
    let alerts = BlockingAlerts {
        ignore: Some(String::new()),
        only: Some(String::new()),
        firing_only: false,
    };
    let results = active(&ACTIVE);
    let filter = AlertMatcher::new(&alerts).map_err(|trouble| trouble.error_chain());
    assert_eq!(
        filter
            .unwrap_or_else(|why| panic!("{why}"))
            .blocking_alerts(&results)
            .len(),
        4
    );
}

#[test]
fn an_alert_in_both_states_is_named_once() {
    let results = active(&[("A", "firing"), ("A", "pending")]);
    let filter = AlertMatcher::new(&BlockingAlerts::default());
    assert_eq!(
        filter
            .map(|filter| filter.blocking_alerts(&results).len())
            .ok(),
        Some(1)
    );
}

#[test]
fn what_is_no_expression_shuts_the_gate_and_names_the_field() {
    for (text, says) in [
        ("(", "unclosed group"),
        (r"a\Qb", "unrecognized escape"),
        ("(a{1000}){1000}", "limit"),
    ] {
        let alerts = BlockingAlerts {
            only: Some(text.to_owned()),
            ..BlockingAlerts::default()
        };
        let Err(trouble) = AlertMatcher::new(&alerts) else {
            panic!("{text} is taken");
        };
        let words = trouble.error_chain();
        assert!(words.contains("`alerts.only`"), "{words}");
        assert!(words.contains(says) && !words.contains('\n'), "{words}");
    }
}
