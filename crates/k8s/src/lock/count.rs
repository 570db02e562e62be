//! Reads the inputs of one budget count, after the Lease was won.
//!
//! Three calls for a group of any size: its nodes as a Table without objects (a row has some 200
//! bytes, a Node 10 KiB and more), the ignored ones among them as metadata, and all Leases.

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_api::{label, lease as lease_name};
use dogwatch_core::lock::{
    BudgetReads, GroupMember, HeldLockLease, HolderId, ObservedLease, RemediationHold,
};
use dogwatch_core::markers::RemediationLeaseRecord;
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::{self, ClusterPolicies};
use http::header::{ACCEPT, HeaderValue};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::ListParams;
use serde::Deserialize;
use serde_json::Value;

use super::group::is_selector_exact;
use super::{LockClient, group_selector, join_selectors, lease, remediation, trim};
use crate::error::{Error, with_timeout};
use crate::readable_dates::ReadableApi as _;

impl LockClient {
    /// Who is unavailable, read for our `own` Lease; `core`'s `count_unavailable` makes a count of
    /// it. No read names a resourceVersion, so each is at least as new as this call (a quorum
    /// read).
    ///
    /// `policies` decide who is a member; the caller reads them fresh as well.
    pub async fn read_budget_inputs(
        &self,
        own: &ObservedLease,
        group: &GroupName,
        policies: &ClusterPolicies,
    ) -> Result<BudgetReads, Error> {
        let leases = trim::list_trimmed_leases(&self.leases, ListParams::default()).await?;
        let held = leases
            .iter()
            .filter_map(|lease| observed_hold(lease, group))
            .map(|held| held.without_vanished_group(policies.known_policies()))
            .collect();
        Ok(BudgetReads {
            lease: own.name.clone(),
            group: group.clone(),
            nodes: self.list_members(group, policies).await?,
            held,
        })
    }

    /// Ignored members do not count.
    pub async fn read_group_size(
        &self,
        group: &GroupName,
        policies: &ClusterPolicies,
    ) -> Result<u32, Error> {
        let members = self.list_members(group, policies).await?;
        let counted = members.iter().filter(|row| !row.ignored).count();
        Ok(u32::try_from(counted).unwrap_or(u32::MAX))
    }

    async fn list_members(
        &self,
        group: &GroupName,
        policies: &ClusterPolicies,
    ) -> Result<Vec<GroupMember>, Error> {
        // A group without policy would get the selector of the group `default`.
        if !policy::has_group(policies.known_policies(), group) {
            return Ok(Vec::new());
        }
        let selector = group_selector(group, policies);
        if !is_selector_exact(policies) {
            return self.list_members_by_label(group, policies, &selector).await;
        }
        let table = self.read_node_table(&selector, "None").await?;
        let ignored = join_selectors(&format!("{}=true", label::IGNORE), &selector);
        let ignored = ListParams::default().labels(&ignored);
        let ignored = with_timeout(self.node_api().list_readable_metadata(&ignored)).await?;
        let ignored: BTreeSet<String> = ignored.items.iter().map(ResourceExt::name_any).collect();
        Ok(node_rows(&table)?
            .into_iter()
            .map(|(row, _)| GroupMember {
                ignored: ignored.contains(row.name.as_str()),
                ..row
            })
            .collect())
    }

    /// Policies select members by label, so each row includes its node's metadata.
    async fn list_members_by_label(
        &self,
        group: &GroupName,
        policies: &ClusterPolicies,
        selector: &str,
    ) -> Result<Vec<GroupMember>, Error> {
        let table = self.read_node_table(selector, "Metadata").await?;
        let rows = node_rows(&table)?.into_iter();
        let members =
            rows.filter(|(_, labels)| policy::group_of_labels(policies, labels) == *group);
        Ok(members
            .map(|(row, labels)| GroupMember {
                ignored: labels
                    .get(label::IGNORE)
                    .is_some_and(|value| value == "true"),
                ..row
            })
            .collect())
    }

    async fn read_node_table(
        &self,
        selector: &str,
        objects: &'static str,
    ) -> Result<NodeTable, Error> {
        let params = ListParams::default().labels(selector);
        let request = kube::core::Request::new(self.node_api().resource_url()).list(&params);
        let request = request
            .map_err(kube::Error::BuildRequest)
            .and_then(|request| request_as_table(request, objects))?;
        with_timeout(self.client.request::<NodeTable>(request)).await
    }
}

/// The used part of a `meta.k8s.io/v1` Table.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeTable {
    column_definitions: Vec<NodeTableColumn>,
    #[serde(default)]
    rows: Vec<NodeTableRow>,
}

#[derive(Debug, Deserialize)]
struct NodeTableColumn {
    name: String,
}

#[derive(Debug, Deserialize)]
struct NodeTableRow {
    cells: Vec<Value>,
    /// `null` if no objects were requested.
    #[serde(default)]
    object: Option<NodeTableObject>,
}

