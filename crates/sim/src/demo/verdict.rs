//! The result of the demo's checks.

use super::run::Demo;
use super::{failed_node_checks, host_checks};
use crate::observer::{LEADER_LEASE, NodeView, ObservedKind, PodView, lease_holder};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoCheck {
    pub held: bool,
    pub what: String,
    /// The values on which the result rests.
    pub observed: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoVerdict(pub Vec<DemoCheck>);

impl DemoVerdict {
    pub fn has_passed(&self) -> bool {
        self.0.iter().all(|check| check.held)
    }
}

pub(super) fn judge_demo(demo: &Demo) -> DemoVerdict {
    let mut checks = vec![
        check_all_rebooted(demo),
        check_out_at_once(demo),
        check_boot_counts(demo),
        check_disruption_budgets(demo),
        check_pods(demo),
    ];
    checks.extend(check_cordon(demo));
    checks.push(check_no_leftovers(demo));
    checks.extend(host_checks::check_hosts(
        &demo.bare_metal_hosts,
        &demo.observer,
    ));
    checks.extend(failed_node_checks::check_failed_node(
        &demo.bare_metal_hosts,
    ));
    let broken = demo.checks.violations().iter().chain(&demo.broken);
    checks.extend(
        broken.map(|violation| build_check(false, "no promise was broken", violation.0.clone())),
    );
    DemoVerdict(checks)
}

pub(super) fn build_check(held: bool, what: &str, seen: String) -> DemoCheck {
    DemoCheck {
        held,
        what: what.to_owned(),
        observed: seen,
    }
}

fn check_all_rebooted(demo: &Demo) -> DemoCheck {
    let left = demo.unfinished_nodes();
    let all = demo.planned_nodes().count();
    let seen = if left.is_empty() {
        format!("{all} of {all}")
    } else {
        format!("not {}", left.join(", "))
    };
    build_check(
        left.is_empty(),
        "every node that needed a reboot was rebooted",
        seen,
    )
}

fn check_out_at_once(demo: &Demo) -> DemoCheck {
    let groups: Vec<String> = demo
        .checks
        .groups_with_most_out()
        .map(|(group, most)| format!("{group}: {most}"))
        .collect();
    let held = demo
        .checks
        .groups_with_most_out()
        .all(|(_, most)| most <= 1);
    build_check(
        held,
        "at most one node of each group was out of service at a time",
        groups.join(", "),
    )
}

fn check_boot_counts(demo: &Demo) -> DemoCheck {
    let boots: Vec<(&str, usize)> = demo
        .planned_nodes()
        .map(|name| (name, demo.checks.count_boots(name)))
        .collect();
    let seen: Vec<String> = boots
        .iter()
        .map(|(name, boots)| format!("{name}: {boots}"))
        .collect();
    build_check(
        boots.iter().all(|(_, boots)| *boots == 1),
        "each node had exactly one new boot",
        seen.join(", "),
    )
}

fn check_disruption_budgets(demo: &Demo) -> DemoCheck {
    let short: Vec<&str> = demo
        .checks
        .violations()
        .iter()
        .map(|one| one.0.as_str())
        .filter(|text| text.starts_with("budget"))
        .collect();
    let seen = if short.is_empty() {
        "web and db".to_owned()
    } else {
        short.join("; ")
    };
    build_check(
        short.is_empty(),
        "every PodDisruptionBudget always had enough healthy pods",
        seen,
    )
}

fn check_pods(demo: &Demo) -> DemoCheck {
    let ready = |app: &str| {
        let pods = demo
            .observer
            .list_objects(ObservedKind::Pod)
            .map(|(_, pod)| PodView::from_object(pod));
        pods.filter(|pod| pod.app == app && pod.ready && !pod.leaving)
            .count()
    };
    let wanted = [
        (
            "web",
            usize::try_from(demo.config.web_replicas()).unwrap_or(usize::MAX),
        ),
        ("db", 2),
    ];
    let seen = wanted.map(|(app, wanted)| format!("{app}: {} of {wanted}", ready(app)));
    build_check(
        wanted.iter().all(|(app, wanted)| ready(app) == *wanted),
        "all pods are running again",
        seen.join(", "),
    )
}

fn check_cordon(demo: &Demo) -> Option<DemoCheck> {
    let name = demo.cordoned.as_deref()?;
    let node = demo
        .observer
        .get_object(ObservedKind::Node, name)
        .map(NodeView::from_object);
    let held = node.is_some_and(|node| node.cordoned);
    let seen = format!("{name} is {}cordoned", if held { "still " } else { "un" });
    Some(build_check(
        held,
        "Dogwatch did not remove the admin's cordon",
        seen,
    ))
}

fn check_no_leftovers(demo: &Demo) -> DemoCheck {
    let held = demo
        .observer
        .list_objects(ObservedKind::Lease)
        .filter(|(name, lease)| *name != LEADER_LEASE && lease_holder(lease).is_some());
    let records = demo
        .observer
        .list_objects(ObservedKind::Node)
        .filter(|(_, node)| NodeView::from_object(node).record.is_some());
    let left: Vec<&str> = held
        .map(|(name, _)| name)
        .chain(records.map(|(name, _)| name))
        .collect();
    let seen = if left.is_empty() {
        "no lock, no record".into()
    } else {
        left.join(", ")
    };
    build_check(left.is_empty(), "Dogwatch left nothing behind", seen)
}
