//! What a drain of the node waits for, from live reads. [`NodeDrain`], which also drains nodes,
//! decides which pods have to go.

use std::collections::{BTreeMap, BTreeSet};

use super::human_format::{format_time, join_first_names};
use crate::Now;
use crate::drain::{
    DaemonSetLookup, DaemonSetRef, DeploymentLookup, DrainConfig, DrainStart, HeldPod,
    MachineRulesLookup, NodeDrain, ObservedDisruptionBudget, ObservedPod, PodAction, PodIdentity,
    PodRules, ReplicaSetRef, RolloutOutlook, WaitLimit,
};

const MAX_NAMED_PODS: usize = 5;

/// The pods of a node, and the PodDisruptionBudgets that cover them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePods {
    pub pods: Vec<ObservedPod>,
    /// Those DaemonSets that exist, among the controllers that the pods name.
    pub daemonsets: BTreeSet<DaemonSetRef>,
    pub budgets: Vec<ObservedDisruptionBudget>,
    /// The labels of the pods' namespaces; empty if no rule asks for them.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// The Deployments that a rule may restart; one that is missing could not be read.
    pub deployments: BTreeMap<ReplicaSetRef, DeploymentLookup>,
    /// The MachineDrainRules of the node's Machine, where the policy honours them.
    pub machine_rules: MachineRulesLookup,
}

impl NodePods {
    /// A drain that has judged these pods by these rules, and has called nobody.
    pub(crate) fn judge_pods(&self, rules: &PodRules, start: DrainStart, now: Now) -> NodeDrain {
        let mut drain = NodeDrain::new(DrainConfig {
            rules: rules.clone(),
            start,
            ..DrainConfig::default()
        });
        drain.apply_pod_list(self.pods.clone());
        loop {
            let step = drain.next_step(now);
            if step.look_up.is_empty()
                && step.look_up_namespaces.is_empty()
                && step.look_up_deployments.is_empty()
                && !step.look_up_machine_rules
            {
                return drain;
            }
            if step.look_up_machine_rules {
                drain.apply_machine_rules(self.machine_rules.clone(), now);
            }
            for set in step.look_up_deployments {
                let why = "not read".to_owned();
                let known = self.deployments.get(&set).cloned();
                let lookup = known.unwrap_or(DeploymentLookup::Failed { why });
                drain.apply_deployment_lookup(&set, lookup, now);
            }
            for name in step.look_up_namespaces {
                let labels = self.namespaces.get(&name).cloned();
                let labels = labels.ok_or_else(|| "not read".to_owned());
                drain.apply_namespace_labels(&name, labels, now);
            }
            for set in step.look_up {
                let exists = self.daemonsets.contains(&set);
                let lookup = if exists {
                    DaemonSetLookup::Exists
                } else {
                    DaemonSetLookup::Gone
                };
                drain.apply_daemonset_lookup(&set, lookup, now);
            }
        }
    }

    /// The pods that still have to go.
    pub(crate) fn pods_to_drain(&self, rules: &PodRules, now: Now) -> Vec<&ObservedPod> {
        let drain = self.judge_pods(rules, DrainStart::default(), now);
        let waiting = drain.current_progress().waiting;
        self.pods
            .iter()
            .filter(|pod| waiting.contains(&pod.pod))
            .collect()
    }

    /// The pods whose removal asks PodDisruptionBudgets.
    fn pods_to_evict(&self, rules: &PodRules, now: Now) -> Vec<&ObservedPod> {
        let drain = self.judge_pods(rules, DrainStart::default(), now);
        let unasked: Vec<&PodIdentity> = drain
            .pod_plans()
            .filter(|(pod, plan)| !drain.asks_budgets(pod, plan))
            .map(|(pod, _)| &pod.pod)
            .collect();
        let mut pods = self.pods_to_drain(rules, now);
        pods.retain(|pod| !unasked.contains(&&pod.pod));
        pods
    }

    /// Names of the pods that a drain without exceptions would still have to move.
    pub fn undrained_pod_names(&self, now: Now) -> Vec<String> {
        let pods = self.pods_to_drain(&PodRules::default(), now);
        pods.iter().map(|pod| pod.pod.to_string()).collect()
    }

