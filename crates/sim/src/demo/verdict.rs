//! What was checked, and whether it held.

use super::play::Demo;
use super::{failed_checks, metal_checks};
use crate::chronicle::{Kind, LEAD, NodeView, PodView, holder_of};

/// One promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Whether it held.
    pub held: bool,
    /// What it is.
    pub what: String,
    /// What was seen.
    pub seen: String,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict(pub Vec<Check>);

impl Verdict {
    /// Whether everything held.
    pub fn held(&self) -> bool {
        self.0.iter().all(|check| check.held)
    }
}

pub(super) fn verdict(demo: &Demo) -> Verdict {
    let mut checks = vec![
        done(demo),
        out(demo),
        boots(demo),
        budgets(demo),
        pods(demo),
    ];
    checks.extend(cordon(demo));
    checks.push(clean(demo));
    checks.extend(metal_checks::checks(&demo.metal, &demo.observer));
    checks.extend(failed_checks::checks(&demo.metal));
    let broken = demo.checks.violations().iter().chain(&demo.broken);
    checks
        .extend(broken.map(|violation| check(false, "no promise was broken", violation.0.clone())));
    Verdict(checks)
}

pub(super) fn check(held: bool, what: &str, seen: String) -> Check {
    Check {
        held,
        what: what.to_owned(),
        seen,
    }
}

fn done(demo: &Demo) -> Check {
    let left = demo.unfinished();
    let all = demo.planned().count();
    let seen = if left.is_empty() {
        format!("{all} of {all}")
    } else {
        format!("not {}", left.join(", "))
    };
    check(
        left.is_empty(),
        "every node that wanted a reboot had it",
        seen,
    )
}

fn out(demo: &Demo) -> Check {
    let groups: Vec<String> = demo
        .checks
        .groups()
        .map(|(group, most)| format!("{group}: {most}"))
        .collect();
    let held = demo.checks.groups().all(|(_, most)| most <= 1);
    check(
        held,
        "at most one node of a group was out at a time",
        groups.join(", "),
    )
}

fn boots(demo: &Demo) -> Check {
    let boots: Vec<(&str, usize)> = demo
        .planned()
        .map(|name| (name, demo.checks.boots(name)))
        .collect();
    let seen: Vec<String> = boots
        .iter()
        .map(|(name, boots)| format!("{name}: {boots}"))
        .collect();
    check(
        boots.iter().all(|(_, boots)| *boots == 1),
        "each node had exactly one new boot",
        seen.join(", "),
    )
}

fn budgets(demo: &Demo) -> Check {
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
    check(
        short.is_empty(),
        "no budget was ever short of healthy pods",
        seen,
    )
}

fn pods(demo: &Demo) -> Check {
    let ready = |app: &str| {
        let pods = demo
            .observer
            .all(Kind::Pod)
            .map(|(_, pod)| PodView::of(pod));
        pods.filter(|pod| pod.app == app && pod.ready && !pod.leaving)
            .count()
    };
    let wanted = [
        (
            "web",
            usize::try_from(demo.config.web()).unwrap_or(usize::MAX),
        ),
        ("db", 2),
    ];
    let seen = wanted.map(|(app, wanted)| format!("{app}: {} of {wanted}", ready(app)));
    check(
        wanted.iter().all(|(app, wanted)| ready(app) == *wanted),
        "every pod that should live lives",
        seen.join(", "),
    )
}

fn cordon(demo: &Demo) -> Option<Check> {
    let name = demo.cordoned.as_deref()?;
    let node = demo.observer.get(Kind::Node, name).map(NodeView::of);
    let held = node.is_some_and(|node| node.cordoned);
    let seen = format!("{name} is {}cordoned", if held { "still " } else { "un" });
    Some(check(held, "the admin's cordon was left alone", seen))
}

fn clean(demo: &Demo) -> Check {
    let held = demo
        .observer
        .all(Kind::Lease)
        .filter(|(name, lease)| *name != LEAD && holder_of(lease).is_some());
    let records = demo
        .observer
        .all(Kind::Node)
        .filter(|(_, node)| NodeView::of(node).record.is_some());
    let left: Vec<&str> = held
        .map(|(name, _)| name)
        .chain(records.map(|(name, _)| name))
        .collect();
    let seen = if left.is_empty() {
        "no lock, no record".into()
    } else {
        left.join(", ")
    };
    check(left.is_empty(), "nothing of it is left behind", seen)
}
