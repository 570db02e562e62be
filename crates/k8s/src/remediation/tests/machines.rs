//! Tests Machines of each API version.

use dogwatch_core::remediation::{InfraRef, MachineApi, ObjectName, ObservedMachine};
use serde_json::{Value, json};

use super::object;
use crate::remediation::machine::{parse_cluster, parse_infra_machine, parse_machine};

fn seen(api: MachineApi, metadata: &Value, spec: &Value, status: &Value) -> ObservedMachine {
    let mut whole = json!({ "name": "m", "namespace": "ns", "uid": "u", "resourceVersion": "7" });
    let more = metadata.as_object().into_iter().flatten();
    for (key, value) in more {
        whole[key] = value.clone();
    }
    let json = json!({ "metadata": whole, "spec": spec, "status": status });
    parse_machine(&object(json), api)
}

fn bare(api: MachineApi) -> ObservedMachine {
    seen(api, &json!(null), &json!(null), &json!(null))
}

const APIS: [MachineApi; 2] = [MachineApi::OpenShift, MachineApi::ClusterApi];

#[test]
fn a_machine_of_which_nothing_is_known_needs_nothing_and_leads_nowhere() {
    for api in APIS {
        let machine = bare(api);
        assert_eq!((machine.name.api, &*machine.uid), (api, "u"));
        assert_eq!(machine.name.object, ObjectName::new("ns", "m"));
        assert_eq!(machine.resource_version, "7");
        assert_eq!(
            (&machine.need, &machine.host, &machine.infra, &machine.node),
            (&None, &None, &None, &None)
        );
        assert!(!machine.control_plane && !machine.paused && !machine.deleting);
        assert!(machine.conditions.is_empty());
    }
}

#[test]
fn annotations_and_the_node_are_read_in_every_form() {
    for api in APIS {
        let annotations = json!({
            "host.metal3.io/external-remediation": "", "metal3.io/BareMetalHost": "site/h",
            "cluster.x-k8s.io/paused": "" });
        let metadata =
            json!({ "annotations": annotations, "deletionTimestamp": "2026-01-01T00:00:00Z" });
        let status = json!({ "nodeRef": { "name": "n", "uid": "nu" } });
        let machine = seen(api, &metadata, &json!({}), &status);
        assert_eq!(machine.need.as_deref(), Some(""));
        assert_eq!(machine.host.as_deref(), Some("site/h"));
        assert_eq!(machine.node.as_deref(), Some("n"));
        assert!(machine.paused && machine.deleting);
    }
}

#[test]
fn what_its_provider_calls_it_is_read_in_every_form_and_nothing_is_no_name() {
    for api in APIS {
        let called = |id: Value| {
            let spec = json!({ "providerID": id });
            seen(api, &json!(null), &spec, &json!(null)).provider_id
        };
        assert_eq!(
            called(json!("metal3://a/b/c")),
            Some("metal3://a/b/c".into())
        );
        assert_eq!((called(json!("")), called(json!(null))), (None, None));
    }
}

#[test]
fn a_cluster_is_paused_where_its_spec_says_so() {
    for (spec, is_paused) in [
        (json!({ "paused": true }), true),
        (json!({ "paused": false }), false),
        (json!({}), false),
        (json!(null), false),
    ] {
        let object = json!({ "metadata": { "name": "c", "namespace": "ns" }, "spec": spec });
        let cluster = parse_cluster(&serde_json::from_value(object).unwrap());
        assert_eq!(cluster.name, ObjectName::new("ns", "c"));
        assert_eq!(cluster.paused, is_paused, "{spec}");
    }
}

#[test]
fn annotations_with_names_like_ours_are_not_the_need() {
    for name in [
        "host.metal3.io/external-remediation-2",
        "host.metal3.io/external",
        "metal3.io/external-remediation",
    ] {
        let metadata = json!({ "annotations": { name: "" } });
        let machine = seen(MachineApi::OpenShift, &metadata, &json!({}), &json!({}));
        assert_eq!(machine.need, None, "{name}");
    }
}

