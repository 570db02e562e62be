//! The kind RebootPolicy on a real API server: bad input is refused with the field and a
//! correction, good input is accepted and understood, and tables show the useful columns.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use dogwatch_api::reboot_policy::policy_crd;
use dogwatch_k8s::policy::convert_policy;
use kube::Client;
use serde_json::{Value, json};
use support::admission::{Kind, Refused};
use tokio::sync::OnceCell;

const POLICIES: Kind = Kind {
    api: ("dogwatch.dev/v1alpha1", "RebootPolicy"),
    path: "/apis/dogwatch.dev/v1alpha1/rebootpolicies",
};

/// A client of a server with the kind.
async fn client() -> Client {
    static SERVED: OnceCell<()> = OnceCell::const_new();
    let install = async || POLICIES.install(&policy_crd()).await;
    SERVED.get_or_init(install).await;
    support::real::client().await
}

async fn admitted(client: &Client, name: &str, spec: &Value) -> Result<Value, String> {
    POLICIES.admitted(client, name, spec).await
}

const REFUSED: &[Refused] = &[
    (
        r#"{"nodeSelector": {"matchLabels": {}}}"#,
        "spec.nodeSelector.matchLabels",
        "at least 1",
    ),
    (
        r#"{"nodeSelector": {"matchExpressions": []}}"#,
        "spec.nodeSelector.matchExpressions",
        "at least 1",
    ),
    (
        r#"{"nodeSelector": {"matchLabels": {"a b": "c"}}}"#,
        "spec.nodeSelector.matchLabels",
        "label key like",
    ),
    (
        r#"{"nodeSelector": {"matchLabels": {"a": "b c"}}}"#,
        "spec.nodeSelector.matchLabels[a]",
        "label value",
    ),
    (
        r#"{"nodeSelector": {"pool": "a"}}"#,
        "spec.nodeSelector.pool",
        "unknown field",
    ),
    (
        r#"{"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}"#,
        "spec.nodeSelector.matchExpressions[0].operator",
        "DoesNotExist",
    ),
    (
        r#"{"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}"#,
        "spec.nodeSelector.matchExpressions[0]",
        "at least one of values",
    ),
    (
        r#"{"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}"#,
        "spec.nodeSelector.matchExpressions[0]",
        "take none",
    ),
    (r#"{"priority": 2000000000}"#, "spec.priority", "1000000000"),
    (r#"{"priority": "high"}"#, "spec.priority", "integer"),
    (
        r#"{"maxUnavailable": 0}"#,
        "spec.maxUnavailable",
        "set paused",
    ),
    (
        r#"{"maxUnavailable": -1}"#,
        "spec.maxUnavailable",
        "from 1 to 10000",
    ),
    (
        r#"{"maxUnavailable": 10001}"#,
        "spec.maxUnavailable",
        "from 1 to 10000",
    ),
    (
        r#"{"maxUnavailable": "0%"}"#,
        "spec.maxUnavailable",
        "\"1%\" to \"100%\"",
    ),
    (
        r#"{"maxUnavailable": "101%"}"#,
        "spec.maxUnavailable",
        "\"1%\" to \"100%\"",
    ),
    (
        r#"{"maxUnavailable": "10 %"}"#,
        "spec.maxUnavailable",
        "\"1%\" to \"100%\"",
    ),
    (
        r#"{"maxUnavailable": "3"}"#,
        "spec.maxUnavailable",
        "percentage",
    ),
    (
        r#"{"maxUnavailable": 1.5}"#,
        "spec.maxUnavailable",
        "integer,string",
    ),
    (
        r#"{"topologyKey": "zone of it"}"#,
        "spec.topologyKey",
        "label key like",
    ),
    (
        r#"{"topologyKey": "-zone"}"#,
        "spec.topologyKey",
        "label key like",
    ),
    (r#"{"paused": true}"#, "spec.paused", "object"),
    (
        r#"{"paused": {"until": "tomorrow"}}"#,
        "spec.paused.until",
        "2026-12-24T18:00:00Z",
    ),
    (
        r#"{"paused": {"until": "2026-12-24"}}"#,
        "spec.paused.until",
        "2026-12-24T18:00:00Z",
    ),
    (
        r#"{"paused": {"until": "2026-12-24T18:00:00"}}"#,
        "spec.paused.until",
        "offset",
    ),
    (r#"{"windows": []}"#, "spec.windows", "at least 1"),
    (r#"{"windows": [{}]}"#, "spec.windows[0]", "at least 1"),
    (
        r#"{"windows": [{"days": []}]}"#,
        "spec.windows[0].days",
        "at least 1",
    ),
    (
        r#"{"windows": [{"days": ["Monday"]}]}"#,
        "spec.windows[0].days[0]",
        "\"Mon\", \"Tue\"",
    ),
    (
        r#"{"windows": [{"days": ["Mon", "Mon"]}]}"#,
        "spec.windows[0].days[1]",
        "Duplicate",
    ),
    (
        r#"{"windows": [{"start": "22:00"}]}"#,
        "spec.windows[0]",
        "both start and end",
    ),
    (
        r#"{"windows": [{"start": "25:00", "end": "04:00"}]}"#,
        "spec.windows[0].start",
        "like 22:00",
    ),
    (
        r#"{"windows": [{"start": "24:00", "end": "04:00"}]}"#,
        "spec.windows[0].start",
        "like 22:00",
    ),
    (
        r#"{"windows": [{"start": "22:00", "end": "4:00"}]}"#,
        "spec.windows[0].end",
        "like 04:00",
    ),
    (
        r#"{"windows": [{"start": "22:00", "end": "04:60"}]}"#,
        "spec.windows[0].end",
        "like 04:00",
    ),
    (
        r#"{"windows": [{"start": 22, "end": "04:00"}]}"#,
        "spec.windows[0].start",
        "string",
    ),
    (
        r#"{"windows": [{"timeZone": "Europe Berlin"}]}"#,
        "spec.windows[0].timeZone",
        "Europe/Berlin",
    ),
    (
        r#"{"windows": [{"timeZone": "../etc/passwd"}]}"#,
        "spec.windows[0].timeZone",
        "Europe/Berlin",
    ),
    (
        r#"{"windows": [{"days": ["Mon"], "rrule": "FREQ=DAILY"}]}"#,
        "spec.windows[0]",
        "either days or rrule",
    ),
    (
        r#"{"windows": [{"rrule": "FREQ=HOURLY"}]}"#,
        "spec.windows[0].rrule",
        "FREQ=DAILY, WEEKLY",
    ),
    (
        r#"{"windows": [{"rrule": "every month"}]}"#,
        "spec.windows[0].rrule",
        "FREQ=DAILY, WEEKLY",
    ),
    (
        r#"{"windows": [{"rrule": "FREQ=DAILY;BYHOUR=3"}]}"#,
        "spec.windows[0].rrule",
        "start and end",
    ),
    (
        r#"{"windows": [{"excludedDates": ["24.12.2026"]}]}"#,
        "spec.windows[0].excludedDates[0]",
        "like 2026-12-24",
    ),
    (
        r#"{"windows": [{"excludedDates": ["2026-13-01"]}]}"#,
        "spec.windows[0].excludedDates[0]",
        "like 2026-12-24",
    ),
    (
        r#"{"windows": [{"excludedDates": ["2026-12-20..01-06"]}]}"#,
        "spec.windows[0].excludedDates[0]",
        "a span like 12-20..01-06",
    ),
    (
        r#"{"windows": [{"excludedDates": ["2027-01-06..2026-12-20"]}]}"#,
        "spec.windows[0].excludedDates[0]",
        "the earlier date of a span first",
    ),
    (
        r#"{"minInterval": "1d"}"#,
        "spec.minInterval",
        "a day is 24h",
    ),
    (r#"{"minInterval": 3600}"#, "spec.minInterval", "string"),
    (
        r#"{"drain": {"timeout": "-1h"}}"#,
        "spec.drain.timeout",
        "like 90s",
    ),
    (
        r#"{"drain": {"timeout": "0s"}}"#,
        "spec.drain.timeout",
        "longer than zero",
    ),
    (
        r#"{"drain": {"timeout": "0h0.0m"}}"#,
        "spec.drain.timeout",
        "longer than zero",
    ),
    (
        r#"{"drain": {"timeout": "90"}}"#,
        "spec.drain.timeout",
        "like 90s",
    ),
    (
        r#"{"drain": {"timeout": ""}}"#,
        "spec.drain.timeout",
        "like 90s",
    ),
    (
        r#"{"drain": {"onTimeout": "Abort"}}"#,
        "spec.drain.onTimeout",
        "\"abort\", \"delete\", \"force\"",
    ),
    (
        r#"{"drain": {"rules": [{"do": "WaitCompleted"}]}}"#,
        "spec.drain.rules[0]",
        "timeout with do: WaitCompleted",
    ),
    (
        r#"{"drain": {"rules": [{"do": "RollFirst"}]}}"#,
        "spec.drain.rules[0]",
        "timeout with do: WaitCompleted or RollFirst",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Evict", "timeout": "1h"}]}}"#,
        "spec.drain.rules[0]",
        "timeout with do: WaitCompleted",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Skip"}]}}"#,
        "spec.drain.rules[0]",
        "every pod would stay",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Skip", "order": 1, "pods": {"selector": {"matchLabels": {"a": "b"}}}}]}}"#,
        "spec.drain.rules[0]",
        "leave order out",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Skip", "pods": {"selector": {}}}]}}"#,
        "spec.drain.rules[0].pods.selector",
        "at least one label",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Evict", "pods": {}}]}}"#,
        "spec.drain.rules[0].pods",
        "leave pods out",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Evict"}, {"do": "Delete"}]}}"#,
        "spec.drain.rules",
        "hides the rules after it",
    ),
    (
        r#"{"drain": {"rules": [{"do": "Drain"}]}}"#,
        "spec.drain.rules[0].do",
        "WaitCompleted",
    ),
    (
        r#"{"drain": {"honor": ["example.com/stay"]}}"#,
        "spec.drain.honor[0]",
        "karpenter.sh/do-not-disrupt",
    ),
    (
        r#"{"drain": {"honor": ["cluster.x-k8s.io/drain", "cluster.x-k8s.io/drain"]}}"#,
        "spec.drain.honor[1]",
        "Duplicate",
    ),
    (
        r#"{"drain": {"exclude": {}}}"#,
        "spec.drain.exclude",
        "every pod",
    ),
    (
        r#"{"reboot": {"timeout": "ten minutes"}}"#,
        "spec.reboot.timeout",
        "like 90s",
    ),
    (
        r#"{"reboot": {"attempts": 0}}"#,
        "spec.reboot.attempts",
        "greater than or equal to 1",
    ),
    (
        r#"{"reboot": {"attempts": 11}}"#,
        "spec.reboot.attempts",
        "less than or equal to 10",
    ),
    (
        r#"{"reboot": {"command": "halt"}}"#,
        "spec.reboot.command",
        "unknown field",
    ),
    (
        r#"{"return": {"settle": "1w"}}"#,
        "spec.return.settle",
        "like 90s",
    ),
    (
        r#"{"return": {"gates": ["Weather"]}}"#,
        "spec.return.gates[0]",
        "\"Volumes\"",
    ),
    (
        r#"{"return": {"gateTimeout": "0"}}"#,
        "spec.return.gateTimeout",
        "longer than zero",
    ),
    (
        r#"{"return": {"onGateTimeout": "wait"}}"#,
        "spec.return.onGateTimeout",
        "\"keep\", \"release\"",
    ),
    (
        r#"{"rollout": {}}"#,
        "spec.rollout",
        "at least 1 properties",
    ),
    (
        r#"{"rollout": {"canary": {"soak": "1h"}}}"#,
        "spec.rollout.canary.nodes",
        "Required",
    ),
    (
        r#"{"rollout": {"canary": {"nodes": 1, "soak": "3d"}}}"#,
        "spec.rollout.canary.soak",
        "a day is 24h",
    ),
    (
        r#"{"rollout": {"ramp": [2, 1]}}"#,
        "spec.rollout.ramp",
        "ascending",
    ),
    (
        r#"{"rollout": {"ramp": [1, 1]}}"#,
        "spec.rollout.ramp",
        "ascending",
    ),
    (
        r#"{"rollout": {"ramp": [0, 1]}}"#,
        "spec.rollout.ramp[0]",
        "greater than or equal to 1",
    ),
    (
        r#"{"rollout": {"haltAfterFailures": 0}}"#,
        "spec.rollout.haltAfterFailures",
        "greater than or equal to 1",
    ),
    (
        r#"{"maxUnavailable": "10%", "maxUnavailableNodes": 0}"#,
        "spec.maxUnavailableNodes",
        "greater than or equal to 1",
    ),
    (
        r#"{"maxUnavailableNodes": "10%"}"#,
        "spec.maxUnavailableNodes",
        "integer",
    ),
    (
        r#"{"return": {"ready": [{}]}}"#,
        "spec.return.ready[0]",
        "exactly one of condition, noTaint and resource",
    ),
    (
        r#"{"return": {"ready": [{"noTaint": "a/b", "resource": "a/b"}]}}"#,
        "spec.return.ready[0]",
        "exactly one of condition, noTaint and resource",
    ),
    (
        r#"{"return": {"ready": [{"noTaint": "node.kubernetes.io/unschedulable"}]}}"#,
        "spec.return.ready[0]",
        "it is the cordon",
    ),
    (
        r#"{"return": {"ready": [{"resource": "cpu"}]}}"#,
        "spec.return.ready[0].resource",
        "extended resource like",
    ),
    (
        r#"{"return": {"ready": [{"condition": {"type": "GpuHealthy", "status": "Yes"}}]}}"#,
        "spec.return.ready[0].condition.status",
        "\"True\"",
    ),
    (
        r#"{"return": {"ready": [{"resource": "a/b"}, {"resource": "a/b"}]}}"#,
        "spec.return.ready",
        "each check once",
    ),
    (
        r#"{"return": {"ready": []}}"#,
        "spec.return.ready",
        "at least 1",
    ),
    (
        r#"{"return": {"ready": [{"resource": "a/1"}, {"resource": "a/2"}, {"resource": "a/3"}, {"resource": "a/4"}, {"resource": "a/5"}, {"resource": "a/6"}, {"resource": "a/7"}, {"resource": "a/8"}, {"resource": "a/9"}, {"resource": "a/10"}, {"resource": "a/11"}, {"resource": "a/12"}, {"resource": "a/13"}, {"resource": "a/14"}, {"resource": "a/15"}, {"resource": "a/16"}, {"resource": "a/17"}]}}"#,
        "spec.return.ready",
        "16",
    ),
    (
        r#"{"return": {"readyTimeout": "0s"}}"#,
        "spec.return.readyTimeout",
        "longer than zero",
    ),
    (
        r#"{"return": {"onReadyTimeout": "wait"}}"#,
        "spec.return.onReadyTimeout",
        "\"Keep\", \"Proceed\"",
    ),
    (
        r#"{"gates": [{}]}"#,
        "spec.gates[0]",
        "either pods or prometheus",
    ),
    (
        r#"{"gates": [{"pods": {"selector": {"matchLabels": {"a": "b"}}}, "prometheus": {"url": "http://p", "query": "up"}}]}"#,
        "spec.gates[0]",
        "either pods or prometheus",
    ),
    (
        r#"{"gates": [{"pods": {}}]}"#,
        "spec.gates[0].pods.selector",
        "Required",
    ),
    (
        r#"{"gates": [{"pods": {"selector": {}}}]}"#,
        "spec.gates[0].pods.selector",
        "at least one label",
    ),
    (
        r#"{"gates": [{"prometheus": {"query": "up"}}]}"#,
        "spec.gates[0].prometheus.url",
        "Required",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "http://p"}}]}"#,
        "spec.gates[0].prometheus",
        "either query or alerts",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "http://p", "query": "up", "alerts": {}}}]}"#,
        "spec.gates[0].prometheus",
        "either query or alerts",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "ftp://p", "query": "up"}}]}"#,
        "spec.gates[0].prometheus.url",
        "https://",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "p:9090", "query": "up"}}]}"#,
        "spec.gates[0].prometheus.url",
        "https://",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "http://a:b@p", "query": "up"}}]}"#,
        "spec.gates[0].prometheus.url",
        "--prometheus-token-file",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "http://p?x=1", "query": "up"}}]}"#,
        "spec.gates[0].prometheus.url",
        "out of the address",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "http://p", "query": ""}}]}"#,
        "spec.gates[0].prometheus.query",
        "at least 1",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "http://p", "alerts": {"ignore": "("}}}]}"#,
        "spec.gates[0].prometheus.alerts.ignore",
        "regular expression",
    ),
    (
        r#"{"gates": [{"prometheus": {"url": "http://p", "alerts": {"only": "a{2,1}"}}}]}"#,
        "spec.gates[0].prometheus.alerts.only",
        "regular expression",
    ),
    (
        r#"{"maxUnavailible": 1}"#,
        "spec.maxUnavailible",
        "unknown field",
    ),
];

