//! Which remediations are discovered, and on which host: each link, each contradiction, each
//! leftover.

use std::sync::Arc;

use super::super::*;
use super::kit::*;
use crate::condition::CurrentCondition;
use crate::name::NodeName;
use crate::power::{HostName, HostSnapshot};
use crate::reboot::ObservedNode;

const INFRA: &str = "infrastructure.cluster.x-k8s.io";

fn capi(name: &str) -> ObservedMachine {
    let mut machine = marked(name);
    machine.name.api = MachineApi::ClusterApi;
    machine.host = None;
    machine.infra = Some(InfraRef {
        group: INFRA.into(),
        kind: "Metal3Machine".into(),
        object: ObjectName::new("machines", format!("m3-{name}")),
    });
    machine
}

fn with_infra(
    mut world: RemediationSnapshot,
    name: &str,
    host: Option<&str>,
) -> RemediationSnapshot {
    let infra = InfraMachine {
        name: ObjectName::new("machines", format!("m3-{name}")),
        uid: format!("uid-m3-{name}"),
        host: host.map(str::to_owned),
        provider_id: None,
    };
    world.infra.insert(infra.name.clone(), Arc::new(infra));
    world
}

/// The host of the remediation, or the reason why there is none.
fn found(world: &RemediationSnapshot, subject: &str) -> Result<HostName, RemediationReason> {
    let case = case_of(world, subject).expect("a case");
    match (case.host, case.problem) {
        (Ok(host), None) => Ok(host.name.clone()),
        (Ok(_), Some((reason, text))) | (Err((reason, text)), _) => {
            assert!(!text.is_empty());
            Err(reason)
        }
    }
}

const A: &str = "machine/machines/a";

fn object(name: &str) -> ObjectName {
    ObjectName::new("machines", name)
}

#[test]
fn a_machines_host_is_found_by_its_annotation_or_through_its_infrastructure() {
    let plain = world([marked("a")], [host("a")], [node("a")]);
    assert_eq!(found(&plain, A), Ok(host_name("a")));

    let mut by_annotation = capi("a");
    by_annotation.host = Some("machines/h-a".into());
    let by_annotation = world([by_annotation], [host("a")], [node("a")]);
    assert_eq!(found(&by_annotation, A), Ok(host_name("a")));

    let through = world([capi("a")], [host("a")], [node("a")]);
    let through = with_infra(through, "a", Some("machines/h-a"));
    assert_eq!(found(&through, A), Ok(host_name("a")));
}

#[test]
fn a_machine_without_a_host_is_said_to_have_none() {
    let mut plain = marked("a");
    plain.host = None;
    let mut other_kind = capi("a");
    other_kind.infra.as_mut().unwrap().kind = "AWSMachine".into();
    let mut other_group = capi("a");
    other_group.infra.as_mut().unwrap().group = "example.com".into();
    for machine in [plain, other_kind, other_group, capi("a")] {
        let world = world([machine], [host("a")], []);
        assert_eq!(found(&world, A), Err(RemediationReason::NoHost));
    }
    let unbound = with_infra(world([capi("a")], [host("a")], []), "a", None);
    assert_eq!(found(&unbound, A), Err(RemediationReason::NoHost));
}

#[test]
fn a_dangling_link_is_said() {
    let world = world([marked("a")], [host("b")], []);
    assert_eq!(found(&world, A), Err(RemediationReason::HostNotFound));
}

#[test]
fn a_malformed_link_is_said() {
    for text in [
        "",
        "h-a",
        "/h-a",
        "machines/",
        "a/b/c",
        "machines/h a",
        "Machines/h-a",
    ] {
        let mut machine = marked("a");
        machine.host = Some(text.into());
        let world = world([machine], [host("a")], []);
        assert_eq!(
            found(&world, A),
            Err(RemediationReason::BadHostLink),
            "{text:?}"
        );
    }
}