    /// PodDisruptionBudgets that allow no eviction of these pods, each with the names of the
    /// blocked pods.
    fn blocking_budgets_of(
        &self,
        pods: &[&ObservedPod],
    ) -> Vec<(&ObservedDisruptionBudget, Vec<String>)> {
        self.budgets
            .iter()
            .filter(|budget| budget.numbers.disruptions_allowed <= 0)
            .filter_map(|budget| {
                let held: Vec<String> = pods
                    .iter()
                    .filter(|pod| !pod.deleting && budget.covers_pod(pod))
                    .map(|pod| pod.pod.to_string())
                    .collect();
                (!held.is_empty()).then_some((budget, held))
            })
            .collect()
    }

    /// What the drain waits for, one sentence each.
    pub(super) fn describe_drain_waits(
        &self,
        rules: &PodRules,
        start: DrainStart,
        now: Now,
    ) -> Vec<String> {
        let pods = self.pods_to_drain(rules, now);
        if pods.is_empty() {
            return vec!["every pod that must leave is gone".into()];
        }
        let held = self.judge_pods(rules, start, now).current_progress().held;
        let is_held = |pod: &ObservedPod| held.iter().any(|held| held.pod == pod.pod);
        let (ending, staying): (Vec<&ObservedPod>, Vec<&ObservedPod>) = pods
            .iter()
            .filter(|pod| !is_held(pod))
            .partition(|pod| pod.deleting);
        let mut lines = Vec::new();
        if !staying.is_empty() {
            lines.push(format!(
                "{} still to be evicted: {}",
                format_pod_count(&staying),
                format_pod_names(&staying)
            ));
        }
        if !ending.is_empty() {
            lines.push(format!(
                "{} ending: {}",
                format_pod_count(&ending),
                format_pod_names(&ending)
            ));
        }
        lines.extend(
            held.iter()
                .take(MAX_NAMED_PODS)
                .map(|held| describe_held_pod(held, start, now)),
        );
        let more = held.len().saturating_sub(MAX_NAMED_PODS);
        lines.extend((more > 0).then(|| format!("{more} more pods are not touched yet")));
        lines.extend(
            self.blocking_budgets_of(&self.pods_to_evict(rules, now))
                .into_iter()
                .map(|(budget, held)| {
                    format!(
                        "{} blocks {}",
                        budget_numbers_text(budget),
                        join_first_names(&held, MAX_NAMED_PODS)
                    )
                }),
        );
        lines
    }

    /// Names of the PodDisruptionBudgets that block an eviction.
    pub(super) fn blocking_budget_names(&self, rules: &PodRules, now: Now) -> Vec<(&str, &str)> {
        let pods = self.pods_to_evict(rules, now);
        let shut = self.blocking_budgets_of(&pods).into_iter();
        let names: BTreeSet<(&str, &str)> = shut
            .map(|(budget, _)| &budget.numbers)
            .map(|numbers| (numbers.namespace.as_str(), numbers.name.as_str()))
            .collect();
        names.into_iter().collect()
    }
}

/// Why the drain does not touch the pod yet, with the rule or mark that says so.
fn describe_held_pod(held: &HeldPod, start: DrainStart, now: Now) -> String {
    let HeldPod { pod, plan, rollout } = held;
    let why = &plan.why;
    match plan.action {
        PodAction::WaitCompleted(limit) if plan.is_waiting(start, now) => {
            let until = match limit {
                WaitLimit::DrainTimeout => "the drain's deadline".into(),
                WaitLimit::Timeout(_) | WaitLimit::Until(_) => {
                    let at = plan.wait_ends_at(start, now).unwrap_or(now.mono);
                    format_time(now.wall_after(at.saturating_sub(now.mono)))
                }
            };
            format!("{pod} may end by itself until {until}, by {why}")
        }
        PodAction::RollFirst(_) if rollout.is_some() => {
            let at = plan.wait_ends_at(start, now).unwrap_or(now.mono);
            let until = format_time(now.wall_after(at.saturating_sub(now.mono)));
            let rollout = rollout.as_ref().map(RolloutOutlook::to_string);
            let rollout = rollout.unwrap_or_default();
            format!("{pod} goes after a rollout, by {until} at the latest, by {why}: {rollout}")
        }
        PodAction::WaitCompleted(_)
        | PodAction::RollFirst(_)
        | PodAction::Evict
        | PodAction::Delete
        | PodAction::Stay => {
            format!(
                "{pod} waits until every pod of an order below {} is gone, by {why}",
                plan.order
            )
        }
    }
}

