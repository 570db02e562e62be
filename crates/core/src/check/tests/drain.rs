use super::*;
use crate::drain::{DaemonSetRef, PodRules};
use crate::policy::DrainRules;

fn with(pods: Vec<PodFacts>, budgets: Vec<ObservedDisruptionBudget>) -> CheckView {
    CheckView {
        pods: Ok(pods),
        budgets: Ok(budgets),
        ..alone()
    }
}

fn of(name: &str, change: impl FnOnce(&mut PodFacts)) -> PodFacts {
    let mut pod = pod(name);
    change(&mut pod);
    pod
}

#[test]
fn a_node_whose_pods_may_all_go_is_clear() {
    let view = with(vec![pod("web")], vec![budget("web", "web", 1, 3, 3)]);
    assert_eq!(told(&view), [""; 0]);
}

#[test]
fn a_budget_that_allows_nothing_is_named_with_its_numbers_and_whether_it_ever_will() {
    let view = with(vec![pod("db")], vec![budget("db", "db", 0, 2, 3)]);
    let found = find_reboot_blockers(&view, now(0)).unwrap();
    assert_eq!(
        lines(&found),
        [
            "blocks PodDisruptionBudget shop/db: allows no disruption (2 healthy of 2 desired); pods on this node: shop/db"
        ]
    );
    assert!(
        found[0]
            .fix
            .as_ref()
            .unwrap()
            .contains("make its other pods healthy")
    );
    let never = with(vec![pod("db")], vec![budget("db", "db", 0, 2, 2)]);
    let found = find_reboot_blockers(&never, now(0)).unwrap();
    assert!(
        found[0]
            .fix
            .as_ref()
            .unwrap()
            .contains("never allows an eviction")
    );
}

#[test]
fn a_pod_under_two_budgets_is_found_before_its_eviction_is_refused() {
    let budgets = vec![budget("a", "db", 1, 3, 3), budget("b", "db", 1, 3, 3)];
    let view = with(vec![pod("db")], budgets);
    assert_eq!(
        told(&view),
        [
            "blocks pod shop/db: covered by 2 PodDisruptionBudgets (shop/a, shop/b): the API server does not evict such a pod"
        ]
    );
}

#[test]
fn budgets_are_not_asked_for_pods_that_are_not_running_or_end_already() {
    let pods = vec![
        of("db", |pod| pod.observed.deleting = true),
        of("db", |pod| pod.observed.phase = PodPhase::Pending),
        of("db", |pod| pod.observed.phase = PodPhase::Finished),
    ];
    let view = with(
        pods,
        vec![budget("a", "db", 0, 2, 2), budget("b", "db", 0, 2, 2)],
    );
    assert!(
        told(&view).iter().all(|line| !line.starts_with("blocks")),
        "{:?}",
        told(&view)
    );
}

type PodChange = fn(&mut PodFacts);

#[test]
fn what_is_lost_is_said_of_each_pod() {
    let table: [(PodChange, &str); 4] = [
        (
            |pod| pod.observed.controller = None,
            "has no controller: the pod is evicted, and no controller creates it again",
        ),
        (
            |pod| pod.empty_dirs = vec!["scratch".into(), "cache".into()],
            "the data in its emptyDir scratch, cache is lost",
        ),
        (
            |pod| pod.observed.tolerates_cordon = true,
            "tolerates the cordon: its controller may put it back on this node; after the third \
             time the drain leaves it there",
        ),
        (
            |pod| pod.observed.controller = Some(owner("DaemonSet")),
            "its DaemonSet owner does not exist: the pod is evicted, and no controller creates it again",
        ),
    ];
    for (change, expected) in table {
        let view = with(vec![of("p", change)], Vec::new());
        assert_eq!(told(&view), [format!("warns pod shop/p: {expected}")]);
    }
}

