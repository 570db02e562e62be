//! The types and the schema agree.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::json;

use super::*;
use crate::schema::check::{
    assert_same_fields, parts_without_bound, parts_without_description, schema_of,
    undocumented_fields,
};
use crate::selector::LabelSelector;

/// Sets every field of every type: a new field does not compile until it is added here, and then
/// the schema must have it.
fn full() -> RebootPolicy {
    let mut policy = RebootPolicy::new("workers", spec());
    policy.status = Some(status());
    policy
}

fn drain_rule() -> DrainRuleSpec {
    DrainRuleSpec {
        pods: Some(DrainRulePods {
            selector: Some(selector()),
            namespace_selector: Some(selector()),
        }),
        action: DrainRuleAction::WaitCompleted,
        order: Some(1),
        timeout: some("1h"),
    }
}

fn rollout() -> RolloutSpec {
    RolloutSpec {
        canary: Some(CanarySpec {
            nodes: 2,
            soak: some("1h"),
        }),
        ramp: Some(vec![1, 2, 4]),
        halt_after_failures: Some(2),
    }
}

fn spec() -> RebootPolicySpec {
    RebootPolicySpec {
        node_selector: Some(selector()),
        priority: Some(1),
        max_unavailable: Some(MaxUnavailable::Percent("10%".into())),
        max_unavailable_nodes: Some(5),
        topology_key: some("topology.kubernetes.io/zone"),
        rollout: Some(rollout()),
        paused: Some(PausedSpec {
            reason: some("release freeze"),
            until: some("2026-12-24T18:00:00Z"),
        }),
        windows: Some(vec![PolicyWindow {
            days: Some(vec!["Mon".into()]),
            start: some("22:00"),
            end: some("04:00"),
            time_zone: some("Europe/Berlin"),
            rrule: some("FREQ=DAILY"),
            excluded_dates: Some(vec!["2026-12-24".into()]),
        }]),
        min_interval: some("24h"),
        drain: Some(DrainSpec {
            timeout: some("1h"),
            on_timeout: Some(OnDrainTimeoutSpec::Abort),
            volume_detach_timeout: some("2m"),
            exclude: Some(selector()),
            rules: Some(vec![drain_rule()]),
            honor: Some(vec![HonoredMark::ClusterApiDrain]),
        }),
        reboot: Some(RebootSpec {
            timeout: some("30m"),
            attempts: Some(2),
            accept_soft: Some(true),
            mute_nvsentinel: Some(true),
            escalate: Some(true),
        }),
        on_return: Some(ReturnSpec {
            settle: some("30s"),
            gates: Some(ReturnGate::ALL.into()),
            gate_timeout: some("15m"),
            on_gate_timeout: Some(OnGateTimeoutSpec::Keep),
            ready: Some(vec![ReadyCheckSpec {
                condition: Some(ReadyConditionSpec {
                    kind: "GpuHealthy".into(),
                    status: ReadyConditionStatus::True,
                }),
                no_taint: some("example.com/starting"),
                resource: some("nvidia.com/gpu"),
            }]),
            ready_timeout: some("15m"),
            on_ready_timeout: Some(OnReadyTimeoutSpec::Keep),
        }),
        gates: Some(vec![GateSpec {
            pods: Some(PodsGateSpec {
                selector: selector(),
            }),
            prometheus: Some(PrometheusGateSpec {
                url: "https://prometheus.monitoring.svc:9090".into(),
                query: some("ALERTS"),
                alerts: Some(AlertsSpec {
                    ignore: some("Watchdog"),
                    only: some("Node.*"),
                    firing_only: Some(true),
                }),
            }),
        }]),
    }
}