fn budget_numbers_text(budget: &ObservedDisruptionBudget) -> String {
    let numbers = &budget.numbers;
    format!(
        "PodDisruptionBudget {} allows no disruption ({} healthy of {} desired)",
        numbers.full_name(),
        numbers.current_healthy,
        numbers.desired_healthy
    )
}

fn format_pod_count(pods: &[&ObservedPod]) -> String {
    match pods.len() {
        1 => "1 pod".into(),
        many => format!("{many} pods"),
    }
}

fn format_pod_names(pods: &[&ObservedPod]) -> String {
    let names: Vec<String> = pods.iter().map(|pod| pod.pod.to_string()).collect();
    join_first_names(&names, MAX_NAMED_PODS)
}

#[cfg(test)]
mod tests {
    use super::super::testkit::now;
    use super::*;
    use crate::drain::{BudgetNumbers, ControllerRef, LabelSelector, PodMarks, PodPhase};

    fn pod(name: &str) -> ObservedPod {
        ObservedPod {
            pod: PodIdentity {
                namespace: "shop".into(),
                name: name.into(),
                uid: format!("uid-{name}"),
            },
            phase: PodPhase::Running,
            deleting: false,
            mirror: false,
            controller: None,
            labels: [("app".to_owned(), name.to_owned())].into(),
            tolerates_cordon: false,
            unscheduled: false,
            claims: Vec::new(),
            marks: PodMarks::default(),
        }
    }

    fn daemon(name: &str) -> ObservedPod {
        ObservedPod {
            controller: Some(ControllerRef {
                api_version: "apps/v1".into(),
                kind: "DaemonSet".into(),
                name: name.into(),
                uid: "u".into(),
            }),
            ..pod(name)
        }
    }

    fn budget(app: &str, allowed: i32) -> ObservedDisruptionBudget {
        ObservedDisruptionBudget {
            numbers: BudgetNumbers {
                namespace: "shop".into(),
                name: app.into(),
                disruptions_allowed: allowed,
                current_healthy: 2,
                desired_healthy: 2,
                expected_pods: 2,
            },
            selector: Some(LabelSelector {
                match_labels: [("app".to_owned(), app.to_owned())].into(),
                ..LabelSelector::default()
            }),
            generation: 1,
        }
    }

    #[test]
    fn the_budget_that_holds_a_pod_up_is_named_with_its_numbers() {
        let on_node = NodePods {
            pods: vec![pod("db"), pod("web")],
            budgets: vec![budget("db", 0), budget("web", 1)],
            ..NodePods::default()
        };
        assert_eq!(
            on_node.describe_drain_waits(&PodRules::default(), DrainStart::default(), now(0)),
            [
                "2 pods still to be evicted: shop/db, shop/web",
                "PodDisruptionBudget shop/db allows no disruption (2 healthy of 2 desired) blocks shop/db",
            ]
        );
        assert_eq!(
            on_node.blocking_budget_names(&PodRules::default(), now(0)),
            [("shop", "db")]
        );
    }

    #[test]
    fn what_a_drain_leaves_alone_is_not_waited_for() {
        let kept = NodePods {
            pods: vec![
                ObservedPod {
                    mirror: true,
                    ..pod("etcd")
                },
                daemon("agent"),
            ],
            daemonsets: [DaemonSetRef {
                namespace: "shop".into(),
                name: "agent".into(),
            }]
            .into(),
            ..NodePods::default()
        };
        assert_eq!(
            kept.describe_drain_waits(&PodRules::default(), DrainStart::default(), now(0)),
            ["every pod that must leave is gone"]
        );
        let orphan = NodePods {
            daemonsets: BTreeSet::new(),
            ..kept
        };
        assert_eq!(
            orphan.describe_drain_waits(&PodRules::default(), DrainStart::default(), now(0)),
            ["1 pod still to be evicted: shop/agent"]
        );
    }

    #[test]
    fn a_pod_that_ends_is_told_from_one_that_was_not_begun() {
        let on_node = NodePods {
            pods: vec![
                ObservedPod {
                    deleting: true,
                    ..pod("db")
                },
                pod("web"),
            ],
            budgets: vec![budget("db", 0)],
            ..NodePods::default()
        };
        assert_eq!(
            on_node.describe_drain_waits(&PodRules::default(), DrainStart::default(), now(0)),
            [
                "1 pod still to be evicted: shop/web",
                "1 pod ending: shop/db"
            ]
        );
    }
}
