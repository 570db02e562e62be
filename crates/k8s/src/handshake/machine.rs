//! Cluster API's Machines: whose Node is away, and the annotation that says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use dogwatch_api::annotation;
use dogwatch_core::handshake::{MARK, MachineMark};
use dogwatch_core::name::NodeName;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::params;
use crate::error::{Error, Kind, ask};
use crate::paged::Paged;
use crate::remedy::CLUSTER_API;
use crate::watch::Watched as _;

/// Those that carry our mark, or whose Node is one of these. None where Cluster API is not there.
pub(super) async fn marked(
    client: &Client,
    nodes: &BTreeSet<NodeName>,
) -> Result<Vec<MachineMark>, Error> {
    let Some(resource) = CLUSTER_API.served(client).await? else {
        return Ok(Vec::new());
    };
    let nodes: BTreeSet<String> = nodes.iter().map(ToString::to_string).collect();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let keep = Arc::new(move |machine: &_| mark(machine).filter(|mark| concerns(mark, &nodes)));
    let list = ask(Paged { api, keep }.list(&ListParams::default())).await?;
    let marks = list.items.into_iter().filter_map(|machine| machine.kept);
    Ok(marks.collect())
}

/// Puts our mark on it, or takes it off.
pub(super) async fn annotate(
    client: &Client,
    machine: &MachineMark,
    there: bool,
) -> Result<(), Error> {
    let resource: Option<ApiResource> = CLUSTER_API.served(client).await?;
    let Some(resource) = resource else {
        return Ok(());
    };
    let machines: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &machine.namespace, &resource);
    let body = Patch::Merge(body(machine, there));
    match ask(machines.patch_metadata(&machine.name, &params(), &body)).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == Kind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn body(machine: &MachineMark, there: bool) -> Value {
    json!({ "metadata": {
        "uid": machine.uid,
        "resourceVersion": machine.resource_version,
        "annotations": { annotation::SKIP_REMEDIATION: there.then_some(MARK) },
    }})
}

fn concerns(mark: &MachineMark, nodes: &BTreeSet<String>) -> bool {
    let ours = mark.skip.as_deref() == Some(MARK);
    ours || mark.node.as_ref().is_some_and(|node| nodes.contains(node))
}

fn mark(machine: &DynamicObject) -> Option<MachineMark> {
    let node = &machine.data["status"]["nodeRef"];
    let text = |field: &str| {
        let text = node[field].as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    let skip = machine.annotations().get(annotation::SKIP_REMEDIATION);
    Some(MachineMark {
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
            mark(&serde_json::from_value(machine).unwrap()).unwrap()
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
                skip(MARK),
                None,
                true,
            ),
        ];
        for (status, annotations, uid, concerned) in table {
            let mark = machine(status.clone(), annotations);
            assert_eq!(mark.node_uid.as_deref(), uid, "{status}");
            assert_eq!(concerns(&mark, &asked), concerned, "{mark:?}");
        }
    }

    #[test]
    fn every_write_names_the_incarnation_and_the_version_it_was_made_for() {
        let machine = MachineMark {
            namespace: "ns".into(),
            name: "m".into(),
            uid: "u".into(),
            resource_version: "7".into(),
            node: None,
            node_uid: None,
            skip: None,
        };
        for there in [true, false] {
            let body = body(&machine, there);
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