fn status() -> RebootPolicyStatus {
    let since = Some("2026-01-01T00:00:00Z".parse().unwrap());
    RebootPolicyStatus {
        observed_generation: Some(1),
        nodes: 1,
        ready: 1,
        blocked: 1,
        out_total: 1,
        out: vec![OutNode {
            node: "n1".into(),
            phase: "draining".into(),
            since,
            reason: "kernel".into(),
        }],
        waiting_total: 1,
        waiting: vec![WaitingNode {
            node: "n2".into(),
            since,
            reason: "InTurn".into(),
            message: "n1 is out".into(),
        }],
        conflicts: vec![PolicyConflictStatus {
            policy: "gpu".into(),
            nodes: 1,
            example: "n3".into(),
        }],
        rollout: Some(rollout_state()),
        conditions: vec![Condition {
            type_: condition::ACCEPTED.into(),
            status: "True".into(),
            reason: "Valid".into(),
            message: String::new(),
            last_transition_time: Time("2026-01-01T00:00:00Z".parse().unwrap()),
            observed_generation: Some(1),
        }],
    }
}

fn rollout_state() -> PolicyRolloutState {
    let at: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    PolicyRolloutState {
        shape: "canary 2, soak 1h".into(),
        phase: RolloutPhase::Soaking,
        canaries: vec![CanaryNode {
            node: "n1".into(),
            uid: "u1".into(),
            boot_id: "b1".into(),
            done: true,
        }],
        soak_ends: Some(at),
        limit: Some(2),
        step: 1,
        successes: 1,
        under_way: vec![RolloutNode {
            node: "n2".into(),
            uid: "u2".into(),
            boot_id: "b2".into(),
        }],
        failures: 1,
        failed: vec![FailedRolloutNode {
            node: "n3".into(),
            uid: "u3".into(),
            boot_id: "b3".into(),
            reason: "RebootFailed".into(),
            counted: Some(true),
        }],
        halted: Some(RolloutHalt {
            since: at,
            reason: "n3: RebootFailed".into(),
        }),
        quiet_since: Some(at),
    }
}

fn selector() -> LabelSelector {
    let text = json!({ "matchLabels": { "a": "b" },
        "matchExpressions": [{ "key": "c", "operator": "In", "values": ["d"] }] });
    serde_json::from_value(text).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "most fields are optional")]
fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn the_schema_knows_every_field_of_the_types_and_no_other() {
    assert_same_fields(&full(), &policy_crd());
}

#[test]
fn a_policy_reads_back_as_it_was_written() {
    let text = serde_json::to_string(&full()).unwrap();
    assert_eq!(serde_json::from_str::<RebootPolicy>(&text).unwrap(), full());
}

#[test]
fn a_field_that_this_version_does_not_know_is_no_silent_loss() {
    for spec in [
        json!({ "newRule": 1 }),
        json!({ "drain": { "newRule": 1 } }),
    ] {
        assert!(serde_json::from_value::<RebootPolicySpec>(spec).is_err());
    }
}

#[test]
fn every_field_explains_itself_to_kubectl() {
    assert_eq!(
        parts_without_description(&schema_of(&policy_crd())),
        Vec::<String>::new()
    );
}

#[test]
fn every_text_and_list_of_the_spec_has_a_largest_size() {
    assert_eq!(
        parts_without_bound(&schema_of(&policy_crd())),
        Vec::<String>::new()
    );
}

#[test]
fn a_policy_is_called_what_its_group_can_be_called() {
    for good in ["default", "workers-1", "a", &"a".repeat(50)] {
        assert_eq!(policy_name_problem(good), None, "{good}");
    }
    for bad in [
        "",
        "a.b",
        "Workers",
        "-a",
        "remedy",
        "remedy-x",
        &"a".repeat(51),
    ] {
        assert_eq!(policy_name_problem(bad), Some(POLICY_NAME_RULE), "{bad}");
    }
}

#[test]
fn the_docs_name_every_field_of_the_spec() {
    let page = include_str!("../../../../docs/reboot-policy.md");
    assert_eq!(
        undocumented_fields(&policy_crd(), page),
        Vec::<String>::new()
    );
}