/// The used part of `PartialObjectMetadata`.
#[derive(Debug, Default, Deserialize)]
struct NodeTableObject {
    #[serde(default)]
    metadata: LabelsOnly,
}

#[derive(Debug, Default, Deserialize)]
struct LabelsOnly {
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

fn request_as_table(
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

fn node_rows(table: &NodeTable) -> Result<Vec<(GroupMember, NodeLabels)>, Error> {
    let column = |name: &str| {
        let place = table
            .column_definitions
            .iter()
            .position(|column| column.name == name);
        place.ok_or_else(|| unreadable_table(format!("the table of nodes has no column {name}")))
    };
    let (name, status, roles) = (column("Name")?, column("Status")?, column("Roles")?);
    let cell = |row: &NodeTableRow, place: usize| -> Option<String> {
        Some(row.cells.get(place)?.as_str()?.to_owned())
    };
    let read = |row: &NodeTableRow| {
        let name = NodeName::new(cell(row, name)?).ok()?;
        let object = row.object.as_ref();
        let labels = object.map(|object| object.metadata.labels.clone());
        Some((
            parse_node_row(name, &cell(row, status)?, &cell(row, roles)?),
            labels.unwrap_or_default(),
        ))
    };
    let complete =
        || unreadable_table("a row of the table of nodes lacks its name or status".into());
    table
        .rows
        .iter()
        .map(|row| read(row).ok_or_else(complete))
        .collect()
}

/// The role of label `node-role.kubernetes.io/control-plane`, as the column of roles spells it.
const CONTROL_PLANE_ROLE: &str = "control-plane";

/// The status column contains `Ready`, `NotReady` or `Unknown`, and `SchedulingDisabled` if
/// `spec.unschedulable` is set; the roles column is separated by commas. Source: kube-apiserver's
/// `pkg/printers/internalversion`.
fn parse_node_row(name: NodeName, status: &str, roles: &str) -> GroupMember {
    let among = |words: &str, word: &str| words.split(',').any(|part| part == word);
    GroupMember {
        ready: among(status, "Ready"),
        unschedulable: among(status, "SchedulingDisabled"),
        ignored: false,
        control_plane: among(roles, CONTROL_PLANE_ROLE),
        name,
    }
}

pub(super) fn observed_hold(lease: &Lease, group: &GroupName) -> Option<HeldLockLease> {
    let name = lease.name_any();
    let own_kind = name.starts_with(lease_name::PREFIX);
    let holder = lease::lease_holder(lease).filter(|_| own_kind)?;
    let record = lease::lease_record(lease);
    let remedy = remediation::remediation_record(lease);
    let is_remedy = name.starts_with(lease_name::REMEDIATION_PREFIX);
    let node = record.as_ref().and_then(|record| record.node.clone());
    let node = node.or_else(|| remedy.as_ref().map(|remedy| remedy.node.clone()));
    Some(HeldLockLease {
        slot: lease_name::slot_number_of(&name, group.as_str()),
        resource_version: lease.resource_version().unwrap_or_default(),
        max: record.as_ref().map(|record| record.max),
        node: node.or_else(|| node_of_holder_name(&name, &holder)),
        remediation: is_remedy.then(|| remediation_held(remedy)),
        holder,
        lease: name,
    })
}

/// Without a readable record, the node counts as a control-plane node and for every group.
fn remediation_held(record: Option<RemediationLeaseRecord>) -> RemediationHold {
    RemediationHold {
        control_plane: record.as_ref().is_none_or(|record| record.control_plane),
        since: record.as_ref().map(|record| record.since),
        group: record.and_then(|record| record.group),
    }
}

/// The held Lease of a remediation, as the count of every group sees it; `None` for other Leases.
pub(crate) fn remediation_hold(lease: &Lease) -> Option<HeldLockLease> {
    let name = lease.name_any();
    let held = observed_hold(lease, &GroupName::default_group())?;
    name.starts_with(lease_name::REMEDIATION_PREFIX)
        .then_some(held)
}

/// The Node of a Lease without a readable record: from the holder's name, or for a remediation from
/// the Lease's name.
fn node_of_holder_name(lease: &str, holder: &HolderId) -> Option<NodeName> {
    let text = holder.as_str();
    let named = match text.strip_prefix("node/").filter(|_| !holder.is_hashed()) {
        Some(name) => name,
        None if text.starts_with("remedy") => lease.strip_prefix(lease_name::REMEDIATION_PREFIX)?,
        None => return None,
    };
    NodeName::new(named).ok()
}

fn unreadable_table(why: String) -> Error {
    Error::Unreadable(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table(rows: &Value) -> NodeTable {
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
        let rows = node_rows(&table).unwrap();
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
        assert!(node_rows(&bad).is_err());
        let other = serde_json::from_value(json!({"columnDefinitions": [], "rows": []})).unwrap();
        assert!(node_rows(&other).is_err());
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
            let held = observed_hold(&lease(name, holder, record), &group)?;
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