#[test]
fn a_link_that_the_hosts_consumer_contradicts_is_refused() {
    let group = "machine.openshift.io";
    let ok = consumed(host("a"), group, "Machine", &object("a"));
    assert_eq!(
        found(&world([marked("a")], [ok], []), A),
        Ok(host_name("a"))
    );
    for other in [
        consumed(host("a"), group, "Machine", &object("b")),
        consumed(host("a"), group, "Metal3Machine", &object("a")),
        consumed(host("a"), "", "Machine", &object("a")),
        consumed(host("a"), "cluster.x-k8s.io", "Machine", &object("a")),
        consumed(host("a"), group, "Machine", &ObjectName::new("", "a")),
        consumed(host("a"), group, "Machine", &ObjectName::new("other", "a")),
    ] {
        let text = format!("{:?}", other.consumer);
        let world = world([marked("a")], [other], []);
        assert_eq!(
            found(&world, A),
            Err(RemediationReason::HostOfAnother),
            "{text}"
        );
    }
}

#[test]
fn a_host_of_cluster_api_is_consumed_by_the_metal3machine() {
    let consumed_by = |name: &str| consumed(host("a"), INFRA, "Metal3Machine", &object(name));
    let link = Some("machines/h-a");
    let right = world([capi("a")], [consumed_by("m3-a")], []);
    assert_eq!(found(&with_infra(right, "a", link), A), Ok(host_name("a")));
    let wrong = world([capi("a")], [consumed_by("m3-b")], []);
    let wrong = found(&with_infra(wrong, "a", link), A);
    assert_eq!(wrong, Err(RemediationReason::HostOfAnother));
}

#[test]
fn a_link_into_another_namespace_needs_the_hosts_word() {
    let elsewhere = |host: HostSnapshot| HostSnapshot {
        name: HostName::new("metal", "h-a"),
        ..host
    };
    let machine = || ObservedMachine {
        host: Some("metal/h-a".into()),
        ..marked("a")
    };
    let silent = world([machine()], [elsewhere(host("a"))], []);
    assert_eq!(found(&silent, A), Err(RemediationReason::BadHostLink));
    let group = "machine.openshift.io";
    let confirms = elsewhere(consumed(host("a"), group, "Machine", &object("a")));
    let confirmed = world([machine()], [confirms], []);
    assert_eq!(found(&confirmed, A), Ok(HostName::new("metal", "h-a")));
}

#[test]
fn a_metal3machine_of_another_namespace_confirms_nothing() {
    let mut machine = capi("a");
    machine.infra.as_mut().unwrap().object.namespace = "other".into();
    let mut world = world([machine], [host("a")], []);
    let infra = InfraMachine {
        name: ObjectName::new("other", "m3-a"),
        uid: String::new(),
        host: Some("machines/h-a".into()),
        provider_id: None,
    };
    world.infra.insert(infra.name.clone(), Arc::new(infra));
    assert_eq!(found(&world, A), Err(RemediationReason::BadHostLink));
}

#[test]
fn two_machines_with_one_host_are_both_refused_and_nobody_else_is() {
    let mut thief = machine("b");
    thief.host = Some("machines/h-a".into());
    let world = world(
        [marked("a"), thief, marked("c")],
        [host("a"), host("c")],
        [],
    );
    assert_eq!(found(&world, A), Err(RemediationReason::HostShared));
    assert_eq!(found(&world, "machine/machines/c"), Ok(host_name("c")));
    assert!(
        case_of(&world, "machine/machines/b").is_none(),
        "it wants nothing"
    );
}

#[test]
fn a_machine_that_the_hosts_consumer_denies_does_not_share_it() {
    let mut thief = marked("b");
    thief.host = Some("machines/h-a".into());
    let mine = consumed(host("a"), "machine.openshift.io", "Machine", &object("a"));
    let world = world([marked("a"), thief], [mine], []);
    assert_eq!(found(&world, A), Ok(host_name("a")));
    let denied = found(&world, "machine/machines/b");
    assert_eq!(denied, Err(RemediationReason::HostOfAnother));
}

