//! What a drain of the node waits for, from live reads. [`NodeDrain`], which also drains nodes,
//! decides which pods have to go.

use std::collections::BTreeSet;

use super::human_format::join_first_names;
use crate::Now;
use crate::drain::{
    DaemonSetLookup, DaemonSetRef, DrainConfig, LabelSelector, NodeDrain, ObservedDisruptionBudget,
    ObservedPod,
};

const MAX_NAMED_PODS: usize = 5;

/// The pods of a node, and the PodDisruptionBudgets that cover them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePods {
    pub pods: Vec<ObservedPod>,
    /// Those DaemonSets that exist, among the controllers that the pods name.
    pub daemonsets: BTreeSet<DaemonSetRef>,
    pub budgets: Vec<ObservedDisruptionBudget>,
}

impl NodePods {
    /// The pods that still have to go; `exclude` is the policy's exception.
    pub(crate) fn pods_to_drain(
        &self,
        exclude: Option<&LabelSelector>,
        now: Now,
    ) -> Vec<&ObservedPod> {
        let mut drain = NodeDrain::new(DrainConfig {
            exclude: exclude.cloned(),
            ..DrainConfig::default()
        });
        drain.apply_pod_list(self.pods.clone());
        loop {
            let sets = drain.next_step(now).look_up;
            if sets.is_empty() {
                break;
            }
            for set in sets {
                let exists = self.daemonsets.contains(&set);
                let lookup = if exists {
                    DaemonSetLookup::Exists
                } else {
                    DaemonSetLookup::Gone
                };
                drain.apply_daemonset_lookup(&set, lookup, now);
            }
        }
        let waiting = drain.current_progress().waiting;
        self.pods
            .iter()
            .filter(|pod| waiting.contains(&pod.pod))
            .collect()
    }

    /// Names of the pods that a drain without exceptions would still have to move.
    pub fn undrained_pod_names(&self, now: Now) -> Vec<String> {
        let pods = self.pods_to_drain(None, now);
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
        exclude: Option<&LabelSelector>,
        now: Now,
    ) -> Vec<String> {
        let pods = self.pods_to_drain(exclude, now);
        if pods.is_empty() {
            return vec!["every pod that must leave is gone".into()];
        }
        let (ending, staying): (Vec<&ObservedPod>, Vec<&ObservedPod>) =
            pods.iter().partition(|pod| pod.deleting);
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
            self.blocking_budgets_of(&pods)
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
    pub(super) fn blocking_budget_names(
        &self,
        exclude: Option<&LabelSelector>,
        now: Now,
    ) -> Vec<(&str, &str)> {
        let pods = self.pods_to_drain(exclude, now);
        let shut = self.blocking_budgets_of(&pods).into_iter();
        let names: BTreeSet<(&str, &str)> = shut
            .map(|(budget, _)| &budget.numbers)
            .map(|numbers| (numbers.namespace.as_str(), numbers.name.as_str()))
            .collect();
        names.into_iter().collect()
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
    use crate::drain::{BudgetNumbers, ControllerRef, PodIdentity, PodPhase};

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
            claims: Vec::new(),
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
            on_node.describe_drain_waits(None, now(0)),
            [
                "2 pods still to be evicted: shop/db, shop/web",
                "PodDisruptionBudget shop/db allows no disruption (2 healthy of 2 desired) blocks shop/db",
            ]
        );
        assert_eq!(
            on_node.blocking_budget_names(None, now(0)),
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
            kept.describe_drain_waits(None, now(0)),
            ["every pod that must leave is gone"]
        );
        let orphan = NodePods {
            daemonsets: BTreeSet::new(),
            ..kept
        };
        assert_eq!(
            orphan.describe_drain_waits(None, now(0)),
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
            on_node.describe_drain_waits(None, now(0)),
            [
                "1 pod still to be evicted: shop/web",
                "1 pod ending: shop/db"
            ]
        );
    }
}
