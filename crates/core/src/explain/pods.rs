//! What a drain of the node waits for, by live reads: the same machine that drains says which pods
//! have to go.

use std::collections::BTreeSet;

use super::words::some;
use crate::Now;
use crate::drain::{BudgetSeen, DaemonSetRef, Drain, DrainConfig, LabelSelector, Lookup, PodSeen};

/// How many pods are named.
const NAMED: usize = 5;

/// What is on the node, and the budgets over it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OnNode {
    /// Its pods.
    pub pods: Vec<PodSeen>,
    /// The DaemonSets that exist, of those that its pods name as their controller.
    pub daemonsets: BTreeSet<DaemonSetRef>,
    /// All PodDisruptionBudgets.
    pub budgets: Vec<BudgetSeen>,
}

impl OnNode {
    /// The pods that still have to go, but for those that the policy leaves out.
    pub(crate) fn to_go(&self, exclude: Option<&LabelSelector>, now: Now) -> Vec<&PodSeen> {
        let mut drain = Drain::new(DrainConfig {
            exclude: exclude.cloned(),
            ..DrainConfig::default()
        });
        drain.relisted(self.pods.clone());
        loop {
            let sets = drain.next(now).look_up;
            if sets.is_empty() {
                break;
            }
            for set in sets {
                let exists = self.daemonsets.contains(&set);
                let lookup = if exists { Lookup::Exists } else { Lookup::Gone };
                drain.daemonset(&set, lookup, now);
            }
        }
        let waiting = drain.progress().waiting;
        self.pods
            .iter()
            .filter(|pod| waiting.contains(&pod.pod))
            .collect()
    }

    /// Names of the pods that a drain without exceptions would still have to move.
    pub fn not_drained(&self, now: Now) -> Vec<String> {
        let pods = self.to_go(None, now);
        pods.iter().map(|pod| pod.pod.to_string()).collect()
    }

    /// The budgets that allow none of these pods to be evicted, with the pods they hold.
    fn shut(&self, pods: &[&PodSeen]) -> Vec<(&BudgetSeen, Vec<String>)> {
        self.budgets
            .iter()
            .filter(|budget| budget.numbers.disruptions_allowed <= 0)
            .filter_map(|budget| {
                let held: Vec<String> = pods
                    .iter()
                    .filter(|pod| !pod.deleting && budget.covers(pod))
                    .map(|pod| pod.pod.to_string())
                    .collect();
                (!held.is_empty()).then_some((budget, held))
            })
            .collect()
    }

    /// What the drain waits for, one sentence each.
    pub(super) fn waits_for(&self, exclude: Option<&LabelSelector>, now: Now) -> Vec<String> {
        let pods = self.to_go(exclude, now);
        if pods.is_empty() {
            return vec!["every pod that has to go is gone".into()];
        }
        let (ending, staying): (Vec<&PodSeen>, Vec<&PodSeen>) =
            pods.iter().partition(|pod| pod.deleting);
        let mut lines = Vec::new();
        if !staying.is_empty() {
            lines.push(format!(
                "{} still to be evicted: {}",
                pods_of(&staying),
                names(&staying)
            ));
        }
        if !ending.is_empty() {
            lines.push(format!("{} ending: {}", pods_of(&ending), names(&ending)));
        }
        lines.extend(
            self.shut(&pods).into_iter().map(|(budget, held)| {
                format!("{} holds up {}", numbers(budget), some(&held, NAMED))
            }),
        );
        lines
    }

    /// Budgets that hold something up, by name.
    pub(super) fn shut_budgets(
        &self,
        exclude: Option<&LabelSelector>,
        now: Now,
    ) -> Vec<(&str, &str)> {
        let pods = self.to_go(exclude, now);
        let shut = self.shut(&pods).into_iter();
        let names: BTreeSet<(&str, &str)> = shut
            .map(|(budget, _)| &budget.numbers)
            .map(|numbers| (numbers.namespace.as_str(), numbers.name.as_str()))
            .collect();
        names.into_iter().collect()
    }
}

fn numbers(budget: &BudgetSeen) -> String {
    let numbers = &budget.numbers;
    format!(
        "PodDisruptionBudget {} allows no disruption ({} healthy of {} desired)",
        numbers.full_name(),
        numbers.current_healthy,
        numbers.desired_healthy
    )
}

fn pods_of(pods: &[&PodSeen]) -> String {
    match pods.len() {
        1 => "1 pod".into(),
        many => format!("{many} pods"),
    }
}

fn names(pods: &[&PodSeen]) -> String {
    let names: Vec<String> = pods.iter().map(|pod| pod.pod.to_string()).collect();
    some(&names, NAMED)
}

#[cfg(test)]
mod tests {
    use super::super::testkit::now;
    use super::*;
    use crate::drain::{BudgetNumbers, Owner, PodPhase, PodRef};

    fn pod(name: &str) -> PodSeen {
        PodSeen {
            pod: PodRef {
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

    fn daemon(name: &str) -> PodSeen {
        PodSeen {
            controller: Some(Owner {
                api_version: "apps/v1".into(),
                kind: "DaemonSet".into(),
                name: name.into(),
                uid: "u".into(),
            }),
            ..pod(name)
        }
    }

    fn budget(app: &str, allowed: i32) -> BudgetSeen {
        BudgetSeen {
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
        let on_node = OnNode {
            pods: vec![pod("db"), pod("web")],
            budgets: vec![budget("db", 0), budget("web", 1)],
            ..OnNode::default()
        };
        assert_eq!(
            on_node.waits_for(None, now(0)),
            [
                "2 pods still to be evicted: shop/db, shop/web",
                "PodDisruptionBudget shop/db allows no disruption (2 healthy of 2 desired) holds up shop/db",
            ]
        );
        assert_eq!(on_node.shut_budgets(None, now(0)), [("shop", "db")]);
    }

    #[test]
    fn what_a_drain_leaves_alone_is_not_waited_for() {
        let kept = OnNode {
            pods: vec![
                PodSeen {
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
            ..OnNode::default()
        };
        assert_eq!(
            kept.waits_for(None, now(0)),
            ["every pod that has to go is gone"]
        );
        let orphan = OnNode {
            daemonsets: BTreeSet::new(),
            ..kept
        };
        assert_eq!(
            orphan.waits_for(None, now(0)),
            ["1 pod still to be evicted: shop/agent"]
        );
    }

    #[test]
    fn a_pod_that_ends_is_told_from_one_that_was_not_begun() {
        let on_node = OnNode {
            pods: vec![
                PodSeen {
                    deleting: true,
                    ..pod("db")
                },
                pod("web"),
            ],
            budgets: vec![budget("db", 0)],
            ..OnNode::default()
        };
        assert_eq!(
            on_node.waits_for(None, now(0)),
            [
                "1 pod still to be evicted: shop/web",
                "1 pod ending: shop/db"
            ]
        );
    }
}
