//! `return.ready`: what must hold on a Node before it is uncordoned after a reboot. Source:
//! specification §10.3.

use std::time::Duration;

use jiff::Timestamp;

use crate::reboot::ObservedNode;

/// `return.readyTimeout` where the policy names none.
pub const DEFAULT_READY_TIMEOUT: Duration = Duration::from_mins(15);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadyCheck {
    Condition {
        /// The condition's type.
        kind: String,
        /// The status that it must have.
        status: String,
    },
    /// The Node must have no taint with this key.
    NoTaint { key: String },
    /// The Node's allocatable amount of this resource must be above zero.
    Resource { name: String },
    /// The policy's list cannot be parsed: never met.
    Unreadable,
}

/// What to do with a node whose checks are not met in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadyTimeoutAction {
    /// Keep cordon and lock, and report it.
    #[default]
    Keep,
    /// Uncordon all the same, and report it.
    Proceed,
}

/// What each unmet check found, in words. A condition counts if it was written after `boot_seen`: a
/// status from before the boot says nothing about the devices and drivers of this one.
pub fn unmet_ready_checks(
    checks: &[ReadyCheck],
    node: &ObservedNode,
    boot_seen: Timestamp,
) -> Vec<String> {
    let unmet = |check| describe_unmet_check(check, node, boot_seen);
    checks.iter().filter_map(unmet).collect()
}

fn describe_unmet_check(
    check: &ReadyCheck,
    node: &ObservedNode,
    boot_seen: Timestamp,
) -> Option<String> {
    match check {
        ReadyCheck::Condition { kind, status } => {
            describe_unmet_condition(kind, status, node, boot_seen)
        }
        ReadyCheck::NoTaint { key } => {
            let tainted = node.taint_keys.contains(key);
            tainted.then(|| format!("the Node has taint {key}"))
        }
        ReadyCheck::Resource { name } => {
            let missing = !node.extended_resources.contains(name);
            missing.then(|| format!("the Node has no allocatable {name}"))
        }
        ReadyCheck::Unreadable => Some("return.ready of the policy cannot be parsed".into()),
    }
}

fn describe_unmet_condition(
    kind: &str,
    wanted: &str,
    node: &ObservedNode,
    boot_seen: Timestamp,
) -> Option<String> {
    let mut conditions = node.conditions.iter();
    let Some(condition) = conditions.find(|condition| condition.kind == kind) else {
        return Some(format!("the Node has no condition {kind}"));
    };
    if condition.status != wanted {
        let is = &condition.status;
        return Some(format!("condition {kind} is {is} and must be {wanted}"));
    }
    let written = condition.last_heartbeat.max(condition.last_transition);
    let is_old = written.is_none_or(|written| written < boot_seen);
    is_old.then(|| format!("condition {kind} was not updated since the boot"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::CurrentCondition;
    use crate::explain::testkit;

    fn written(kind: &str, status: &str, transition: i64, heartbeat: i64) -> CurrentCondition {
        CurrentCondition {
            kind: kind.into(),
            status: status.into(),
            reason: String::new(),
            message: String::new(),
            last_transition: Timestamp::from_second(transition).ok(),
            last_heartbeat: Timestamp::from_second(heartbeat).ok(),
        }
    }

    fn gpu_node() -> ObservedNode {
        ObservedNode {
            taint_keys: vec!["example.com/starting".into()],
            extended_resources: vec!["nvidia.com/gpu".into()],
            conditions: vec![
                written("Fresh", "True", 50, 150),
                written("Flipped", "True", 150, 50),
                written("Stale", "True", 50, 50),
                written("Bad", "False", 150, 150),
            ],
            ..testkit::node("n1")
        }
    }

    fn condition(kind: &str, status: &str) -> ReadyCheck {
        ReadyCheck::Condition {
            kind: kind.into(),
            status: status.into(),
        }
    }

    #[test]
    fn each_check_says_what_it_found() {
        let key = |key: &str| ReadyCheck::NoTaint { key: key.into() };
        let name = |name: &str| ReadyCheck::Resource { name: name.into() };
        let table = [
            (condition("Fresh", "True"), None),
            (condition("Flipped", "True"), None),
            (condition("Bad", "False"), None),
            (
                condition("Stale", "True"),
                Some("not updated since the boot"),
            ),
            (condition("Bad", "True"), Some("is False and must be True")),
            (condition("Gone", "True"), Some("has no condition Gone")),
            (key("example.com/other"), None),
            (key("example.com/starting"), Some("has taint")),
            (name("nvidia.com/gpu"), None),
            (name("amd.com/gpu"), Some("no allocatable amd.com/gpu")),
            (ReadyCheck::Unreadable, Some("cannot be parsed")),
        ];
        for (check, says) in table {
            let boot_seen = Timestamp::from_second(100).unwrap();
            let unmet = unmet_ready_checks(std::slice::from_ref(&check), &gpu_node(), boot_seen);
            match says {
                None => assert_eq!(unmet, Vec::<String>::new(), "{check:?}"),
                Some(says) => assert!(unmet[0].contains(says), "{check:?}: {unmet:?}"),
            }
        }
    }
}
