//! medik8s' Leases of nodes. Source: medik8s' `common/pkg/lease`.

use std::time::Duration;

use dogwatch_core::markers::{MARKER_VALUE, MaintenanceLease, maintenance_lease_name};
use dogwatch_core::name::NodeName;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, ListParams, Patch, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::{FIELD_MANAGER, patch_params};
use crate::error::{Error, with_timeout};
use crate::field_manager::post_params_for;
use crate::readable_dates::ReadableApi as _;

/// medik8s rejects a Lease that was renewed in the future. It is renewed this much in the past, so
/// that a clock slightly behind ours accepts it.
const CLOCK_SKEW: Duration = Duration::from_secs(10);

/// The Node of a Lease: its deletion deletes the Lease.
#[derive(Clone, Copy)]
pub(super) struct NodeLeaseOwner<'a> {
    pub(super) name: &'a NodeName,
    pub(super) uid: &'a str,
}

pub(super) async fn list_node_leases(leases: &Api<Lease>) -> Result<Vec<MaintenanceLease>, Error> {
    let list = with_timeout(leases.list_readable(&ListParams::default())).await?;
    Ok(list.items.iter().filter_map(observed_node_lease).collect())
}

/// Creates the Lease, or writes the existing one.
pub(super) async fn take_lease(
    leases: &Api<Lease>,
    node: NodeLeaseOwner<'_>,
    seen: Option<&MaintenanceLease>,
    ends: Timestamp,
    now: Timestamp,
) -> Result<(), Error> {
    let name = maintenance_lease_name(node.name);
    let body = lease_body(node, seen, ends, now);
    if seen.is_some() {
        with_timeout(leases.patch_readable(&name, &patch_params(), &Patch::Merge(body))).await?;
        return Ok(());
    }
    let lease: Lease = serde_json::from_value(body).expect("the JSON below is a Lease");
    let params = post_params_for(FIELD_MANAGER);
    with_timeout(leases.create(&params, &lease)).await?;
    Ok(())
}

/// medik8s gives a Lease back by deleting it.
pub(super) async fn delete_lease(
    leases: &Api<Lease>,
    lease: &MaintenanceLease,
) -> Result<(), Error> {
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: Some(lease.uid.clone()),
        resource_version: Some(lease.resource_version.clone()),
    });
    with_timeout(leases.delete(&lease.name, &params)).await?;
    Ok(())
}

fn lease_body(
    node: NodeLeaseOwner<'_>,
    seen: Option<&MaintenanceLease>,
    ends: Timestamp,
    now: Timestamp,
) -> Value {
    let apart = SignedDuration::try_from(CLOCK_SKEW).unwrap_or(SignedDuration::ZERO);
    let renewed = now.checked_sub(apart).unwrap_or(now);
    let seconds = ends.duration_since(renewed).as_secs().max(1);
    let ours = seen.is_some_and(|lease| lease.holder.as_deref() == Some(MARKER_VALUE));
    let mut spec = json!({
        "holderIdentity": MARKER_VALUE,
        "leaseDurationSeconds": i32::try_from(seconds).unwrap_or(i32::MAX),
        "renewTime": format!("{renewed:.6}"),
    });
    if !ours {
        spec["acquireTime"] = json!(format!("{renewed:.6}"));
        let before = seen.map(|lease| lease.transitions.saturating_add(1));
        spec["leaseTransitions"] = json!(before.unwrap_or(0));
    }
    json!({
        "metadata": {
            "name": maintenance_lease_name(node.name),
            "uid": seen.map(|lease| &lease.uid),
            "resourceVersion": seen.map(|lease| &lease.resource_version),
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Node", "name": node.name.as_str(), "uid": node.uid,
            }],
        },
        "spec": spec,
    })
}

fn observed_node_lease(lease: &Lease) -> Option<MaintenanceLease> {
    let spec = lease.spec.clone().unwrap_or_default();
    let ends = || {
        let length = SignedDuration::from_secs(spec.lease_duration_seconds?.into());
        spec.renew_time.as_ref()?.0.checked_add(length).ok()
    };
    Some(MaintenanceLease {
        name: lease.name_any(),
        uid: lease.uid()?,
        resource_version: lease.resource_version()?,
        ends: ends(),
        transitions: spec
            .lease_transitions
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(0),
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn of(holder: &str) -> MaintenanceLease {
        MaintenanceLease {
            name: "node-n1".into(),
            uid: "u".into(),
            resource_version: "7".into(),
            holder: Some(holder.into()),
            ends: None,
            transitions: 3,
        }
    }

    #[test]
    fn a_lease_is_written_as_medik8s_writes_its_own_and_ends_when_it_should() {
        let name = NodeName::new("n1").unwrap();
        let node = NodeLeaseOwner {
            name: &name,
            uid: "uid-n1",
        };
        let table = [
            (None, Some(0), Value::Null),
            (Some(of("node-maintenance")), Some(4), json!("7")),
            (Some(of(MARKER_VALUE)), None, json!("7")),
        ];
        for (before, transitions, version) in table {
            let body = lease_body(node, before.as_ref(), at(1000), at(100));
            assert_eq!(body["metadata"]["name"], "node-n1");
            assert_eq!(body["metadata"]["resourceVersion"], version);
            let owner = &body["metadata"]["ownerReferences"][0];
            assert_eq!(
                (&owner["kind"], &owner["uid"]),
                (&json!("Node"), &json!("uid-n1"))
            );
            let spec = &body["spec"];
            assert_eq!(spec["leaseTransitions"].as_i64(), transitions);
            assert_eq!(spec["acquireTime"].is_string(), transitions.is_some());
            let mut lease: Lease = serde_json::from_value(body).unwrap();
            lease.metadata.uid = Some("u".into());
            lease.metadata.resource_version = Some("8".into());
            let seen = observed_node_lease(&lease).unwrap();
            assert_eq!(
                (seen.holder.as_deref(), seen.ends),
                (Some(MARKER_VALUE), Some(at(1000)))
            );
        }
    }
}
