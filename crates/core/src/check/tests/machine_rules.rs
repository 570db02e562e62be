//! What a check says about the MachineDrainRules of Cluster API.

use super::*;
use crate::drain::{MachineDrainBehavior, MachineDrainRule, PodMark, PodRules, RulePods};
use crate::policy::DrainRules;

fn view_of(machine_rules: MachineRulesLookup, honors: bool) -> CheckView {
    let mut policy = policy("p", 0);
    policy.drain = DrainRules {
        pods: PodRules {
            honor: honors
                .then_some(PodMark::ClusterApiDrain)
                .into_iter()
                .collect(),
            ..PodRules::default()
        },
        ..DrainRules::default()
    };
    let view = CheckView {
        pods: Ok(vec![pod("db"), pod("web")]),
        machine_rules,
        ..alone()
    };
    under(view, vec![policy])
}

fn plan_lines(view: &CheckView) -> Vec<String> {
    let plan = plan_drain(view, now(1_000)).unwrap();
    let lines = plan.into_iter();
    lines
        .map(|pod| format!("{}: {} ({})", pod.pod, pod.action, pod.why))
        .collect()
}

#[test]
fn the_plan_names_the_machine_drain_rule_that_decides() {
    let of_databases = MachineDrainRule {
        name: "fleet/databases".into(),
        machines: Vec::new(),
        pods: vec![RulePods {
            pod: LabelSelector {
                match_labels: [("app".to_owned(), "db".to_owned())].into(),
                ..LabelSelector::default()
            },
            namespace: None,
        }],
        behavior: MachineDrainBehavior::WaitCompleted,
    };
    let view = view_of(MachineRulesLookup::Found(vec![of_databases]), true);
    assert_eq!(
        plan_lines(&view),
        [
            "shop/db: wait until the drain's deadline (MachineDrainRule fleet/databases)",
            "shop/web: evict (no rule matches)",
        ]
    );
    assert_eq!(
        told(&view),
        [
            "blocks pod shop/db: MachineDrainRule fleet/databases protects it: the drain waits for \
             its end, until the drain's deadline"
        ]
    );
}

#[test]
fn machine_drain_rules_that_cannot_be_honoured_or_read_are_said() {
    let why = "Machine fleet/m is not in this cluster".to_owned();
    let view = view_of(MachineRulesLookup::Elsewhere { why }, true);
    assert_eq!(
        told(&view),
        ["note MachineDrainRules: cannot be honoured: Machine fleet/m is not in this cluster"]
    );
    let why = "403 Forbidden".to_owned();
    let view = view_of(MachineRulesLookup::Failed { why }, true);
    assert_eq!(
        told(&view),
        ["unknown MachineDrainRules: could not be read: 403 Forbidden"]
    );
    assert_eq!(
        plan_lines(&view),
        [
            "shop/db: unknown (the MachineDrainRules could not be read)",
            "shop/web: unknown (the MachineDrainRules could not be read)",
        ]
    );
}
