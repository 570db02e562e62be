//! Converts between Lease objects and the lock's view of them. No I/O.

use std::collections::BTreeMap;

use dogwatch_api::{annotation, label, lease as lease_name};
use dogwatch_core::lock::{FIELD_MANAGER_LIMIT, HolderId, LockRecord, ObservedLease};
use dogwatch_core::name::GroupName;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use crate::Error;

/// A free Lease for this slot, to be created.
pub(super) fn free_lease(group: &GroupName, slot: u32) -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(lease_name::slot_name(group.as_str(), slot)),
            labels: Some(BTreeMap::from([(
                label::GROUP.to_owned(),
                group.to_string(),
            )])),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec::default()),
    }
}

/// `None` if the Lease is no slot of this group. The Lease does not show when it was freed:
/// [`super::GroupSlots`] remembers it.
pub(crate) fn observed_lease(lease: &Lease, group: &GroupName) -> Option<ObservedLease> {
    let name = lease.name_any();
    let holder = lease_holder(lease);
    Some(ObservedLease {
        slot: lease_name::slot_number_of(&name, group.as_str())?,
        name,
        uid: lease.uid()?,
        resource_version: lease.resource_version()?,
        record: holder.as_ref().and_then(|_| lease_record(lease)),
        leftover: holder.is_none() && has_leftovers(lease),
        holder,
        next_waiters: next_in_line(lease),
        yield_count: annotation_text(lease, annotation::YIELD_COUNT)
            .and_then(|count| count.parse().ok())
            .unwrap_or(0),
        freed_at: None,
        room_since: None,
    })
}

/// The Lease in the answer to a write of `before`.
pub(super) fn lease_after_write(
    before: &ObservedLease,
    answer: &Lease,
) -> Result<ObservedLease, Error> {
    let group = before
        .name
        .strip_prefix(lease_name::PREFIX)
        .and_then(|rest| {
            let group = rest
                .strip_suffix(&before.slot.to_string())?
                .strip_suffix('-')?;
            GroupName::new(group).ok()
        });
    group
        .and_then(|group| observed_lease(answer, &group))
        .ok_or_else(|| {
            let text = format!("{} was answered without a UID or version", before.name);
            Error::Unreadable(text)
        })
}

/// An identity that we could not have written (too long) is still a holder.
pub(super) fn lease_holder(lease: &Lease) -> Option<HolderId> {
    let text = lease
        .spec
        .as_ref()?
        .holder_identity
        .as_deref()
        .filter(|text| !text.is_empty())?;
    let mut end = text.len().min(FIELD_MANAGER_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    HolderId::new(&text[..end]).ok()
}

/// `None` if there is no readable record.
pub(super) fn lease_record(lease: &Lease) -> Option<LockRecord> {
    serde_json::from_str(annotation_text(lease, annotation::HOLDER)?).ok()
}

/// The version of a Lease that a write is made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeaseIncarnation<'a> {
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    pub(super) resource_version: &'a str,
}

impl<'a> From<&'a ObservedLease> for LeaseIncarnation<'a> {
    fn from(lease: &'a ObservedLease) -> Self {
        Self {
            name: &lease.name,
            uid: &lease.uid,
            resource_version: &lease.resource_version,
        }
    }
}

/// The body of a bid, of a takeover by a new run, and of the removal of a run.
pub(super) fn apply_body(lease: &ObservedLease, holder: &HolderId, record: &LockRecord) -> Value {
    let text = serde_json::to_string(record).expect("a record has only names, numbers and times");
    held_body(lease.into(), holder.as_str(), &text, record.since)
}

/// Server-side apply of all fields that a holder owns. With the resourceVersion alone, a late
/// duplicate would create a deleted Lease again and hold it; the UID prevents that too (measured).
pub(super) fn held_body(
    lease: LeaseIncarnation<'_>,
    holder: &str,
    record: &str,
    since: Timestamp,
) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": lease.name,
            "uid": lease.uid,
            "resourceVersion": lease.resource_version,
            "annotations": { annotation::HOLDER: record },
        },
        "spec": {
            "holderIdentity": holder,
            "acquireTime": format_micro_time(since),
        },
    })
}

/// The body of the merge patch that frees a Lease. Holder and record go together: a field that is
/// left behind would conflict with every later bid.
pub(super) fn free_body(lease: LeaseIncarnation<'_>, next: &[HolderId], given_back: u32) -> Value {
    let names: Vec<&str> = next.iter().map(HolderId::as_str).collect();
    json!({
        "metadata": {
            "uid": lease.uid,
            "resourceVersion": lease.resource_version,
            "annotations": {
                annotation::HOLDER: null,
                annotation::NEXT_WAITERS: (!names.is_empty()).then(|| names.join(",")),
                annotation::YIELD_COUNT: (given_back > 0).then(|| given_back.to_string()),
            },
        },
        "spec": { "holderIdentity": null, "acquireTime": null },
    })
}

pub(super) fn annotation_text<'a>(lease: &'a Lease, key: &str) -> Option<&'a str> {
    lease.annotations().get(key).map(String::as_str)
}