#[test]
fn two_machines_that_say_they_are_one_node_are_both_refused() {
    let mut twin = machine("b");
    twin.node = Some("n-a".into());
    let world = world([marked("a"), twin], [host("a"), host("b")], [node("a")]);
    assert_eq!(found(&world, A), Err(RemediationReason::NodeShared));
}

#[test]
fn nothing_is_concluded_before_all_lists_have_come() {
    let mut world = world([marked("a")], [host("a")], [node("a")]);
    world.synced = false;
    assert_eq!(discover_remediations(&world), vec![]);
}

#[test]
fn a_machine_that_nobody_marks_is_no_case() {
    let world = world([machine("a")], [host("a")], [node("a")]);
    assert_eq!(discover_remediations(&world), vec![]);
}

#[test]
fn a_node_exists_when_the_machine_names_it_and_it_is_there() {
    for (named, there, exists) in [
        (true, true, true),
        (true, false, false),
        (false, true, false),
        (false, false, false),
    ] {
        let mut machine = marked("a");
        machine.node = machine.node.filter(|_| named);
        let world = world([machine], [host("a")], there.then(|| node("a")));
        let case = case_of(&world, A).unwrap();
        assert_eq!(case.node.is_some(), exists, "{named} {there}");
    }
}

fn marked_node(name: &str) -> ObservedNode {
    ObservedNode {
        needs_remediation: true,
        ..node(name)
    }
}

fn naming(mut host: HostSnapshot, node: &str) -> HostSnapshot {
    host.annotations.insert(NODE.into(), node.into());
    host
}

const NODE_A: &str = "node/n-a";

#[test]
fn without_a_machine_the_host_names_the_node() {
    let world_of = |hosts: Vec<HostSnapshot>| world([], hosts, [marked_node("a")]);
    let one = world_of(vec![naming(host("a"), "n-a")]);
    assert_eq!(found(&one, NODE_A), Ok(host_name("a")));
    let case = case_of(&one, NODE_A).unwrap();
    assert_eq!(case.key, KeyOwner::Node("uid-n-a".into()));
    assert!(case.needs_remediation);
    let none = world_of(vec![host("a")]);
    assert_eq!(found(&none, NODE_A), Err(RemediationReason::NoHost));
}

#[test]
fn of_two_hosts_that_name_one_node_the_older_keeps_it() {
    let made = |host: HostSnapshot, second| HostSnapshot {
        created: jiff::Timestamp::from_second(second).ok(),
        ..naming(host, "n-a")
    };
    for (a, b, keeps) in [(1, 2, "a"), (2, 1, "b"), (1, 1, "a")] {
        let hosts = [made(host("a"), a), made(host("b"), b)];
        let two = world([], hosts, [marked_node("a")]);
        assert_eq!(found(&two, NODE_A), Ok(host_name(keeps)), "{a} {b}");
    }
}

#[test]
fn a_marked_node_of_a_machine_is_that_machines_affair() {
    let world = world(
        [machine("a")],
        [naming(host("a"), "n-a")],
        [marked_node("a")],
    );
    assert_eq!(
        found(&world, NODE_A),
        Err(RemediationReason::NodeOfAMachine)
    );
    let case = case_of(&world, NODE_A).unwrap();
    let decision = decide(
        &case,
        &RemediationMemory::default(),
        &ConcurrentRemediations::default(),
        &RemediationConfig::default(),
        now(5),
    );
    assert_eq!(decision.actions, vec![]);
    assert_eq!(decision.cause.reason, RemediationReason::NodeOfAMachine);
    assert_eq!(decision.report.events.len(), 1);
}

#[test]
fn a_host_of_a_machine_is_no_other_nodes() {
    let world = world(
        [machine("a")],
        [naming(host("a"), "n-x")],
        [ObservedNode {
            name: "n-x".parse().unwrap(),
            ..marked_node("x")
        }],
    );
    assert_eq!(
        found(&world, "node/n-x"),
        Err(RemediationReason::HostOfAnother)
    );
}

