use super::*;
use crate::policy::ReturnGate;
use crate::reboot::{OnGateTimeout, OnTimeout};
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
        max_unavailable: Some(Limit::Count(5)),
        topology_key: Some("zone".into()),
        ..Policy::silent(GroupName::new(name).unwrap())
    }
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}

fn known(policies: &[Policy]) -> Policies {
    Policies::Known(policies.to_vec())
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
    let ruler = ruling(&all, &worker).unwrap();
    assert_eq!(ruler.name.as_str(), "b");
    let lost = conflicts(&all, &worker);
    let lost: Vec<&str> = lost.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(lost, ["c", "a"]);
    assert!(conflicts(&all[..1], &worker).is_empty());
    assert!(ruling(&all[..1], &labels(&[])).is_none());
}

#[test]
fn a_control_plane_node_is_in_a_group_of_one_unless_a_policy_names_the_role() {
    let master = labels(&[(CONTROL_PLANE, ""), ("pool", "w")]);
    let flags = Config {
        max_unavailable: Limit::Count(7),
        ..Config::default()
    };
    let by_role = policy("masters", 0, &[(CONTROL_PLANE, "")]);
    let mut not_named = policy("rest", 0, &[]);
    not_named.drain.timeout = Some(Duration::from_secs(9));
    let table = [
        (known(&[]), "control-plane", 1),
        (Policies::NotYet, "control-plane", 1),
        (known(&[not_named.clone()]), "control-plane", 1),
        (known(&[by_role]), "masters", 5),
    ];
    for (policies, group, max) in table {
        let rule = rule(&policies, &master, &flags);
        assert_eq!(rule.group.as_str(), group);
        assert_eq!(super::group(&policies, &master), rule.group);
        assert_eq!(rule.config.max_unavailable, Limit::Count(max), "{group}");
    }
    let policies = known(&[not_named]);
    let ruled = rule(&policies, &master, &flags);
    assert!(
        ruled.policy.is_some(),
        "its pause, windows and gates hold all the same"
    );
    assert_eq!(ruled.config.drain_timeout, Duration::from_secs(9));
}

#[test]
fn a_worker_is_in_the_group_of_its_policy_or_in_the_default_one() {
    let worker = labels(&[("pool", "w"), ("zone", "z1")]);
    let flags = Config {
        max_unavailable: Limit::Count(7),
        ..Config::default()
    };
    let unreadable = Policies::Unreadable { why: "403".into() };
    let ruled = known(&[policy("w", 0, &[("pool", "w")])]);
    for (policies, group, max, zone) in [
        (known(&[]), "default", 7, None),
        (unreadable, "default", 7, None),
        (ruled, "w", 5, Some("z1")),
    ] {
        let rule = rule(&policies, &worker, &flags);
        assert_eq!(
            (rule.group.as_str(), rule.config.max_unavailable),
            (group, Limit::Count(max))
        );
        assert_eq!(super::zone(&policies, &worker).as_deref(), zone);
    }
}

/// One field of a policy, and the configuration that comes of it.
type Field = (fn(&mut Policy), fn(&mut Config));

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn each_field_of_a_policy_goes_before_its_flag_and_a_silent_one_does_not() {
    let fields: [Field; 12] = [
        (
            |policy| policy.max_unavailable = Some(Limit::Percent(30)),
            |config| config.max_unavailable = Limit::Percent(30),
        ),
        (
            |policy| policy.drain.timeout = Some(Duration::from_secs(1)),
            |config| config.drain_timeout = Duration::from_secs(1),
        ),
        (
            |policy| policy.drain.on_timeout = Some(OnTimeout::Force),
            |config| config.on_drain_timeout = OnTimeout::Force,
        ),
        (
            |policy| policy.drain.volume_detach_timeout = Some(Duration::from_secs(7)),
            |config| config.volume_detach_timeout = Duration::from_secs(7),
        ),
        (
            |policy| policy.drain.exclude = Some(LabelSelector::default()),
            |config| config.exclude = Some(LabelSelector::default()),
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
            |policy| policy.on_return.on_gate_timeout = Some(OnGateTimeout::Release),
            |config| config.on_gate_timeout = OnGateTimeout::Release,
        ),
    ];
    let silent = Policy {
        max_unavailable: None,
        ..policy("p", 0, &[])
    };
    let flags = Config {
        max_unavailable: Limit::Count(7),
        reboot_attempts: 4,
        ..Config::default()
    };
    let policies = known(std::slice::from_ref(&silent));
    assert_eq!(rule(&policies, &labels(&[]), &flags).config, flags);
    for (says, comes) in fields {
        let (mut policy, mut expected) = (silent.clone(), flags.clone());
        says(&mut policy);
        comes(&mut expected);
        assert_ne!(expected, flags);
        let policies = known(&[policy]);
        assert_eq!(rule(&policies, &labels(&[]), &flags).config, expected);
    }
}
