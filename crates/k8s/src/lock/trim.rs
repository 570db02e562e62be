//! Trims the Leases of Dogwatch's namespace on arrival. Whoever may write Leases there can fill
//! each of them up to the size limit of an object, and every budget count reads all of them. So
//! they are listed page by page, and what no lock needs is dropped. Source: specification §6
//! ("Leases").

use std::collections::BTreeMap;

use dogwatch_api::{annotation, label};
use dogwatch_core::lock::{FIELD_MANAGER_LIMIT, api_lock};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use kube::api::{ListParams, ObjectList, ObjectMeta, WatchEvent, WatchParams};

use futures::StreamExt as _;

use crate::error::{Error, with_timeout};
use crate::readable_dates::ReadableApi as _;
use crate::watch::event_lines::watch_full_objects;
use crate::watch::{ChangeStream, WatchSource, read_store_version};

/// Page size. The largest Lease that an API server stores has some 1.5 MiB; one with annotations
/// only has 256 KiB.
const LEASES_PER_PAGE: u32 = 50;

/// The annotations that are kept, each with its maximum size in bytes: a record with about a
/// hundred runs, five names, a number, and the waiters at a lock API in about fifty groups.
const KEPT_ANNOTATIONS: [(&str, usize); 5] = [
    (annotation::HOLDER, 16 * 1024),
    (annotation::NEXT_WAITERS, 1024),
    (annotation::YIELD_COUNT, 16),
    (annotation::WAITING, 64 * 1024),
    (annotation::WAITING_HOSTS, api_lock::MAX_WAITING_HOSTS_BYTES),
];
const KEPT_LABELS: [&str; 2] = [label::GROUP, label::REBOOT];

#[derive(Debug, Clone)]
pub(crate) struct TrimmedLeases(pub(crate) Api<Lease>);

impl WatchSource for TrimmedLeases {
    type Object = Lease;

    async fn list_objects(&self, params: &ListParams) -> kube::Result<ObjectList<Lease>> {
        let mut params = params.clone().limit(LEASES_PER_PAGE);
        let mut all: Vec<Lease> = Vec::new();
        loop {
            let mut page = self.0.list_readable(&params).await?;
            all.extend(page.items.drain(..).map(trim_lease));
            let next = page.metadata.continue_.clone();
            match next.filter(|next| !next.is_empty()) {
                Some(next) => params.continue_token = Some(next),
                None => return Ok(ObjectList { items: all, ..page }),
            }
        }
    }

    async fn read_version(&self, params: &ListParams) -> kube::Result<String> {
        read_store_version(&self.0, params).await
    }

    async fn watch_objects(
        &self,
        params: &WatchParams,
        version: &str,
    ) -> kube::Result<ChangeStream<Lease>> {
        let changes = watch_full_objects(&self.0, params, version).await?;
        Ok(changes.map(|change| change.map(trim_change)).boxed())
    }
}

/// All Leases that `api` lists, read fresh and trimmed.
pub(crate) async fn list_trimmed_leases(
    api: &Api<Lease>,
    params: ListParams,
) -> Result<Vec<Lease>, Error> {
    let leases = TrimmedLeases(api.clone());
    Ok(with_timeout(leases.list_objects(&params)).await?.items)
}

/// An annotation over its maximum size is kept without its text: an unreadable record still counts,
/// and left-over annotations of a free Lease are cleared.
fn trim_lease(lease: Lease) -> Lease {
    let metadata = lease.metadata;
    Lease {
        metadata: ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            labels: metadata.labels.map(known_labels),
            annotations: metadata.annotations.map(known_annotations),
            ..ObjectMeta::default()
        },
        spec: lease.spec.map(|spec| LeaseSpec {
            holder_identity: spec.holder_identity.map(truncate_holder),
            preferred_holder: None,
            strategy: None,
            ..spec
        }),
    }
}

fn known_labels(mut labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels.retain(|key, _| KEPT_LABELS.contains(&key.as_str()));
    labels
}

