use std::time::Duration;

use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::policy::window::describe_window;
use dogwatch_core::policy::{BlockingAlerts, PolicyGate, PrometheusQuery, ReturnGate};
use dogwatch_core::reboot::{DrainTimeoutAction, GateTimeoutAction};
use serde_json::{Value, json};

use super::*;

fn workers(spec: &Value) -> Policy {
    convert_policy("workers", spec)
}

#[test]
fn an_empty_policy_leaves_everything_to_the_flags() {
    for spec in [
        json!({}),
        Value::Null,
        json!({ "windows": null, "drain": null }),
    ] {
        let policy = workers(&spec);
        assert_eq!(policy.problems, Vec::<String>::new(), "{spec}");
        assert_eq!(policy.selector.to_query_string(), "");
        assert_eq!((policy.priority, policy.max_unavailable), (0, None));
        assert_eq!((policy.drain.timeout, policy.reboot.attempts), (None, None));
        assert!(!policy.reboot.escalate);
        assert_eq!(policy.on_return.gates, None);
        assert!(policy.windows.is_empty() && policy.gates.is_empty() && policy.paused.is_none());
    }
}

/// With every field set.
fn full() -> Policy {
    workers(&json!({
        "nodeSelector": { "matchLabels": { "pool": "workers" } }, "priority": 7, "maxUnavailable": "10%",
        "topologyKey": "topology.kubernetes.io/zone", "minInterval": "24h",
        "paused": { "reason": "freeze", "until": "2026-12-24T18:00:00+01:00" },
        "windows": [{ "days": ["Mon"], "start": "22:00", "end": "04:00", "timeZone": "Europe/Berlin" }],
        "drain": { "timeout": "30m", "onTimeout": "force", "volumeDetachTimeout": "5m", "exclude": { "matchLabels": { "stay": "yes" } } },
        "reboot": { "timeout": "20m", "attempts": 3, "escalate": true, "acceptSoft": true, "muteNVSentinel": true },
        "return": { "settle": "0s", "gates": ["Volumes"], "gateTimeout": "5m", "onGateTimeout": "release" },
        "gates": [
            { "pods": { "selector": { "matchLabels": { "a": "b" } } } },
            { "prometheus": { "url": "http://p:9090", "query": "up == 0" } },
            { "prometheus": { "url": "https://p", "alerts": { "ignore": "Watchdog", "only": "N.*", "firingOnly": true } } },
        ],
    }))
}

#[test]
fn whom_and_when_reaches_the_decisions() {
    let policy = full();
    assert_eq!(policy.problems, Vec::<String>::new());
    assert_eq!(policy.name.as_str(), "workers");
    assert_eq!(policy.selector.to_query_string(), "pool=workers");
    assert_eq!(policy.priority, 7);
    assert_eq!(
        policy.max_unavailable,
        Some(UnavailabilityLimit::Percent(10))
    );
    assert_eq!(
        policy.topology_key.as_deref(),
        Some("topology.kubernetes.io/zone")
    );
    assert_eq!(policy.min_interval, Some(Duration::from_hours(24)));
    let paused = policy.paused.unwrap();
    assert_eq!(paused.reason, "freeze");
    assert_eq!(paused.until, Some("2026-12-24T17:00:00Z".parse().unwrap()));
    let windows: Vec<String> = policy.windows.iter().map(describe_window).collect();
    assert_eq!(windows, ["Mon 22:00-04:00 Europe/Berlin"]);
}

#[test]
fn the_rules_of_each_phase_reach_the_decisions() {
    let policy = full();
    assert_eq!(policy.drain.timeout, Some(Duration::from_mins(30)));
    assert_eq!(policy.drain.on_timeout, Some(DrainTimeoutAction::Force));
    let detach = policy.drain.volume_detach_timeout;
    assert_eq!(detach, Some(Duration::from_mins(5)));
    assert_eq!(
        policy.drain.pods.exclude.unwrap().to_query_string(),
        "stay=yes"
    );
    let reboot = policy.reboot;
    assert_eq!(reboot.timeout, Some(Duration::from_mins(20)));
    assert_eq!((reboot.attempts, reboot.escalate), (Some(3), true));
    assert!(reboot.accept_soft && reboot.mute_nvsentinel);
    let on_return = policy.on_return;
    assert_eq!(on_return.settle, Some(Duration::ZERO));
    assert_eq!(on_return.gates, Some(vec![ReturnGate::Volumes]));
    assert_eq!(on_return.gate_timeout, Some(Duration::from_mins(5)));
    assert_eq!(on_return.on_gate_timeout, Some(GateTimeoutAction::Release));
}

#[test]
fn every_gate_reaches_the_decisions() {
    let gates = full().gates;
    let [
        PolicyGate::Pods { selector },
        PolicyGate::Prometheus(query),
        PolicyGate::Prometheus(alerts),
    ] = &*gates
    else {
        panic!("{gates:?}");
    };
    assert_eq!(selector.to_query_string(), "a=b");
    assert_eq!(
        (&*query.url, &query.ask),
        ("http://p:9090", &PrometheusQuery::Query("up == 0".into()))
    );
    let expected = BlockingAlerts {
        ignore: Some("Watchdog".into()),
        only: Some("N.*".into()),
        firing_only: true,
    };
    assert_eq!(alerts.ask, PrometheusQuery::Alerts(expected));
}