#[tokio::test]
async fn bad_input_is_refused_with_the_field_named_and_what_to_write() {
    let client = client().await;
    POLICIES
        .refuses(&client, "workers", REFUSED, &policy_crd())
        .await;
}

#[tokio::test]
async fn too_much_is_refused() {
    let client = client().await;
    let window = json!({ "days": ["Mon"] });
    let gate = json!({ "pods": { "selector": { "matchLabels": { "a": "b" } } } });
    let dates: Vec<String> = (0..200).map(|day| format!("2{day:03}-01-01")).collect();
    for (spec, field) in [
        (json!({ "windows": vec![window; 17] }), "spec.windows"),
        (json!({ "gates": vec![gate; 17] }), "spec.gates"),
        (
            json!({ "rollout": { "ramp": (1..=21).collect::<Vec<u32>>() } }),
            "spec.rollout.ramp",
        ),
        (
            json!({ "windows": [{ "excludedDates": dates }] }),
            "spec.windows[0].excludedDates",
        ),
        (
            json!({ "paused": { "reason": "x".repeat(513) } }),
            "spec.paused.reason",
        ),
        (
            json!({ "minInterval": "1".repeat(40) + "h" }),
            "spec.minInterval",
        ),
    ] {
        let message = admitted(&client, "workers", &spec).await.unwrap_err();
        assert!(message.contains(&format!("{field}: Too ")), "{message}");
    }
}