#[test]
fn pods_that_stay_are_nobodys_trouble() {
    let daemon = of("d", |pod| {
        pod.observed.controller = Some(owner("DaemonSet"));
        pod.empty_dirs = vec!["scratch".into()];
    });
    let mirror = of("m", |pod| {
        pod.observed.mirror = true;
        pod.observed.controller = None;
    });
    let view = CheckView {
        daemonsets: Ok([DaemonSetRef {
            namespace: "shop".into(),
            name: "owner".into(),
        }]
        .into()),
        ..with(vec![daemon, mirror], vec![budget("d", "d", 0, 2, 2)])
    };
    assert_eq!(told(&view), [""; 0]);
}

#[test]
fn pods_that_the_policy_leaves_out_are_not_judged() {
    let mut left_out = policy("p", 0);
    left_out.drain = DrainRules {
        pods: PodRules {
            exclude: Some(LabelSelector {
                match_labels: [("app".to_owned(), "db".to_owned())].into(),
                ..LabelSelector::default()
            }),
            ..PodRules::default()
        },
        ..DrainRules::default()
    };
    let view = with(vec![pod("db")], vec![budget("db", "db", 0, 2, 2)]);
    assert_eq!(told(&under(view, vec![left_out])), [""; 0]);
}

#[test]
fn what_could_not_be_looked_at_is_never_clear() {
    let view = CheckView {
        pods: Ok(vec![pod("web")]),
        budgets: Err("not allowed".into()),
        daemonsets: Err("not allowed".into()),
        terminating: Err("not allowed".into()),
        coordinator: Err("not allowed".into()),
        ..alone()
    };
    let unknown: Vec<String> = [
        "DaemonSets",
        "Namespaces",
        "PodDisruptionBudgets",
        "coordinator",
    ]
    .iter()
    .map(|what| format!("unknown {what}: could not be read: not allowed"))
    .collect();
    assert_eq!(told(&view), unknown);
    let blind = CheckView {
        pods: Err("not allowed".into()),
        ..alone()
    };
    assert_eq!(
        told(&blind),
        ["unknown pods: could not be read: not allowed"]
    );
}

#[test]
fn what_a_drain_waits_for_without_blocking_is_a_note() {
    let pods = vec![
        of("a", |pod| pod.observed.claims = vec!["data-a".into()]),
        of("b", |pod| pod.observed.deleting = true),
    ];
    let view = CheckView {
        terminating: Ok(["shop".to_owned()].into()),
        ..with(pods, vec![])
    };
    assert_eq!(
        told(&view),
        [
            "note pod shop/a: its namespace is being deleted: the drain waits for that",
            "note pod shop/a: its volumes must be detached: data-a",
            "note pod shop/b: is already terminating",
            "note pod shop/b: its namespace is being deleted: the drain waits for that",
        ]
    );
}

#[test]
fn in_dogwatchs_namespace_its_own_pods_stay_and_pods_of_other_software_block() {
    let own = of("controller", |pod| {
        let label = (
            "app.kubernetes.io/part-of".to_owned(),
            "dogwatch".to_owned(),
        );
        pod.observed.labels.extend([label]);
    });
    let budgets = vec![budget("controller", "controller", 0, 1, 2)];
    let mut view = with(vec![own, pod("coredns")], budgets);
    let planned = |view: &CheckView| -> Vec<(String, String)> {
        let plan = plan_drain(view, now(0)).unwrap();
        let plan = plan.into_iter().map(|pod| (pod.pod, pod.action));
        plan.collect()
    };
    let expect = |first: (&str, &str), second: (&str, &str)| {
        [first, second].map(|(pod, action)| (pod.to_owned(), action.to_owned()))
    };
    assert_eq!(
        planned(&view),
        expect(("shop/controller", "evict"), ("shop/coredns", "evict"))
    );
    view.protected_namespace = Some("shop".into());
    assert_eq!(
        planned(&view),
        expect(("shop/coredns", "evict"), ("shop/controller", "stay"))
    );
    let found = told(&view);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("blocks pod shop/coredns: in Dogwatch's namespace"));
    assert!(found[0].contains("coordinator-evictions.dogwatch.dev"));
}