/// Prefix of each problem, and its text.
const BAD: &[(&str, &str, &str)] = &[
    (
        r#"{"maxUnavailable": 0}"#,
        "spec.maxUnavailable: ",
        "`paused`",
    ),
    (
        r#"{"maxUnavailable": -1}"#,
        "spec.maxUnavailable: ",
        "1 to 10000",
    ),
    (
        r#"{"maxUnavailable": "3"}"#,
        "spec.maxUnavailable: ",
        "percentage",
    ),
    (
        r#"{"maxUnavailable": "101%"}"#,
        "spec.maxUnavailable: ",
        "at most 100%",
    ),
    (r#"{"maxUnavailable": [1]}"#, "spec.maxUnavailable: ", ""),
    (
        r#"{"topologyKey": "a b"}"#,
        "spec.topologyKey: ",
        "label key",
    ),
    (
        r#"{"paused": {"until": "tomorrow"}}"#,
        "spec.paused.until: ",
        "2026-12-24T18:00:00Z",
    ),
    (
        r#"{"paused": {"until": "2026-02-30T00:00:00Z"}}"#,
        "spec.paused.until: ",
        "is not a time",
    ),
    (
        r#"{"windows": [{}, {"timeZone": "Europe/Berlyn"}]}"#,
        "spec.windows[1]: timeZone: ",
        "Europe/Berlyn",
    ),
    (
        r#"{"windows": [{"rrule": "FREQ=HOURLY"}]}"#,
        "spec.windows[0]: rrule: ",
        "DAILY",
    ),
    (
        r#"{"windows": [{"excludedDates": ["2026-02-30"]}]}"#,
        "spec.windows[0]: excludedDates: ",
        "",
    ),
    (
        r#"{"windows": [{"from": "22:00"}]}"#,
        "spec.windows: ",
        "from",
    ),
    (
        r#"{"minInterval": "1d"}"#,
        "spec.minInterval: ",
        "a day is 24h",
    ),
    (
        r#"{"drain": {"timeout": "0s"}}"#,
        "spec.drain.timeout: ",
        "longer than zero",
    ),
    (
        r#"{"drain": {"onTimeout": "reboot"}}"#,
        "spec.drain: ",
        "abort",
    ),
    (
        r#"{"drain": {"rules": [{"do": "WaitCompleted"}]}}"#,
        "spec.drain.rules[0]: ",
        "needs a timeout",
    ),
    (
        r#"{"drain": {"rules": [{"do": "RollFirst"}]}}"#,
        "spec.drain.rules[0]: ",
        "needs a timeout",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Evict", "timeout": "1h"}]}}"#,
        "spec.drain.rules[0]: ",
        "nothing else",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Skip"}]}}"#,
        "spec.drain.rules[0]: ",
        "every pod would stay",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Skip", "order": 1, "pods": {"selector": {"matchLabels": {"a": "b"}}}}]}}"#,
        "spec.drain.rules[0]: ",
        "leave order out",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Evict", "pods": {}}]}}"#,
        "spec.drain.rules[0].pods: ",
        "namespaceSelector",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Evict", "pods": {"selector": {}}}]}}"#,
        "spec.drain.rules[0].pods.selector: ",
        "every pod",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Evict"}, {"do": "Delete"}]}}"#,
        "spec.drain.rules[0]: ",
        "hides the rules",
    ),
    (
        r#"{"drain": {"exclude": {}}}"#,
        "spec.drain.exclude: ",
        "every pod",
    ),
    (
        r#"{"reboot": {"timeout": "99999999h"}}"#,
        "spec.reboot.timeout: ",
        "too long",
    ),
    (
        r#"{"reboot": {"attempts": 11}}"#,
        "spec.reboot.attempts: ",
        "1 to 10",
    ),
    (
        r#"{"reboot": {"command": "halt"}}"#,
        "spec.reboot: ",
        "command",
    ),
    (
        r#"{"return": {"gates": ["Weather"]}}"#,
        "spec.return: ",
        "Weather",
    ),
    (
        r#"{"gates": [{}]}"#,
        "spec.gates[0]: ",
        "either `pods` or `prometheus`",
    ),
    (
        r#"{"gates": [{"pods": {"selector": {}}}]}"#,
        "spec.gates[0].pods.selector: ",
        "empty",
    ),
    (
        r#"{"gates": [{"sunspots": {}}]}"#,
        "spec.gates: ",
        "sunspots",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "ftp://p", "query": "up"}}]}"#,
        "spec.gates[0].prometheus.url: ",
        "https://",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "http://p"}}]}"#,
        "spec.gates[0].prometheus: ",
        "`query` or `alerts`",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "http://p", "alerts": {"ignore": "a)"}}}]}"#,
        "spec.gates[0].prometheus.alerts.ignore: ",
        "unopened group",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "http://p", "alerts": {"only": "(\\w{100}){100}"}}}]}"#,
        "spec.gates[0].prometheus.alerts.only: ",
        "size limit",
    ),
    (
        r#"{"newRule": true}"#,
        "spec.newRule: unknown field; ",
        "if a newer version of Dogwatch has this field, update",
    ),
    (
        r#"{"maxUnavailabel": 2}"#,
        "spec.maxUnavailabel: unknown field; ",
        "did you mean maxUnavailable?",
    ),
    (
        r#"{"drain": {"timout": "5m"}}"#,
        "spec.drain: unknown field `timout`",
        "did you mean timeout?",
    ),
    (
        r#"{"windows": [{"dayz": ["Mon"]}]}"#,
        "spec.windows: unknown field `dayz`",
        "did you mean days?",
    ),
    (r#""nothing""#, "spec: ", "not an object"),
];

