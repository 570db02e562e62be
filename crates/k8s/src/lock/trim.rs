//! What is kept of a Lease in Dogwatch's namespace. Whoever may write Leases there may put as much on one
//! as an object can hold, and everybody who counts reads all of them: they come page by page, and what is
//! no lock's is dropped as it comes. Source: specification §6 ("Leases").

use std::collections::BTreeMap;

use dogwatch_api::{annotation, label};
use dogwatch_core::lock::{FIELD_MANAGER_LIMIT, api_lock};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use kube::api::{ListParams, ObjectList, ObjectMeta, WatchEvent, WatchParams};

use futures::StreamExt as _;

use crate::error::{Error, ask};
use crate::watch::{Changes, Watched};

/// How many come at once. The largest that an API server stores has some 1.5 MiB, one with nothing but
/// annotations 256 KiB.
const PAGE: u32 = 50;

/// The annotations that are looked at, and the most bytes that each can have: a record with some hundred
/// runs, five names, a number, and who waits at a lock API in some fifty groups.
const ANNOTATIONS: [(&str, usize); 5] = [
    (annotation::HOLDER, 16 * 1024),
    (annotation::NEXT, 1024),
    (annotation::GIVEN_BACK, 16),
    (annotation::WAITING, 64 * 1024),
    (annotation::WAITING_HOSTS, api_lock::LONGEST_TOLD),
];
const LABELS: [&str; 2] = [label::GROUP, label::REBOOT];

/// All Leases of a namespace, trimmed.
#[derive(Debug, Clone)]
pub(crate) struct Leases(pub(crate) Api<Lease>);

impl Watched for Leases {
    type Object = Lease;

    async fn list(&self, params: &ListParams) -> kube::Result<ObjectList<Lease>> {
        let mut params = params.clone().limit(PAGE);
        let mut all: Vec<Lease> = Vec::new();
        loop {
            let mut page = self.0.list(&params).await?;
            all.extend(page.items.drain(..).map(trimmed));
            let next = page.metadata.continue_.clone();
            match next.filter(|next| !next.is_empty()) {
                Some(next) => params.continue_token = Some(next),
                None => return Ok(ObjectList { items: all, ..page }),
            }
        }
    }

    async fn watch(&self, params: &WatchParams, version: &str) -> kube::Result<Changes<Lease>> {
        let changes = self.0.watch(params, version).await?;
        Ok(changes.map(|change| change.map(trimmed_change)).boxed())
    }
}

/// All that `api` shows, read afresh and trimmed.
pub(crate) async fn list(api: &Api<Lease>, params: ListParams) -> Result<Vec<Lease>, Error> {
    let leases = Leases(api.clone());
    Ok(ask(leases.list(&params)).await?.items)
}

/// What is kept. An annotation that is larger than it can be stays, without its text: a record that cannot
/// be read counts, and what is left on a free Lease is cleared.
fn trimmed(lease: Lease) -> Lease {
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
            holder_identity: spec.holder_identity.map(shortened),
            preferred_holder: None,
            strategy: None,
            ..spec
        }),
    }
}

fn known_labels(mut labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels.retain(|key, _| LABELS.contains(&key.as_str()));
    labels
}

fn known_annotations(mut all: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let limit = |key: &str| ANNOTATIONS.iter().find(|(known, _)| *known == key);
    all.retain(|key, _| limit(key).is_some());
    for (key, text) in &mut all {
        if limit(key).is_some_and(|(_, limit)| text.len() > *limit) {
            *text = String::new();
        }
    }
    all
}

/// No manager of ours could have a longer name; it holds all the same.
fn shortened(mut holder: String) -> String {
    let mut end = holder.len().min(FIELD_MANAGER_LIMIT);
    while !holder.is_char_boundary(end) {
        end -= 1;
    }
    holder.truncate(end);
    holder
}

fn trimmed_change(change: WatchEvent<Lease>) -> WatchEvent<Lease> {
    match change {
        WatchEvent::Added(lease) => WatchEvent::Added(trimmed(lease)),
        WatchEvent::Modified(lease) => WatchEvent::Modified(trimmed(lease)),
        WatchEvent::Deleted(lease) => WatchEvent::Deleted(trimmed(lease)),
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
        let kept = trimmed(fat("dogwatch-default-0", Some("node/n1"), "{}"));
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
        let held = |lease: Lease| count::held(&trimmed(lease), &group).unwrap();
        let remedy = held(fat(
            "dogwatch-remedy-n9",
            Some("remedy"),
            &record.to_string(),
        ));
        assert!(remedy.is_remediated_in(&group) && remedy.fences_control_plane());
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
        let free = trimmed(fat("dogwatch-default-0", None, &"x".repeat(20_000)));
        assert!(seen_of::seen(&free, &group).unwrap().leftover);
    }

    #[test]
    fn a_holder_whose_name_is_no_managers_holds() {
        let kept = trimmed(fat("dogwatch-default-0", Some(&"é".repeat(9_000)), "{}"));
        let holder = kept.spec.unwrap().holder_identity.unwrap();
        assert_eq!(holder, "é".repeat(64));
    }
}