#[test]
fn a_key_whose_machine_is_gone_or_was_made_anew_is_nobodys_need() {
    let owner = KeyOwner::Machine("uid-old".into());
    let gone = world([], [keyed(host("a"), &owner)], []);
    let case = case_of(&gone, "host/machines/h-a").unwrap();
    assert!(!case.needs_remediation && case.is_keyed());
    assert_eq!(discover_remediations(&gone).len(), 1);

    let anew = world([marked("a")], [keyed(host("a"), &owner)], [node("a")]);
    let case = case_of(&anew, "host/machines/h-a").unwrap();
    assert!(!case.needs_remediation && case.is_keyed());
    // The new one waits until the old key is gone.
    assert_eq!(found(&anew, A), Err(RemediationReason::OrphanedKey));
}

#[test]
fn a_link_that_breaks_on_the_way_leaves_the_key_with_its_machine() {
    let owner = KeyOwner::Machine("uid-a".into());
    let mut machine = marked("a");
    machine.host = None;
    let broken = world([machine], [keyed(host("a"), &owner)], [node("a")]);
    let case = case_of(&broken, A).unwrap();
    assert_eq!(case.host.as_ref().unwrap().name, host_name("a"));
    assert_eq!(found(&broken, A), Err(RemediationReason::NoHost));
    assert_eq!(discover_remediations(&broken).len(), 1);
}

#[test]
fn a_link_that_moves_on_the_way_lets_the_first_host_go() {
    let owner = KeyOwner::Machine("uid-a".into());
    let mut machine = marked("a");
    machine.host = Some("machines/h-b".into());
    let moved = world(
        [machine],
        [keyed(host("a"), &owner), host("b")],
        [node("a")],
    );
    assert_eq!(found(&moved, A), Ok(host_name("b")));
    let left = case_of(&moved, "host/machines/h-a").unwrap();
    assert!(!left.needs_remediation && left.is_keyed());
}

#[test]
fn foreign_keys_with_prefixes_like_ours_are_nobodys() {
    let mut host = host("a");
    for name in [
        "reboot.metal3.io",
        "reboot.metal3.io/machine-remediation-2",
        "reboot.metal3.io/machine-remediatio",
        "reboot.metal3.io/power-remediation-",
        "reboot.metal3.io/power-remediation",
        "reboot.metal3.io/capbm-requested-power-off",
        "x-reboot.metal3.io/machine-remediation",
    ] {
        host.annotations.insert(name.into(), String::new());
    }
    let world = world([machine("a")], [host], [node("a")]);
    assert_eq!(discover_remediations(&world), vec![]);
}

#[test]
fn a_key_of_our_name_that_is_not_ours_stays_where_no_machine_is_linked() {
    for value in [
        "",
        "{}",
        r#"{"mode":"hard"}"#,
        "uid-a",
        r#"{"mode":"hard","machineUID":"a","nodeUID":"b"}"#,
    ] {
        let mut host = host("a");
        host.annotations.insert(MACHINE_KEY.into(), value.into());
        host.online = false;
        let mut power = power_of(&host, true);
        power.until_confirmed();
        let world = world([], [power.seen.host.as_ref().clone()], []);
        let case = case_of(&world, "host/machines/h-a").unwrap();
        let known = RemediationMemory {
            power: Some(power_seen(&power)),
            ..RemediationMemory::default()
        };
        let (around, config) = (
            ConcurrentRemediations::default(),
            RemediationConfig::default(),
        );
        let decision = decide(&case, &known, &around, &config, power.now());
        assert_eq!(decision.actions, vec![], "{value}");
        assert_eq!(
            decision.cause.reason,
            RemediationReason::ForeignKey,
            "{value}"
        );
    }
}

