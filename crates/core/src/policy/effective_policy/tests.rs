use super::*;
use crate::policy::ReturnGate;
use crate::reboot::{DrainTimeoutAction, GateTimeoutAction};
use crate::selector::LabelSelector;
use std::time::Duration;

fn policy(name: &str, priority: i32, labels: &[(&str, &str)]) -> Policy {
    let selector = LabelSelector {
        match_labels: self::labels(labels),
        ..LabelSelector::default()
    };
    Policy {
        selector,
        priority,
        max_unavailable: Some(UnavailabilityLimit::Count(5)),
        topology_key: Some("zone".into()),
        ..Policy::without_rules(GroupName::new(name).unwrap())
    }
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}

fn known(policies: &[Policy]) -> ClusterPolicies {
    ClusterPolicies::Known(policies.to_vec())
}

#[test]
fn the_highest_priority_rules_then_the_first_name_and_the_others_lost() {
    let worker = labels(&[("pool", "w")]);
    let all = [
        policy("c", 1, &[("pool", "w")]),
        policy("b", 1, &[]),
        policy("a", 0, &[]),
        policy("z", 9, &[("pool", "other")]),
    ];
    let ruler = ruling_policy(&all, &worker).unwrap();
    assert_eq!(ruler.name.as_str(), "b");
    let lost = losing_policies(&all, &worker);
    let lost: Vec<&str> = lost.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(lost, ["c", "a"]);
    assert!(losing_policies(&all[..1], &worker).is_empty());
    assert!(ruling_policy(&all[..1], &labels(&[])).is_none());
}

#[test]
fn a_control_plane_node_is_in_a_group_of_one_unless_a_policy_names_the_role() {
    let master = labels(&[(CONTROL_PLANE, ""), ("pool", "w")]);
    let flags = RebootConfig {
        max_unavailable: UnavailabilityLimit::Count(7),
        ..RebootConfig::default()
    };
    let by_role = policy("masters", 0, &[(CONTROL_PLANE, "")]);
    let mut not_named = policy("rest", 0, &[]);
    not_named.drain.timeout = Some(Duration::from_secs(9));
    let table = [
        (known(&[]), "control-plane", 1),
        (ClusterPolicies::NotYetRead, "control-plane", 1),
        (known(&[not_named.clone()]), "control-plane", 1),
        (known(&[by_role]), "masters", 5),
    ];
    for (policies, group, max) in table {
        let rule = resolve_policy(&policies, &master, &flags);
        assert_eq!(rule.group.as_str(), group);
        assert_eq!(super::group_of_labels(&policies, &master), rule.group);
        assert_eq!(
            rule.config.max_unavailable,
            UnavailabilityLimit::Count(max),
            "{group}"
        );
    }
    let policies = known(&[not_named]);
    let ruled = resolve_policy(&policies, &master, &flags);
    assert!(
        ruled.policy.is_some(),
        "its pause, windows and gates hold all the same"
    );
    assert_eq!(ruled.config.drain_timeout, Duration::from_secs(9));
}

#[test]
fn a_worker_is_in_the_group_of_its_policy_or_in_the_default_one() {
    let worker = labels(&[("pool", "w"), ("zone", "z1")]);
    let flags = RebootConfig {
        max_unavailable: UnavailabilityLimit::Count(7),
        ..RebootConfig::default()
    };
    let unreadable = ClusterPolicies::Unreadable { why: "403".into() };
    let ruled = known(&[policy("w", 0, &[("pool", "w")])]);
    for (policies, group, max, zone) in [
        (known(&[]), "default", 7, None),
        (unreadable, "default", 7, None),
        (ruled, "w", 5, Some("z1")),
    ] {
        let rule = resolve_policy(&policies, &worker, &flags);
        assert_eq!(
            (rule.group.as_str(), rule.config.max_unavailable),
            (group, UnavailabilityLimit::Count(max))
        );
        assert_eq!(super::zone_of_labels(&policies, &worker).as_deref(), zone);
    }
}

/// Sets one field of a policy, and the setting that follows from it.
type Field = (fn(&mut Policy), fn(&mut RebootConfig));

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn each_field_of_a_policy_goes_before_its_flag_and_a_silent_one_does_not() {
    let fields: [Field; 12] = [
        (
            |policy| policy.max_unavailable = Some(UnavailabilityLimit::Percent(30)),
            |config| config.max_unavailable = UnavailabilityLimit::Percent(30),
        ),
        (
            |policy| policy.drain.timeout = Some(Duration::from_secs(1)),
            |config| config.drain_timeout = Duration::from_secs(1),
        ),
        (
            |policy| policy.drain.on_timeout = Some(DrainTimeoutAction::Force),
            |config| config.on_drain_timeout = DrainTimeoutAction::Force,
        ),
        (
            |policy| policy.drain.volume_detach_timeout = Some(Duration::from_secs(7)),
            |config| config.volume_detach_timeout = Duration::from_secs(7),
        ),
        (
            |policy| policy.drain.pods.exclude = Some(LabelSelector::default()),
            |config| config.pod_rules.exclude = Some(LabelSelector::default()),
        ),
        (
            |policy| policy.reboot.timeout = Some(Duration::from_secs(2)),
            |config| config.reboot_timeout = Duration::from_secs(2),
        ),
        (
            |policy| policy.reboot.attempts = Some(9),
            |config| config.reboot_attempts = 9,
        ),
        (
            |policy| policy.on_return.settle = Some(Duration::from_secs(3)),
            |config| config.settle = Duration::from_secs(3),
        ),
        (
            |policy| policy.on_return.gates = Some(vec![ReturnGate::Volumes]),
            |config| config.return_gates = vec![ReturnGate::Volumes],
        ),
        (
            |policy| policy.on_return.gates = Some(Vec::new()),
            |config| config.return_gates = Vec::new(),
        ),
        (
            |policy| policy.on_return.gate_timeout = Some(Duration::from_secs(4)),
            |config| config.gate_timeout = Duration::from_secs(4),
        ),
        (
            |policy| policy.on_return.on_gate_timeout = Some(GateTimeoutAction::Release),
            |config| config.on_gate_timeout = GateTimeoutAction::Release,
        ),
    ];
    let silent = Policy {
        max_unavailable: None,
        ..policy("p", 0, &[])
    };
    let flags = RebootConfig {
        max_unavailable: UnavailabilityLimit::Count(7),
        reboot_attempts: 4,
        ..RebootConfig::default()
    };
    let policies = known(std::slice::from_ref(&silent));
    assert_eq!(
        resolve_policy(&policies, &labels(&[]), &flags).config,
        flags
    );
    for (says, comes) in fields {
        let (mut policy, mut expected) = (silent.clone(), flags.clone());
        says(&mut policy);
        comes(&mut expected);
        assert_ne!(expected, flags);
        let policies = known(&[policy]);
        assert_eq!(
            resolve_policy(&policies, &labels(&[]), &flags).config,
            expected
        );
    }
}