pub(super) fn has_leftovers(lease: &Lease) -> bool {
    let spec = lease.spec.as_ref();
    annotation_text(lease, annotation::HOLDER).is_some()
        || spec.is_some_and(|spec| spec.holder_identity.is_some() || spec.acquire_time.is_some())
}

fn next_in_line(lease: &Lease) -> Vec<HolderId> {
    let names = annotation_text(lease, annotation::NEXT_WAITERS)
        .unwrap_or_default()
        .split(',');
    names
        .filter_map(|name| HolderId::new(name.trim()).ok())
        .collect()
}

/// In the API server's `MicroTime` format, which always has six digits.
fn format_micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(json: Value) -> Lease {
        serde_json::from_value(json).unwrap()
    }

    fn group() -> GroupName {
        GroupName::default_group()
    }

    fn held() -> Lease {
        lease(json!({
            "metadata": {
                "name": "dogwatch-default-3", "uid": "u", "resourceVersion": "7",
                "annotations": {
                    annotation::HOLDER: r#"{"node":"n1","nodeUid":"x","bootId":null,"group":"default","max":2,"since":"2026-11-21T04:00:00Z","runs":["coordinator/a"]}"#,
                    annotation::NEXT_WAITERS: "node/n2, node/n3",
                    annotation::YIELD_COUNT: "2",
                },
            },
            "spec": { "holderIdentity": "node/n1", "acquireTime": "2026-11-21T04:00:00.000000Z" },
        }))
    }

    #[test]
    fn a_held_lease_shows_holder_record_and_call() {
        let seen = observed_lease(&held(), &group()).unwrap();
        assert_eq!(seen.slot, 3);
        assert_eq!(seen.holder.as_ref().unwrap().as_str(), "node/n1");
        assert_eq!(seen.record.as_ref().unwrap().max, 2);
        assert_eq!(
            seen.next_waiters
                .iter()
                .map(HolderId::as_str)
                .collect::<Vec<_>>(),
            ["node/n2", "node/n3"]
        );
        assert_eq!((seen.yield_count, seen.leftover), (2, false));
    }

    #[test]
    fn a_new_lease_is_free_and_carries_its_group() {
        let mut made = free_lease(&group(), 0);
        assert_eq!(made.labels()[label::GROUP], "default");
        made.metadata.uid = Some("u".into());
        made.metadata.resource_version = Some("1".into());
        let seen = observed_lease(&made, &group()).unwrap();
        assert_eq!((seen.holder, seen.leftover), (None, false));
    }

    #[test]
    fn what_a_half_release_left_behind_is_noticed() {
        let mut half = held();
        half.spec.as_mut().unwrap().holder_identity = None;
        assert!(observed_lease(&half, &group()).unwrap().leftover);
        half.metadata.annotations = None;
        assert!(
            observed_lease(&half, &group()).unwrap().leftover,
            "the time is owned by the old holder too"
        );
        half.spec = Some(LeaseSpec {
            holder_identity: Some(String::new()),
            ..LeaseSpec::default()
        });
        assert!(
            observed_lease(&half, &group()).unwrap().leftover,
            "an empty holder is a field as well"
        );
    }

    #[test]
    fn a_holder_that_we_could_not_be_still_holds() {
        let mut foreign = held();
        foreign.spec.as_mut().unwrap().holder_identity = Some("é".repeat(100));
        assert!(observed_lease(&foreign, &group()).unwrap().holder.is_some());
        foreign.metadata.annotations = Some([(annotation::HOLDER.into(), "{".into())].into());
        assert_eq!(observed_lease(&foreign, &group()).unwrap().record, None);
    }

    #[test]
    fn another_groups_lease_is_none_of_ours() {
        assert_eq!(
            observed_lease(&held(), &GroupName::control_plane_group()),
            None
        );
    }

    #[test]
    fn a_bid_names_the_incarnation_and_the_version_it_was_made_for() {
        let seen = observed_lease(&held(), &group()).unwrap();
        let body = apply_body(
            &seen,
            &HolderId::new("node/n9").unwrap(),
            seen.record.as_ref().unwrap(),
        );
        assert_eq!(body["metadata"]["uid"], "u");
        assert_eq!(body["metadata"]["resourceVersion"], "7");
        assert_eq!(body["spec"]["holderIdentity"], "node/n9");
        assert_eq!(body["spec"]["acquireTime"], "2026-11-21T04:00:00.000000Z");
    }

    #[test]
    fn a_release_frees_everything_at_once_and_calls_the_next() {
        let seen = observed_lease(&held(), &group()).unwrap();
        let body = free_body((&seen).into(), &[HolderId::new("node/n2").unwrap()], 0);
        assert_eq!(
            body,
            json!({
                "metadata": { "uid": "u", "resourceVersion": "7", "annotations": {
                    "dogwatch.dev/holder": null, "dogwatch.dev/next": "node/n2",
                    "dogwatch.dev/given-back": null } },
                "spec": { "holderIdentity": null, "acquireTime": null },
            })
        );
        let back = free_body((&seen).into(), &[], 3);
        assert_eq!(
            back["metadata"]["annotations"]["dogwatch.dev/given-back"],
            "3"
        );
        assert_eq!(
            back["metadata"]["annotations"]["dogwatch.dev/next"],
            Value::Null
        );
    }
}