fn known_annotations(mut all: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let limit = |key: &str| KEPT_ANNOTATIONS.iter().find(|(known, _)| *known == key);
    all.retain(|key, _| limit(key).is_some());
    for (key, text) in &mut all {
        if limit(key).is_some_and(|(_, limit)| text.len() > *limit) {
            *text = String::new();
        }
    }
    all
}

/// Our own holder names are never longer, but a longer name still holds the Lease.
fn truncate_holder(mut holder: String) -> String {
    let mut end = holder.len().min(FIELD_MANAGER_LIMIT);
    while !holder.is_char_boundary(end) {
        end -= 1;
    }
    holder.truncate(end);
    holder
}

fn trim_change(change: WatchEvent<Lease>) -> WatchEvent<Lease> {
    match change {
        WatchEvent::Added(lease) => WatchEvent::Added(trim_lease(lease)),
        WatchEvent::Modified(lease) => WatchEvent::Modified(trim_lease(lease)),
        WatchEvent::Deleted(lease) => WatchEvent::Deleted(trim_lease(lease)),
        WatchEvent::Bookmark(bookmark) => WatchEvent::Bookmark(bookmark),
        WatchEvent::Error(status) => WatchEvent::Error(status),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{count, lease as seen_of};
    use super::*;
    use dogwatch_core::name::GroupName;
    use serde_json::json;

    fn fat(name: &str, holder: Option<&str>, record: &str) -> Lease {
        serde_json::from_value(json!({
            "metadata": { "name": name, "uid": "u", "resourceVersion": "1", "generation": 4,
                "labels": { "dogwatch.dev/group": "default", "junk": "x" },
                "managedFields": [{ "manager": "x".repeat(1000) }],
                "finalizers": ["a.b/c"],
                "annotations": { "junk": "x".repeat(200_000), "dogwatch.dev/holder": record,
                    "dogwatch.dev/next": "node/n2", "dogwatch.dev/given-back": "2" } },
            "spec": { "holderIdentity": holder, "preferredHolder": "x".repeat(1000) },
        }))
        .unwrap()
    }

    #[test]
    fn what_a_lease_carries_beside_a_lock_is_never_kept() {
        let kept = trim_lease(fat("dogwatch-default-0", Some("node/n1"), "{}"));
        let expected = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "dogwatch-default-0", "uid": "u", "resourceVersion": "1",
                "labels": { "dogwatch.dev/group": "default" },
                "annotations": { "dogwatch.dev/holder": "{}", "dogwatch.dev/next": "node/n2",
                    "dogwatch.dev/given-back": "2" } },
            "spec": { "holderIdentity": "node/n1" },
        });
        assert_eq!(serde_json::to_value(kept).unwrap(), expected);
    }

    #[test]
    fn a_record_larger_than_one_can_be_counts_as_one_that_cannot_be_read() {
        let group = GroupName::default_group();
        let record = json!({ "node": "n9", "subject": "x".repeat(20_000), "controlPlane": false,
            "group": "other", "since": "1970-01-01T00:00:00Z" });
        let held = |lease: Lease| count::observed_hold(&trim_lease(lease), &group).unwrap();
        let remedy = held(fat(
            "dogwatch-remedy-n9",
            Some("remedy"),
            &record.to_string(),
        ));
        assert!(remedy.is_remediated_in_group(&group) && remedy.is_control_plane_remediation());
        let slot = held(fat(
            "dogwatch-default-0",
            Some("node/n1"),
            &"x".repeat(20_000),
        ));
        assert_eq!((slot.slot, slot.max), (Some(0), None), "the safest maximum");
    }

    #[test]
    fn a_record_too_large_that_was_left_on_a_free_lease_is_cleared_before_a_bid() {
        let group = GroupName::default_group();
        let free = trim_lease(fat("dogwatch-default-0", None, &"x".repeat(20_000)));
        assert!(seen_of::observed_lease(&free, &group).unwrap().leftover);
    }

    #[test]
    fn a_holder_whose_name_is_no_managers_holds() {
        let kept = trim_lease(fat("dogwatch-default-0", Some(&"é".repeat(9_000)), "{}"));
        let holder = kept.spec.unwrap().holder_identity.unwrap();
        assert_eq!(holder, "é".repeat(64));
    }
}
