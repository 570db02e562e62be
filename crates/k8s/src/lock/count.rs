//! The reads behind one count of the budget: fresh ones, sent after the Lease was won.
//!
//! Three calls whatever the size of the group: its nodes as a Table without objects (a row is some
//! 200 bytes, a Node 10 KiB and more), the ignored among them as metadata, and all Leases.

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_api::{label, lease as lease_name};
use dogwatch_core::handshake::RemedyRecord;
use dogwatch_core::lock::{HeldSeen, HolderId, LeaseSeen, NodeRow, Reads, RemediationHeld};
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::{self, Policies};
use http::header::{ACCEPT, HeaderValue};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::ListParams;
use serde::Deserialize;
use serde_json::Value;

use super::group::is_exact;
use super::{LockClient, and, group_selector, lease, remedy, trim};
use crate::error::{Error, ask};

impl LockClient {
    /// Who is out, read afresh for our `own` Lease; `core`'s `count` makes a count of it. No read
    /// names a resourceVersion, so each is at least as new as this call (a quorum read).
    ///
    /// `policies` say who is a member; read them afresh as well.
    pub async fn count_reads(
        &self,
        own: &LeaseSeen,
        group: &GroupName,
        policies: &Policies,
    ) -> Result<Reads, Error> {
        let leases = trim::list(&self.leases, ListParams::default()).await?;
        let held = leases
            .iter()
            .filter_map(|lease| held(lease, group))
            .map(|held| held.without_vanished_group(policies.known()))
            .collect();
        Ok(Reads {
            lease: own.name.clone(),
            group: group.clone(),
            nodes: self.members(group, policies).await?,
            held,
        })
    }

    /// How many members the group has; ignored ones do not count.
    pub async fn group_size(&self, group: &GroupName, policies: &Policies) -> Result<u32, Error> {
        let members = self.members(group, policies).await?;
        let counted = members.iter().filter(|row| !row.ignored).count();
        Ok(u32::try_from(counted).unwrap_or(u32::MAX))
    }

    async fn members(&self, group: &GroupName, policies: &Policies) -> Result<Vec<NodeRow>, Error> {
        // The selector of a group that no policy makes would be that of the group `default`.
        if !policy::has_group(policies.known(), group) {
            return Ok(Vec::new());
        }
        let selector = group_selector(group, policies);
        if !is_exact(policies) {
            return self.members_by_label(group, policies, &selector).await;
        }
        let table = self.node_table(&selector, "None").await?;
        let ignored = and(&format!("{}=true", label::IGNORE), &selector);
        let ignored = ListParams::default().labels(&ignored);
        let ignored = ask(self.nodes().list_metadata(&ignored)).await?;
        let ignored: BTreeSet<String> = ignored.items.iter().map(ResourceExt::name_any).collect();
        Ok(rows(&table)?
            .into_iter()
            .map(|(row, _)| NodeRow {
                ignored: ignored.contains(row.name.as_str()),
                ..row
            })
            .collect())
    }

    /// Policies tell members by their labels, so each row brings its node's metadata.
    async fn members_by_label(
        &self,
        group: &GroupName,
        policies: &Policies,
        selector: &str,
    ) -> Result<Vec<NodeRow>, Error> {
        let table = self.node_table(selector, "Metadata").await?;
        let rows = rows(&table)?.into_iter();
        let members = rows.filter(|(_, labels)| policy::group(policies, labels) == *group);
        Ok(members
            .map(|(row, labels)| NodeRow {
                ignored: labels
                    .get(label::IGNORE)
                    .is_some_and(|value| value == "true"),
                ..row
            })
            .collect())
    }

    async fn node_table(&self, selector: &str, objects: &'static str) -> Result<Table, Error> {
        let params = ListParams::default().labels(selector);
        let request = kube::core::Request::new(self.nodes().resource_url()).list(&params);
        let request = request
            .map_err(kube::Error::BuildRequest)
            .and_then(|request| as_table(request, objects))?;
        ask(self.client.request::<Table>(request)).await
    }
}

