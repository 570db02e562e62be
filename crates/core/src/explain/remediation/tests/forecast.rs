//! What is foreseen of a remediation that nobody has asked for, or that is under way.

use super::*;

#[test]
fn a_failure_is_foreseen_while_nothing_is_asked() {
    let quiet = |host: Option<&str>| ObservedMachine {
        need: None,
        host: host.map(str::to_owned),
        ..marked()
    };
    let n1 = NodeName::new("n1").unwrap();
    let uuid = ObservedNode {
        system_uuid: Some("4d2c7f0e-1111-4222-8333-0123456789ab".into()),
        ..node("n1")
    };
    let of = |machine, host, node: &ObservedNode| {
        let view = view(machine, host, vec![node.clone()]);
        forecast_node(&view, &n1, now(100)).unwrap()
    };
    let well = of(quiet(Some("metal/h1")), its_host(), &uuid);
    assert_eq!(well.subject, "machine/machines/m1");
    assert_eq!(
        (&well.refusal, &well.not_ready, well.no_identity),
        (&None, &None, false)
    );
    let mut unread = its_host();
    unread.status.power.state = Some(PowerState::Unknown);
    let unread = of(quiet(Some("metal/h1")), unread, &uuid);
    assert_eq!(
        unread.refusal, None,
        "what its power is now says nothing of then"
    );
    let unlinked = of(quiet(None), its_host(), &node("n1"));
    let (reason, _, passes) = unlinked.refusal.unwrap();
    assert_eq!((reason, passes), (RemediationReason::NoHost, false));
    assert!(unlinked.no_identity);
    let mut away = its_host();
    away.status.conditions.pop();
    assert!(of(quiet(Some("metal/h1")), away, &uuid).not_ready.is_some());
    let busy = of(marked(), keyed(), &failed());
    assert!(busy.under_way && busy.refusal.is_none());
    let view = view(quiet(None), its_host(), Vec::new());
    assert_eq!(forecast_node(&view, &n1, now(100)), None);
}

#[test]
fn a_key_that_nothing_asks_for_any_more_is_on_its_way_out_and_not_a_remediation_to_join() {
    let withdrawn = ObservedMachine {
        need: None,
        ..marked()
    };
    let view = view(withdrawn, keyed(), vec![failed()]);
    let n1 = NodeName::new("n1").unwrap();
    for foreseen in [
        forecast_node(&view, &n1, now(100)).unwrap(),
        forecast_machine(&view, &name("m1"), now(100)).unwrap(),
    ] {
        assert_eq!((foreseen.under_way, foreseen.is_ending), (true, true));
        assert_eq!(foreseen.subject, "machine/machines/m1");
    }
    let wanted = super::view(marked(), keyed(), vec![failed()]);
    let foreseen = forecast_node(&wanted, &n1, now(100)).unwrap();
    assert_eq!((foreseen.under_way, foreseen.is_ending), (true, false));
}

#[test]
fn a_machine_of_another_provider_id_is_not_the_machine_of_a_node_of_that_name() {
    let id = |id: Option<&str>| id.map(str::to_owned);
    let capi = |its: Option<&str>| ObservedMachine {
        name: MachineName {
            api: MachineApi::ClusterApi,
            ..name("m1")
        },
        provider_id: id(its),
        ..marked()
    };
    let openshift = |its: Option<&str>| ObservedMachine {
        provider_id: id(its),
        ..marked()
    };
    let (a, b) = (Some("metal3://a/h/m"), Some("metal3://b/h/m"));
    for (machine, nodes, is_possible) in [
        (openshift(a), a, true),
        (openshift(a), b, false),
        (openshift(a), None, true),
        (openshift(None), a, true),
        (capi(a), a, true),
        (capi(a), b, false),
        (capi(a), None, false),
        (capi(None), a, true),
    ] {
        let seen = ObservedNode {
            provider_id: id(nodes),
            ..failed()
        };
        let what = format!("{:?} {nodes:?}", machine.provider_id);
        let view = view(machine, its_host(), vec![seen.clone()]);
        let found = machines_of_node(&view, &seen);
        let counts = (found.possible.len(), found.of_others.len());
        assert_eq!(counts == (1, 0), is_possible, "{what}");
        assert_eq!(counts.0 + counts.1, 1, "{what}");
    }
}