#[test]
fn for_a_linked_machine_the_table_looks_at_the_key_only() {
    let mut host = host("a");
    host.annotations
        .insert(MACHINE_KEY.into(), r#"{"mode":"hard"}"#.into());
    let mut power = power_of(&host, true);
    power.until_confirmed();
    power.run(10);
    let known = RemediationMemory {
        power: Some(power_seen(&power)),
        ..RemediationMemory::default()
    };
    let (around, config) = (
        ConcurrentRemediations::default(),
        RemediationConfig::default(),
    );
    let withdrawn = world(
        [machine("a")],
        [power.seen.host.as_ref().clone()],
        [node("a")],
    );
    let case = case_of(&withdrawn, A).unwrap();
    let decision = decide(&case, &known, &around, &config, power.now());
    assert!(matches!(
        &decision.actions[..],
        [RemediationAction::RemoveKey { .. }]
    ));
    // But it proves nothing: nobody knows when, and for whom, the key was added.
    let needed = world(
        [marked("a")],
        [power.seen.host.as_ref().clone()],
        [node("a")],
    );
    let case = case_of(&needed, A).unwrap();
    let decision = decide(&case, &known, &around, &config, power.now());
    assert_eq!(decision.actions, vec![]);
    assert_eq!(decision.cause.reason, RemediationReason::ForeignKey);
}

#[test]
fn a_condition_that_still_says_so_is_taken_back() {
    let mut it = machine("a");
    it.conditions.push(CurrentCondition {
        kind: REMEDIATION_CONDITION.into(),
        status: "True".into(),
        reason: RemediationReason::PoweringOff.to_string(),
        message: String::new(),
        last_transition: None,
        last_heartbeat: None,
    });
    let world = world([it], [host("a")], [node("a")]);
    let case = case_of(&world, A).unwrap();
    let (known, around, config) = (
        RemediationMemory::default(),
        ConcurrentRemediations::default(),
        RemediationConfig::default(),
    );
    let decision = decide(&case, &known, &around, &config, now(5));
    let shown = &decision.report.conditions[0];
    assert_eq!(shown.status.as_str(), "False");
    assert_eq!(shown.reason, RemediationReason::NotNeeded.as_str());
}

#[test]
fn marks_and_leases_that_nobody_stands_behind_are_taken_away() {
    let fenced = ObservedNode {
        being_fenced: true,
        ..node("a")
    };
    let mut world = world([machine("a")], [host("a")], [fenced]);
    let lease = HeldRemediationLease {
        resource_version: "1".into(),
        ..HeldRemediationLease::default()
    };
    world.leases.insert(node_name("a"), lease.clone());
    world.leases.insert(node_name("gone"), lease);
    let (known, around, config) = (
        RemediationMemory::default(),
        ConcurrentRemediations::default(),
        RemediationConfig::default(),
    );
    let act = |subject: &str| {
        let case = case_of(&world, subject).unwrap();
        decide(&case, &known, &around, &config, now(5)).actions
    };
    assert!(matches!(
        &act(NODE_A)[..],
        [
            RemediationAction::UnmarkNode { .. },
            RemediationAction::FreeLease { .. }
        ]
    ));
    assert!(matches!(
        &act("node/n-gone")[..],
        [RemediationAction::FreeLease { .. }]
    ));
}

/// A host whose remediation waits for its Node: the key is gone.
fn awaited(state: &str) -> HostSnapshot {
    let owner = KeyOwner::Machine("uid-a".into());
    let mut host = begun(host("a"), &owner);
    host.annotations.remove(&owner.annotation_name());
    let mut record = record_on_host(&host).unwrap();
    record.push_step(StepStamp {
        step: RemediationStep::KeyRemoved,
        at: jiff::Timestamp::UNIX_EPOCH,
    });
    let text = serde_json::to_string(&record).unwrap();
    let name = "dogwatch.dev/remediation".to_owned();
    host.annotations.insert(name, text);
    host.status.provisioning = Some(state.into());
    host
}

#[test]
fn a_node_that_nobody_waits_for_any_more_is_not_counted_as_out_for_ever() {
    let mut unlinked = machine("a");
    unlinked.host = None;
    let another = ObservedMachine {
        uid: "uid-of-another".into(),
        ..machine("b")
    };
    let table = [
        (vec![machine("a")], "provisioned", false),
        // A link that is broken for now: the machine may be back in a moment.
        (vec![unlinked], "provisioned", false),
        (vec![machine("a")], "available", true),
        (vec![], "provisioned", true),
        (vec![another], "provisioned", true),
    ];
    for (machines, state, is_over) in table {
        let text = format!("{machines:?} {state}");
        let mut world = world(machines, [awaited(state)], []);
        let lease = HeldRemediationLease {
            resource_version: "1".into(),
            ..HeldRemediationLease::default()
        };
        world.leases.insert(node_name("a"), lease);
        let (known, around, config) = (
            RemediationMemory::default(),
            ConcurrentRemediations::default(),
            RemediationConfig::default(),
        );
        let actions: Vec<RemediationAction> = discover_remediations(&world)
            .iter()
            .flat_map(|case| decide(case, &known, &around, &config, now(5)).actions)
            .collect();
        let mut records = actions.iter().filter_map(RemediationAction::host_record);
        let ends = records.any(|record| record.time_of_step(RemediationStep::Failed).is_some());
        let frees = actions
            .iter()
            .any(|action| matches!(action, RemediationAction::FreeLease { .. }));
        assert_eq!((ends, frees), (is_over, is_over), "{text}: {actions:?}");
    }
}

#[test]
fn a_mark_of_somebody_elses_remediation_stays() {
    let fenced = ObservedNode {
        being_fenced: true,
        needs_remediation: true,
        ..node("a")
    };
    let owner = KeyOwner::Machine("uid-a".into());
    let world = world([marked("a")], [keyed(host("a"), &owner)], [fenced]);
    let case = case_of(&world, NODE_A).unwrap();
    let around =
        ConcurrentRemediations::from_remediations(&discover_remediations(&world), |_| true);
    let (known, config) = (RemediationMemory::default(), RemediationConfig::default());
    assert_eq!(
        decide(&case, &known, &around, &config, now(5)).actions,
        vec![]
    );
}

#[test]
fn a_request_is_for_the_node_it_names_else_its_machine_else_its_own_name() {
    let all = || {
        let hosts = [host("a"), host("b"), naming(host("c"), "c")];
        let nodes = [
            node("a"),
            node("b"),
            ObservedNode {
                name: "c".parse().unwrap(),
                ..node("c")
            },
        ];
        world([machine("a"), machine("b")], hosts, nodes)
    };
    let request = |node: Option<&str>, machine: Option<&str>| PowerRequest {
        name: ObjectName::new("requests", "c"),
        uid: "r".into(),
        has_finalizer: false,
        node_name: node.map(str::to_owned),
        machine: machine.map(machine_name),
        machine_uid: machine.map(|name| format!("uid-{name}")),
        ..request()
    };
    for (request, host) in [
        (request(Some("n-a"), None), Ok(host_name("a"))),
        (request(Some("n-a"), Some("a")), Ok(host_name("a"))),
        (
            request(Some("n-a"), Some("b")),
            Err(RemediationReason::BadRequest),
        ),
        (request(None, Some("b")), Ok(host_name("b"))),
        (request(None, Some("x")), Err(RemediationReason::NoHost)),
        (request(None, None), Ok(host_name("c"))),
        (
            request(Some("nobody"), None),
            Err(RemediationReason::NoNode),
        ),
    ] {
        let mut world = all();
        let what = format!("{:?} {:?}", request.node_name, request.machine);
        world
            .requests
            .insert(request.name.clone(), Arc::new(request));
        assert_eq!(found(&world, "powerremediation/requests/c"), host, "{what}");
    }
}

#[test]
fn a_machine_whose_node_or_infrastructure_has_another_provider_id_is_refused_and_where_one_has_none_it_is_not()
 {
    let same = "metal3://machines/h-a/m3-a";
    let other = "metal3://machines/h-b/m3-b";
    for (machine, infra, node, is_refused) in [
        (None, None, None, false),
        (Some(same), None, None, false),
        (None, None, Some(other), false),
        (Some(same), Some(same), Some(same), false),
        (Some(same), None, Some(same), false),
        (Some(same), None, Some(other), true),
        (Some(same), Some(other), None, true),
        (None, Some(same), Some(other), true),
        (Some(same), Some(same), Some(other), true),
        (Some(same), Some(other), Some(same), true),
    ] {
        let ids = format!("{machine:?} {infra:?} {node:?}");
        let own = |id: Option<&str>| id.map(str::to_owned);
        let seen = ObservedNode {
            provider_id: own(node),
            ..super::kit::node("a")
        };
        let capi = ObservedMachine {
            provider_id: own(machine),
            ..capi("a")
        };
        let others = [marked("b")];
        let hosts = [host("a"), host("b")];
        let nodes = [seen, super::kit::node("b")];
        let machines = [capi].into_iter().chain(others);
        let mut world = with_infra(world(machines, hosts, nodes), "a", Some("machines/h-a"));
        let infra_machine = world.infra.values_mut().next().unwrap();
        Arc::make_mut(infra_machine).provider_id = own(infra);
        let found_a = found(&world, A);
        let wanted = if is_refused {
            Err(RemediationReason::BadHostLink)
        } else {
            Ok(host_name("a"))
        };
        assert_eq!(found_a, wanted, "{ids}");
        assert_eq!(found(&world, "machine/machines/b"), Ok(host_name("b")));
        if is_refused {
            let (_, text) = case_of(&world, A).unwrap().problem.unwrap();
            assert!(text.contains(same) && text.contains(other), "{text}");
        }
    }
}

#[test]
fn a_metal3machine_of_another_namespace_is_not_this_machines_whatever_the_host_says() {
    let mut machine = capi("a");
    machine.host = Some("machines/h-a".into());
    machine.infra.as_mut().unwrap().object.namespace = "other".into();
    let theirs = ObjectName::new("other", "m3-a");
    let host = consumed(host("a"), INFRA, "Metal3Machine", &theirs);
    let world = world([machine], [host], []);
    assert_eq!(found(&world, A), Err(RemediationReason::HostOfAnother));
}

#[test]
fn a_nodes_key_on_a_machines_host_is_anothers_while_that_node_is_there_and_else_nobodys() {
    for (uid, word) in [
        ("uid-n-a", RemediationReason::HostOfAnother),
        ("uid-old", RemediationReason::OrphanedKey),
    ] {
        let mut host = keyed(host("a"), &KeyOwner::Node(uid.into()));
        host.annotations.insert(NODE.into(), "n-a".into());
        let world = world([marked("a")], [host], [node("a")]);
        assert_eq!(found(&world, A), Err(word), "{uid}");
    }
}

#[test]
fn a_remediation_that_has_ended_is_nobodys_affair_any_more() {
    for subject in ["node/n-a", "machine/machines/a", "host/machines/h-a"] {
        let mut record = RemediationRecord {
            subject: subject.into(),
            uid: "uid-n-a".into(),
            node: Some("n-a".into()),
            node_uid: None,
            cluster: None,
            cluster_uid: None,
            boot_id: None,
            attempt: 1,
            steps: Vec::new(),
        };
        for (ended, affairs) in [(false, 1), (true, 0)] {
            if ended {
                let at = jiff::Timestamp::UNIX_EPOCH;
                let step = RemediationStep::NodeReady;
                record.push_step(StepStamp { step, at });
            }
            let host = with_record(carrying(host("a"), "n-a"), &record);
            let cases = discover_remediations(&world([], [host], [node("a")]));
            assert_eq!(cases.len(), affairs, "{subject} {cases:?}");
        }
    }
}

#[test]
fn a_planned_reboot_is_handed_over_by_every_link_that_remediation_goes_by() {
    let named = |text: &str| NodeName::new(text).unwrap();
    let found =
        |world: &RemediationSnapshot| host_carrying(world, &named("n-a")).map(|it| it.name.clone());
    // A Machine's annotation, whether or not the host names a Node.
    let linked = world([machine("a")], [host("a"), host("b")], [node("a")]);
    assert_eq!(found(&linked), Ok(host_name("a")));
    // The host's own annotation, where there is no Machine.
    let mut says = host("b");
    says.annotations.insert(NODE.into(), "n-a".into());
    let by_itself = world([], [host("a"), says.clone()], [node("a")]);
    assert_eq!(found(&by_itself), Ok(host_name("b")));
    // The two contradict each other; the host has another consumer; there is no host.
    let both = world([machine("a")], [host("a"), says], [node("a")]);
    assert!(found(&both).unwrap_err().message().contains("correct"));
    let object = ObjectName::new("machines", "other");
    let of_another = consumed(host("a"), "machine.openshift.io", "Machine", &object);
    let of_another = world([machine("a")], [of_another], [node("a")]);
    assert!(
        found(&of_another)
            .unwrap_err()
            .message()
            .contains("spec.consumerRef")
    );
    let none = world([], [host("a")], [node("a")]);
    assert!(
        found(&none)
            .unwrap_err()
            .message()
            .contains("no BareMetalHost has annotation")
    );
}

#[test]
fn a_request_and_a_hosts_link_that_are_gone_wait_for_no_node() {
    for subject in ["powerremediation/site/r", "node/n-a"] {
        let mut host = awaited("provisioned");
        let mut record = record_on_host(&host).unwrap();
        record.subject = subject.into();
        record.uid = "uid-r".into();
        let text = serde_json::to_string(&record).unwrap();
        let name = "dogwatch.dev/remediation".to_owned();
        host.annotations.insert(name, text);
        let mut world = world([], [host], []);
        let lease = HeldRemediationLease::default();
        world.leases.insert(node_name("a"), lease);
        let (known, around, config) = (
            RemediationMemory::default(),
            ConcurrentRemediations::default(),
            RemediationConfig::default(),
        );
        let actions: Vec<RemediationAction> = discover_remediations(&world)
            .iter()
            .flat_map(|case| decide(case, &known, &around, &config, now(5)).actions)
            .collect();
        let mut records = actions.iter().filter_map(RemediationAction::host_record);
        assert!(
            records.any(|record| record.time_of_step(RemediationStep::Failed).is_some()),
            "{subject}: {actions:?}"
        );
    }
}

#[test]
fn a_host_carries_the_node_that_it_names_else_that_of_its_machine() {
    let of = |host: HostSnapshot| nodes_of_host(&std::sync::Arc::new(host), [machine("a")], []);
    assert_eq!(of(host("a")), [node_name("a")]);
    assert_eq!(of(naming(host("a"), "n-b")), [node_name("b")]);
    assert_eq!(of(host("b")), []);
}

#[test]
fn a_ready_node_is_switched_off_only_if_no_second_host_names_it() {
    let named = |name: &str, node: &str, second| HostSnapshot {
        created: jiff::Timestamp::from_second(second).ok(),
        ..naming(host(name), node)
    };
    let found = |machines: Vec<ObservedMachine>, hosts: [HostSnapshot; 2]| {
        let world = world(machines, hosts, [node("a")]);
        let found = sole_host_carrying(&world, &node_name("a"));
        let found = found.map(|it| it.name.to_string());
        found.map_err(|problem| problem.message().to_owned())
    };
    let own = || Ok("machines/h-a".to_owned());
    let linked = vec![machine("a")];
    assert_eq!(found(linked.clone(), [host("a"), host("b")]), own());
    let other = named("b", "n-b", 2);
    assert_eq!(found(linked, [host("a"), other.clone()]), own());
    assert_eq!(found(vec![], [named("a", "n-a", 1), other]), own());
    let claims = [named("a", "n-a", 1), named("b", "n-a", 2)];
    let text = "hosts machines/h-a and machines/h-b both claim node n-a; remove annotation \
                dogwatch.dev/node from the wrong one";
    assert_eq!(found(vec![], claims), Err(text.to_owned()));
}