/// `meta.k8s.io/v1` Table, what is used of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    column_definitions: Vec<Column>,
    #[serde(default)]
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Column {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Row {
    cells: Vec<Value>,
    /// `null` where no objects were asked for.
    #[serde(default)]
    object: Option<Object>,
}

/// `PartialObjectMetadata`, what is used of it.
#[derive(Debug, Default, Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Labels,
}

#[derive(Debug, Default, Deserialize)]
struct Labels {
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

fn as_table(
    list: http::Request<Vec<u8>>,
    objects: &'static str,
) -> kube::Result<http::Request<Vec<u8>>> {
    let (mut parts, body) = list.into_parts();
    let uri = format!("{}&includeObject={objects}", parts.uri);
    parts.uri = uri
        .parse()
        .map_err(|error| kube::Error::HttpError(http::Error::from(error)))?;
    let accept = HeaderValue::from_static("application/json;as=Table;v=v1;g=meta.k8s.io");
    parts.headers.insert(ACCEPT, accept);
    Ok(http::Request::from_parts(parts, body))
}

type NodeLabels = BTreeMap<String, String>;

fn rows(table: &Table) -> Result<Vec<(NodeRow, NodeLabels)>, Error> {
    let column = |name: &str| {
        let place = table
            .column_definitions
            .iter()
            .position(|column| column.name == name);
        place.ok_or_else(|| unreadable(format!("the table of nodes has no column {name}")))
    };
    let (name, status, roles) = (column("Name")?, column("Status")?, column("Roles")?);
    let cell = |row: &Row, place: usize| -> Option<String> {
        Some(row.cells.get(place)?.as_str()?.to_owned())
    };
    let read = |row: &Row| {
        let name = NodeName::new(cell(row, name)?).ok()?;
        let object = row.object.as_ref();
        let labels = object.map(|object| object.metadata.labels.clone());
        Some((
            node_row(name, &cell(row, status)?, &cell(row, roles)?),
            labels.unwrap_or_default(),
        ))
    };
    let complete = || unreadable("a row of the table of nodes lacks its name or status".into());
    table
        .rows
        .iter()
        .map(|row| read(row).ok_or_else(complete))
        .collect()
}

/// The role of label `node-role.kubernetes.io/control-plane`, as the column of roles names it.
const CONTROL_PLANE_ROLE: &str = "control-plane";

/// The status column says `Ready`, `NotReady` or `Unknown`, and `SchedulingDisabled` where
/// `spec.unschedulable` is set; that of roles names them with commas between. Source: kube-apiserver's `pkg/printers/internalversion`.
fn node_row(name: NodeName, status: &str, roles: &str) -> NodeRow {
    let among = |words: &str, word: &str| words.split(',').any(|part| part == word);
    NodeRow {
        ready: among(status, "Ready"),
        unschedulable: among(status, "SchedulingDisabled"),
        ignored: false,
        control_plane: among(roles, CONTROL_PLANE_ROLE),
        name,
    }
}

pub(super) fn held(lease: &Lease, group: &GroupName) -> Option<HeldSeen> {
    let name = lease.name_any();
    let own_kind = name.starts_with(lease_name::PREFIX);
    let holder = lease::holder(lease).filter(|_| own_kind)?;
    let record = lease::record(lease);
    let remedy = remedy::record(lease);
    let is_remedy = name.starts_with(lease_name::REMEDY_PREFIX);
    let node = record.as_ref().and_then(|record| record.node.clone());
    let node = node.or_else(|| remedy.as_ref().map(|remedy| remedy.node.clone()));
    Some(HeldSeen {
        slot: lease_name::slot_of(&name, group.as_str()),
        resource_version: lease.resource_version().unwrap_or_default(),
        max: record.as_ref().map(|record| record.max),
        node: node.or_else(|| node_in_name(&name, &holder)),
        remediation: is_remedy.then(|| remediation(remedy)),
        holder,
        lease: name,
    })
}

/// What cannot be read may be a control-plane node, and of any group.
fn remediation(record: Option<RemedyRecord>) -> RemediationHeld {
    RemediationHeld {
        control_plane: record.as_ref().is_none_or(|record| record.control_plane),
        since: record.as_ref().map(|record| record.since),
        group: record.and_then(|record| record.group),
    }
}

/// The Lease of a remediation that is held, as a count of whatever group sees it.
pub(crate) fn fenced_by(lease: &Lease) -> Option<HeldSeen> {
    let name = lease.name_any();
    let held = held(lease, &GroupName::default_group())?;
    name.starts_with(lease_name::REMEDY_PREFIX).then_some(held)
}

/// The Node that a Lease without a readable record is held for, by its holder's name or, for a
/// remediation's, its own.
fn node_in_name(lease: &str, holder: &HolderId) -> Option<NodeName> {
    let text = holder.as_str();
    let named = match text.strip_prefix("node/").filter(|_| !holder.is_hashed()) {
        Some(name) => name,
        None if text.starts_with("remedy") => lease.strip_prefix(lease_name::REMEDY_PREFIX)?,
        None => return None,
    };
    NodeName::new(named).ok()
}

fn unreadable(why: String) -> Error {
    Error::Unreadable(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table(rows: &Value) -> Table {
        let columns = json!([{"name": "Roles"}, {"name": "Name"}, {"name": "Status"}]);
        serde_json::from_value(json!({"columnDefinitions": columns, "rows": rows})).unwrap()
    }

    #[test]
    fn the_columns_say_ready_unschedulable_and_of_the_control_plane() {
        let cells = |name: &str, status: &str, roles| json!({"cells": [roles, name, status], "object": null});
        let table = table(&json!([
            cells("a", "Ready", "<none>"),
            cells("b", "NotReady", "etcd,control-plane"),
            cells("c", "Ready,SchedulingDisabled", "control-plane-canary"),
            cells("d", "Unknown,SchedulingDisabled", "control-plane"),
        ]));
        let rows = rows(&table).unwrap();
        let seen: Vec<_> = rows
            .iter()
            .map(|(row, _)| (row.ready, row.unschedulable, row.control_plane))
            .collect();
        assert_eq!(
            seen,
            [
                (true, false, false),
                (false, false, true),
                (true, true, false),
                (false, true, true)
            ]
        );
    }

    #[test]
    fn a_table_that_cannot_be_read_is_no_empty_group() {
        let bad = table(&json!([{"cells": ["a"]}]));
        assert!(rows(&bad).is_err());
        let other = serde_json::from_value(json!({"columnDefinitions": [], "rows": []})).unwrap();
        assert!(rows(&other).is_err());
    }

    fn lease(name: &str, holder: &str, record: &str) -> Lease {
        serde_json::from_value(json!({
            "metadata": {"name": name, "resourceVersion": "5",
                "annotations": {"dogwatch.dev/holder": record}},
            "spec": {"holderIdentity": holder},
        }))
        .unwrap()
    }

    #[test]
    fn every_held_lease_of_ours_says_which_node_it_keeps_out() {
        let group = GroupName::default_group();
        let record =
            r#"{"node":"n7","group":"default","max":3,"since":"2026-11-21T04:00:00Z","runs":[]}"#;
        let of = |name, holder, record| {
            let held = held(&lease(name, holder, record), &group)?;
            Some((held.node.map(|node| node.to_string()), held.slot, held.max))
        };
        let n = |name: &str| Some(name.to_owned());
        let table = [
            (
                "dogwatch-default-0",
                "node/n7",
                record,
                Some((n("n7"), Some(0), Some(3))),
            ),
            (
                "dogwatch-default-1",
                "node/n8",
                "{",
                Some((n("n8"), Some(1), None)),
            ),
            (
                "dogwatch-control-plane-0",
                "node/cp",
                "",
                Some((n("cp"), None, None)),
            ),
            (
                "dogwatch-remedy-n9",
                "remedy",
                "",
                Some((n("n9"), None, None)),
            ),
            (
                "dogwatch-default-2",
                "api/host",
                "",
                Some((None, Some(2), None)),
            ),
            (
                "dogwatch-controller",
                "dogwatch-7f_1",
                "",
                Some((None, None, None)),
            ),
            ("dogwatch-default-3", "", "", None),
            ("kured", "node/n1", "", None),
        ];
        for (name, holder, record, expected) in table {
            assert_eq!(of(name, holder, record), expected, "{name} {holder}");
        }
    }
}