#[tokio::test]
async fn a_name_that_cannot_be_a_group_is_refused() {
    let client = client().await;
    let long = "a".repeat(51);
    for (name, says) in [
        ("a.b", "name of its group"),
        ("remedy", "not `remedy`"),
        ("remedy-n1", "not `remedy`"),
        (long.as_str(), "50"),
    ] {
        let message = admitted(&client, name, &json!({})).await.unwrap_err();
        assert!(
            message.contains("metadata.name") && message.contains(says),
            "{name}: {message}"
        );
    }
    let role = "node-role.kubernetes.io/control-plane";
    for selector in [
        json!({}),
        json!({ "matchLabels": { "a": "b" } }),
        json!({ "matchExpressions": [{ "key": role, "operator": "DoesNotExist" }] }),
    ] {
        let spec = json!({ "nodeSelector": selector });
        let message = admitted(&client, "control-plane", &spec).await.unwrap_err();
        assert!(
            message.contains("spec.nodeSelector") && message.contains(role),
            "{message}"
        );
    }
}

const TAKEN: &[(&str, &str)] = &[
    ("workers", "{}"),
    ("default", r#"{"maxUnavailable": "100%"}"#),
    (
        "0a",
        r#"{"maxUnavailable": 10000, "priority": -1000000000}"#,
    ),
    (
        "control-plane",
        r#"{"nodeSelector": {"matchLabels": {"node-role.kubernetes.io/control-plane": ""}}}"#,
    ),
    (
        "control-plane",
        r#"{"nodeSelector": {"matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}}"#,
    ),
    ("workers", r#"{"nodeSelector": {}, "paused": {}}"#),
    (
        "workers",
        r#"{"paused": {"reason": "freeze", "until": "2026-12-24T18:00:00.5+01:00"}}"#,
    ),
    (
        "workers",
        r#"{"topologyKey": "topology.kubernetes.io/zone", "minInterval": "0"}"#,
    ),
    (
        "workers",
        r#"{"windows": [{"start": "00:00", "end": "24:00", "timeZone": "America/Argentina/Buenos_Aires"}]}"#,
    ),
    (
        "workers",
        r#"{"windows": [{"days": ["Sat", "Sun"]}, {"rrule": "freq=monthly;byday=2tu", "excludedDates": ["2024-02-29", "12-20..01-06", "02-29", "2026-12-20..2027-01-06"]}]}"#,
    ),
    (
        "workers",
        r#"{"windows": [{"rrule": "DTSTART:20260105\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "start": "22:00", "end": "22:00"}]}"#,
    ),
    (
        "workers",
        r#"{"windows": [{"rrule": "INTERVAL=2;FREQ=WEEKLY;BYDAY=TU,TH\n"}]}"#,
    ),
    (
        "workers",
        r#"{"drain": {"timeout": "1h30m", "onTimeout": "delete", "exclude": {"matchLabels": {"a/b": ""}}}}"#,
    ),
    (
        "workers",
        r#"{"drain": {"honor": ["karpenter.sh/do-not-disrupt"], "rules": [{"do": "WaitCompleted", "timeout": "6h", "order": -1, "pods": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}, {"do": "RollFirst", "timeout": "10m", "order": 2, "pods": {"selector": {"matchLabels": {"a": "b"}}}}, {"do": "Delete"}]}}"#,
    ),
    (
        "workers",
        r#"{"reboot": {"timeout": "1.5h", "attempts": 10, "escalate": true}}"#,
    ),
    (
        "workers",
        r#"{"return": {"settle": "0s", "gates": [], "gateTimeout": "500ms", "onGateTimeout": "release"}}"#,
    ),
    (
        "workers",
        r#"{"maxUnavailable": "10%", "maxUnavailableNodes": 5}"#,
    ),
    (
        "workers",
        r#"{"rollout": {"canary": {"nodes": 2, "soak": "1h"}, "ramp": [1, 2, 4], "haltAfterFailures": 2}}"#,
    ),
    ("workers", r#"{"rollout": {"canary": {"nodes": 0}}}"#),
    (
        "workers",
        r#"{"return": {"ready": [{"condition": {"type": "example.com/GpuHealthy", "status": "False"}}, {"noTaint": "a.example/b"}, {"noTaint": "startup"}, {"resource": "nvidia.com/gpu"}, {"resource": "hugepages-1Gi"}], "readyTimeout": "20m", "onReadyTimeout": "Proceed"}}"#,
    ),
    (
        "workers",
        r#"{"gates": [{"pods": {"selector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}}}]}"#,
    ),
    (
        "workers",
        r#"{"gates": [{"prometheus": {"url": "https://[2001:db8::1]:9090/prom", "alerts": {}}}]}"#,
    ),
    (
        "workers",
        r#"{"gates": [{"prometheus": {"url": "http://p:9090/", "query": "up{job=\"a\"} == 0"}}]}"#,
    ),
    (
        "workers",
        r#"{"gates": [{"prometheus": {"url": "http://p", "alerts": {"ignore": "^(A|B.*)$", "firingOnly": true}}}]}"#,
    ),
];

#[tokio::test]
async fn what_is_taken_is_understood() {
    let client = client().await;
    for (name, spec) in TAKEN {
        let stored = admitted(&client, name, &serde_json::from_str(spec).unwrap()).await;
        let stored = stored.unwrap_or_else(|message| panic!("{spec}: {message}"));
        let policy = convert_policy(name, &stored["spec"]);
        assert_eq!(policy.problems, Vec::<String>::new(), "{spec}");
    }
}

#[tokio::test]
async fn the_example_of_the_docs_is_taken() {
    client().await;
    let docs = include_str!("../../../docs/reboot-policy.md");
    let (_, rest) = docs.split_once("```yaml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let plane = dogwatch_testbed::shared_control_plane().await;
    let create = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
    plane.run_kubectl(&create, example).await.unwrap();
}

#[tokio::test]
async fn a_pause_without_a_reason_says_so() {
    let stored = admitted(&client().await, "workers", &json!({ "paused": {} }))
        .await
        .unwrap();
    assert_eq!(stored["spec"]["paused"]["reason"], "no reason given");
}

#[tokio::test]
async fn what_the_controller_may_write_is_taken() {
    let client = client().await;
    let spec = json!({ "maxUnavailable": "10%", "paused": { "reason": "freeze" } });
    let policy = POLICIES.object("written", &spec);
    POLICIES.send(&client, "POST", "", &policy).await.unwrap();
    let since = "2026-01-01T00:00:00.123456Z";
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({ "type": kind, "status": status, "reason": reason, "message": "",
            "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let status = json!({ "observedGeneration": 1, "nodes": 20, "ready": 19, "blocked": 3, "outTotal": 1,
        "out": [{ "node": "n1", "phase": "draining", "since": since, "reason": "kernel" }],
        "waitingTotal": 12,
        "waiting": vec![json!({ "node": "n2", "since": since, "reason": "Paused", "message": "freeze" }); 10],
        "conflicts": [{ "policy": "gpu", "nodes": 2, "example": "n3" }],
        "rollout": { "shape": "ramp 1", "phase": "Ramping", "limit": 1, "step": 0, "successes": 0, "failures": 1,
            "underWay": [{ "node": "n1", "uid": "u1", "bootId": "b1" }],
            "failed": [{ "node": "n4", "uid": "u4", "bootId": "b4", "reason": "RebootFailed" }],
            "canaries": [{ "node": "n5", "uid": "u5", "bootId": "b5", "done": true }],
            "soakEnds": since, "quietSince": since,
            "halted": { "since": since, "reason": "1 failure: n4 RebootFailed" } },
        "conditions": [condition("Accepted", "True", "Valid"), condition("Blocked", "True", "Paused")] });
    let change = json!({ "status": status });
    let stored = POLICIES.send(&client, "PATCH", "/written/status", &change);
    let stored = stored.await.unwrap();
    assert_eq!(stored["status"], status);

    let plane = dogwatch_testbed::shared_control_plane().await;
    let table = plane
        .run_kubectl(&["get", "rp", "written"], "")
        .await
        .unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        [
            "NAME", "NODES", "OUT", "WAITING", "MAX", "PAUSED", "BLOCKED", "REASON", "AGE"
        ]
    );
    assert_eq!(
        rows[1][..8],
        [
            "written", "20", "1", "12", "10%", "freeze", "True", "Paused"
        ]
    );
    let wide = plane
        .run_kubectl(&["get", "rp", "written", "-o", "wide"], "")
        .await
        .unwrap();
    assert!(
        wide.contains("ACCEPTED") && wide.contains("PRIORITY"),
        "{wide}"
    );
    let explained = plane
        .run_kubectl(&["explain", "rp.spec.windows.rrule"], "")
        .await
        .unwrap();
    assert!(explained.contains("FREQ=MONTHLY;BYDAY=2TU"), "{explained}");
}

#[tokio::test]
async fn a_change_is_held_to_the_same_rules() {
    let client = client().await;
    let policy = POLICIES.object("changed", &json!({ "maxUnavailable": 1 }));
    POLICIES.send(&client, "POST", "", &policy).await.unwrap();
    let change = json!({ "spec": { "maxUnavailable": "0%" } });
    let answer = POLICIES.send(&client, "PATCH", "/changed", &change).await;
    let message = answer.unwrap_err();
    assert!(message.contains("spec.maxUnavailable"), "{message}");
}