#[test]
fn what_cannot_be_understood_is_a_problem_that_names_its_field() {
    for (spec, begins, says) in BAD {
        let policy = workers(&serde_json::from_str(spec).unwrap());
        let [problem] = &*policy.problems else {
            panic!("{spec}: {:?}", policy.problems);
        };
        assert!(
            problem.starts_with(begins) && problem.contains(says),
            "{spec}: {problem}"
        );
        assert!(
            !(problem.contains("did you mean") && problem.contains("update")),
            "a slip needs no update: {problem}"
        );
    }
}

#[test]
fn a_broken_part_spoils_no_other() {
    let policy = workers(&json!({
        "nodeSelector": { "matchLabels": { "a": "b" } }, "priority": 3, "drain": 1, "gates": 2, "minInterval": "5m",
    }));
    assert_eq!(policy.problems.len(), 2, "{:?}", policy.problems);
    assert_eq!(
        (policy.selector.to_query_string().as_str(), policy.priority),
        ("a=b", 3)
    );
    assert_eq!(policy.min_interval, Some(Duration::from_mins(5)));
}

#[test]
fn one_that_does_not_say_whom_it_is_for_holds_everybody_back() {
    for spec in [
        json!({ "nodeSelector": "workers", "priority": 3 }),
        json!({ "nodeSelector": { "matchLabels": { "a b": "c" } }, "priority": 3 }),
        json!({ "nodeSelector": { "matchExpressions": [{ "key": "a", "operator": "In" }] } }),
        json!({ "nodeSelector": { "matchExpressions": [{ "key": "a", "operator": "Exists", "values": ["b"] }] } }),
        json!([]),
    ] {
        let policy = workers(&spec);
        assert_eq!(policy.problems.len(), 1, "{spec}: {:?}", policy.problems);
        assert_eq!(
            (policy.selector.to_query_string().as_str(), policy.priority),
            ("", i32::MAX),
            "{spec}"
        );
    }
    let policy =
        workers(&json!({ "nodeSelector": { "matchLabels": { "a": "b" } }, "priority": "high" }));
    assert_eq!(
        (policy.selector.to_query_string().as_str(), policy.priority),
        ("a=b", i32::MAX)
    );
    assert_eq!(policy.problems.len(), 1);
}

#[test]
fn a_password_in_an_address_is_not_repeated() {
    for url in [
        "http://user:hunter2@p:9090",
        "http://user:hunter2@p: 9090",
        "hunter2",
    ] {
        let policy =
            workers(&json!({ "gates": [{ "prometheus": { "url": url, "query": "up" } }] }));
        assert_eq!(policy.problems.len(), 1, "{url}");
        assert!(!format!("{policy:?}").contains("hunter2"), "{policy:?}");
    }
}

#[test]
fn a_name_that_is_no_group_is_a_problem_and_never_the_group_of_another() {
    for (name, group) in [
        ("a.b", "a-b"),
        ("remedy", "remedy"),
        ("remedy-x", "remedy-x"),
    ] {
        let policy = convert_policy(name, &json!({}));
        assert_eq!(policy.problems.len(), 1, "{name}");
        assert!(
            policy.problems[0].starts_with("metadata.name: "),
            "{:?}",
            policy.problems
        );
        assert_eq!(policy.name.as_str(), group);
    }
    let long = "a.".repeat(100) + "a";
    assert_eq!(convert_policy(&long, &json!({})).problems.len(), 1);
}

#[test]
fn the_group_of_the_control_plane_is_for_the_control_plane() {
    let role = "node-role.kubernetes.io/control-plane";
    for (selector, problems) in [
        (json!({}), 1),
        (json!({ "matchLabels": { "a": "b" } }), 1),
        (
            json!({ "matchExpressions": [{ "key": role, "operator": "DoesNotExist" }] }),
            1,
        ),
        (
            json!({ "matchExpressions": [{ "key": role, "operator": "Exists" }] }),
            0,
        ),
        (json!({ "matchLabels": { role: "" } }), 0),
    ] {
        let policy = convert_policy("control-plane", &json!({ "nodeSelector": selector }));
        assert_eq!(
            policy.problems.len(),
            problems,
            "{selector}: {:?}",
            policy.problems
        );
    }
}
