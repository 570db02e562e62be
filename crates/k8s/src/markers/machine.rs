//! Reads and marks the Machines of Cluster API whose Node is out of service.

use std::collections::BTreeSet;
use std::sync::Arc;

use dogwatch_api::annotation;
use dogwatch_core::markers::{MARKER_VALUE, MachineMarker};
use dogwatch_core::name::NodeName;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::patch_params;
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::paged::PagedObjects;
use crate::remediation::CLUSTER_API_MACHINE;
use crate::watch::WatchSource as _;

/// The Machines that carry our mark, or whose Node is one of these. None if Cluster API is not
/// installed.
pub(super) async fn list_marked_machines(
    client: &Client,
    nodes: &BTreeSet<NodeName>,
) -> Result<Vec<MachineMarker>, Error> {
    let Some(resource) = CLUSTER_API_MACHINE.find_served_version(client).await? else {
        return Ok(Vec::new());
    };
    let nodes: BTreeSet<String> = nodes.iter().map(ToString::to_string).collect();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let keep = Arc::new(move |machine: &_| {
        machine_mark(machine).filter(|mark| is_relevant_mark(mark, &nodes))
    });
    let list =
        with_timeout(PagedObjects { api, keep }.list_objects(&ListParams::default())).await?;
    let marks = list.items.into_iter().filter_map(|machine| machine.kept);
    Ok(marks.collect())
}

/// Adds or removes our mark.
pub(super) async fn annotate_machine(
    client: &Client,
    machine: &MachineMarker,
    there: bool,
) -> Result<(), Error> {
    let resource: Option<ApiResource> = CLUSTER_API_MACHINE.find_served_version(client).await?;
    let Some(resource) = resource else {
        return Ok(());
    };
    let machines: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &machine.namespace, &resource);
    let body = Patch::Merge(annotation_body(machine, there));
    match with_timeout(machines.patch_metadata(&machine.name, &patch_params(), &body)).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn annotation_body(machine: &MachineMarker, there: bool) -> Value {
    json!({ "metadata": {
        "uid": machine.uid,
        "resourceVersion": machine.resource_version,
        "annotations": { annotation::SKIP_REMEDIATION: there.then_some(MARKER_VALUE) },
    }})
}

fn is_relevant_mark(mark: &MachineMarker, nodes: &BTreeSet<String>) -> bool {
    let ours = mark.skip.as_deref() == Some(MARKER_VALUE);
    ours || mark.node.as_ref().is_some_and(|node| nodes.contains(node))
}

fn machine_mark(machine: &DynamicObject) -> Option<MachineMarker> {
    let node = &machine.data["status"]["nodeRef"];
    let text = |field: &str| {
        let text = node[field].as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    let skip = machine.annotations().get(annotation::SKIP_REMEDIATION);
    Some(MachineMarker {
        namespace: machine.namespace()?,
        name: machine.name_any(),
        uid: machine.uid()?,
        resource_version: machine.resource_version()?,
        node: text("name"),
        node_uid: text("uid"),
        skip: skip.cloned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_is_read_of_both_versions_and_only_our_mark_or_a_node_that_is_asked_for_concerns() {
        let machine = |status: Value, annotations: Value| {
            let machine = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
                "metadata": { "name": "m", "namespace": "ns", "uid": "u", "resourceVersion": "1",
                    "annotations": annotations },
                "status": status,
            });
            machine_mark(&serde_json::from_value(machine).unwrap()).unwrap()
        };
        let asked = BTreeSet::from(["n1".to_owned()]);
        let skip = |by: &str| json!({ "cluster.x-k8s.io/skip-remediation": by });
        let table = [
            (json!({}), json!({}), None, false),
            (
                json!({ "nodeRef": { "name": "n1" } }),
                json!({}),
                None,
                true,
            ),
            (
                json!({ "nodeRef": { "name": "n1", "uid": "x" } }),
                skip(""),
                Some("x"),
                true,
            ),
            (
                json!({ "nodeRef": { "name": "n2" } }),
                skip(""),
                None,
                false,
            ),
            (
                json!({ "nodeRef": { "name": "n2" } }),
                skip(MARKER_VALUE),
                None,
                true,
            ),
        ];
        for (status, annotations, uid, concerned) in table {
            let mark = machine(status.clone(), annotations);
            assert_eq!(mark.node_uid.as_deref(), uid, "{status}");
            assert_eq!(is_relevant_mark(&mark, &asked), concerned, "{mark:?}");
        }
    }

    #[test]
    fn every_write_names_the_incarnation_and_the_version_it_was_made_for() {
        let machine = MachineMarker {
            namespace: "ns".into(),
            name: "m".into(),
            uid: "u".into(),
            resource_version: "7".into(),
            node: None,
            node_uid: None,
            skip: None,
        };
        for there in [true, false] {
            let body = annotation_body(&machine, there);
            assert_eq!(
                (
                    &body["metadata"]["uid"],
                    &body["metadata"]["resourceVersion"]
                ),
                (&json!("u"), &json!("7"))
            );
            let value = &body["metadata"]["annotations"]["cluster.x-k8s.io/skip-remediation"];
            assert_eq!(value.as_str(), there.then_some("dogwatch.dev"));
        }
    }
}