#[test]
fn the_control_plane_is_known_by_either_apis_label() {
    for (labels, is_it) in [
        (json!({ "cluster.x-k8s.io/control-plane": "" }), true),
        (
            json!({ "machine.openshift.io/cluster-api-machine-role": "master" }),
            true,
        ),
        (
            json!({ "machine.openshift.io/cluster-api-machine-role": "control-plane" }),
            true,
        ),
        (
            json!({ "machine.openshift.io/cluster-api-machine-role": "worker" }),
            false,
        ),
        (json!({ "cluster.x-k8s.io/control-plane-name": "c" }), false),
        (json!({}), false),
    ] {
        let metadata = json!({ "labels": labels });
        for api in APIS {
            let machine = seen(api, &metadata, &json!({}), &json!({}));
            assert_eq!(machine.control_plane, is_it, "{labels}");
        }
    }
}

#[test]
fn the_infrastructure_is_read_of_both_versions_and_is_in_the_machines_namespace_unless_said() {
    let infra = |namespace: &str| {
        Some(InfraRef {
            group: "infrastructure.cluster.x-k8s.io".into(),
            kind: "Metal3Machine".into(),
            object: ObjectName::new(namespace, "mm"),
        })
    };
    let version = "infrastructure.cluster.x-k8s.io/v1beta1";
    for (reference, expected) in [
        (
            json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": "mm" }),
            infra("ns"),
        ),
        (
            json!({ "apiVersion": version, "kind": "Metal3Machine", "name": "mm", "namespace": "other" }),
            infra("other"),
        ),
        (
            json!({ "apiVersion": version, "kind": "Metal3Machine", "name": "mm" }),
            infra("ns"),
        ),
        (
            json!({ "apiVersion": version, "kind": "Metal3Machine" }),
            None,
        ),
        (json!("mm"), None),
        (json!(null), None),
    ] {
        let spec = json!({ "infrastructureRef": reference });
        let machine = seen(MachineApi::ClusterApi, &json!({}), &spec, &json!({}));
        assert_eq!(machine.infra, expected, "{reference}");
    }
}

#[test]
fn conditions_of_ours_are_kept_whether_they_have_a_severity_or_not_and_others_are_not() {
    let condition = |kind: &str, severity: Value| {
        json!({ "type": kind, "status": "True", "severity": severity, "reason": "R", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let status = json!({ "conditions": [
        condition("Ready", json!(null)), condition("Remediation", json!("Info")),
        condition("OwnerRemediated", json!(null)), { "type": 7 }, "x" ] });
    let managed = json!([
        { "manager": "dogwatch-controller", "subresource": "status", "time": "2026-01-01T00:01:00Z" },
        { "manager": "dogwatch-controller", "time": "2026-01-01T00:03:00Z" },
        { "manager": "capi", "subresource": "status", "time": "2026-01-01T00:02:00Z" }]);
    for api in APIS {
        let machine = seen(
            api,
            &json!({ "managedFields": managed }),
            &json!({}),
            &status,
        );
        let kinds: Vec<&str> = machine.conditions.iter().map(|it| &*it.kind).collect();
        assert_eq!(kinds, ["Remediation", "OwnerRemediated"]);
        let first = &machine.conditions[0];
        assert_eq!((&*first.status, &*first.reason), ("True", "R"));
        assert_eq!(
            first.last_transition,
            Some("2026-01-01T00:00:00Z".parse().unwrap())
        );
        assert_eq!(
            first.last_heartbeat,
            Some("2026-01-01T00:01:00Z".parse().unwrap()),
            "when we wrote the status, and nobody else"
        );
    }
}

#[test]
fn a_metal3machine_names_its_host() {
    let metadata = json!({ "name": "mm", "namespace": "ns", "uid": "u",
        "annotations": { "metal3.io/BareMetalHost": "site/h" } });
    let spec = json!({ "providerID": "metal3://site/h/mm" });
    let infra = parse_infra_machine(&object(json!({ "metadata": metadata, "spec": spec })));
    assert_eq!(infra.provider_id.as_deref(), Some("metal3://site/h/mm"));
    assert_eq!(infra.name, ObjectName::new("ns", "mm"));
    assert_eq!((&*infra.uid, infra.host.as_deref()), ("u", Some("site/h")));
    let bare = parse_infra_machine(&object(json!({ "metadata": { "name": "mm" } })));
    assert_eq!((bare.host, bare.provider_id), (None, None));
}
