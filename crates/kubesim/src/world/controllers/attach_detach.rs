//! VolumeAttachments: created while a pod of the node uses the volume, deleted some time after.
//!
//! This controller is both the attach/detach controller and the CSI driver. A volume that is not
//! `ReadWriteMany` is attached to one node at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::ResourceExt as _;
use serde_json::json;

use super::action::{ControllerAction, WritableKind, WriteVerb};
use super::{ReconcileOutcome, SimulatedController, object_queries};
use crate::seed;
use crate::world::cache::{CacheChange, ControllerCache, ObjectKey};

/// The value of `spec.attacher`.
pub const ATTACHER: &str = "sim.dogwatch.dev";
/// Time until a volume is detached after its last pod is gone.
const DETACHES_AFTER: Duration = Duration::from_secs(2);

/// Keys are node names.
#[derive(Debug, Default)]
pub struct AttachDetachController {
    /// Attachments that no pod uses, and since when.
    unused: BTreeMap<String, Timestamp>,
    /// Nodes that wait until a volume is detached from another node.
    waiting: BTreeSet<String>,
}

impl SimulatedController for AttachDetachController {
    fn name(&self) -> &'static str {
        "attach-detach"
    }

    fn enqueue_keys(
        &mut self,
        cache: &ControllerCache,
        change: &CacheChange,
        _: Timestamp,
        keys: &mut BTreeSet<ObjectKey>,
    ) {
        match change {
            CacheChange::Pod(shift) => {
                let using = shift
                    .known_states()
                    .filter(|pod| claim_names(pod).next().is_some());
                keys.extend(
                    using
                        .filter_map(|pod| object_queries::node_of_pod(pod))
                        .map(ObjectKey::cluster_scoped),
                );
            }
            CacheChange::Attachment(shift) => {
                keys.extend(
                    shift
                        .known_states()
                        .map(|one| ObjectKey::cluster_scoped(&one.spec.node_name)),
                );
                if shift.new.is_none() {
                    keys.extend(
                        std::mem::take(&mut self.waiting)
                            .into_iter()
                            .map(ObjectKey::cluster_scoped),
                    );
                }
            }
            // The claim may have been bound to its volume only now.
            CacheChange::Claim(shift) => {
                let Some(claim) = shift.known_states().next() else {
                    return;
                };
                let namespace = claim.namespace().unwrap_or_default();
                let pods = cache.pods.in_namespace(&namespace);
                let using =
                    pods.filter(|pod| claim_names(pod).any(|name| name == claim.name_any()));
                keys.extend(
                    using
                        .filter_map(|pod| object_queries::node_of_pod(pod))
                        .map(ObjectKey::cluster_scoped),
                );
            }
            CacheChange::Node(_)
            | CacheChange::ReplicaSet(_)
            | CacheChange::DaemonSet(_)
            | CacheChange::Deployment(_)
            | CacheChange::Budget(_)
            | CacheChange::NodeLease(_)
            | CacheChange::Power { .. } => {}
        }
    }

    fn reconcile(
        &mut self,
        cache: &ControllerCache,
        key: &ObjectKey,
        now: Timestamp,
    ) -> ReconcileOutcome {
        let node = key.name.as_str();
        let used = volumes_in_use(cache, node);
        let mut verdict = ReconcileOutcome::default();
        for attachment in attachments_on_node(cache, node) {
            let volume = attachment
                .spec
                .source
                .persistent_volume_name
                .clone()
                .unwrap_or_default();
            if used.contains_key(&volume) {
                self.unused.remove(&attachment.name_any());
                verdict.actions.extend(mark_attached(attachment));
            } else {
                self.detach_volume(attachment, now, &mut verdict);
            }
        }
        for (volume, shared) in used {
            self.attach_volume(cache, node, &volume, shared, &mut verdict);
        }
        verdict
    }
}

impl AttachDetachController {
    fn attach_volume(
        &mut self,
        cache: &ControllerCache,
        node: &str,
        volume: &str,
        shared: bool,
        verdict: &mut ReconcileOutcome,
    ) {
        let name = attachment_name(volume, node);
        if cache
            .attachments
            .get(&ObjectKey::cluster_scoped(&name))
            .is_some()
        {
            return;
        }
        let elsewhere = cache
            .attachments
            .iter()
            .any(|(_, one)| one.spec.source.persistent_volume_name.as_deref() == Some(volume));
        if elsewhere && !shared {
            self.waiting.insert(node.to_owned());
            return;
        }
        let attachment = json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": { "name": name },
            "spec": { "attacher": ATTACHER, "nodeName": node, "source": { "persistentVolumeName": volume } },
        });
        verdict.actions.push(ControllerAction::new(
            WritableKind::Attachment,
            ObjectKey::cluster_scoped(name),
            WriteVerb::Create(attachment),
        ));
    }

    fn detach_volume(
        &mut self,
        attachment: &VolumeAttachment,
        now: Timestamp,
        verdict: &mut ReconcileOutcome,
    ) {
        let name = attachment.name_any();
        let since = *self.unused.entry(name.clone()).or_insert(now);
        let left =
            Duration::try_from((since + DETACHES_AFTER).duration_since(now)).unwrap_or_default();
        if left.is_zero() {
            self.unused.remove(&name);
            let uid = attachment.uid().unwrap_or_default();
            let verb = WriteVerb::Delete { uid, grace: None };
            verdict.actions.push(ControllerAction::new(
                WritableKind::Attachment,
                ObjectKey::cluster_scoped(name),
                verb,
            ));
        } else {
            verdict.requeue_after = Some(
                verdict
                    .requeue_after
                    .map_or(left, |earlier| earlier.min(left)),
            );
        }
    }
}

fn attachments_on_node<'a>(
    cache: &'a ControllerCache,
    node: &'a str,
) -> impl Iterator<Item = &'a VolumeAttachment> + 'a {
    let all = cache.attachments.iter().map(|(_, one)| &**one);
    all.filter(move |one| one.spec.node_name == node && one.spec.attacher == ATTACHER)
}

/// The volumes that pods on the node use, and whether other nodes may use them at the same time. A
/// pod uses its volumes until its object is deleted, but no longer than it runs.
fn volumes_in_use(cache: &ControllerCache, node: &str) -> BTreeMap<String, bool> {
    let pods = cache
        .pods_on_node(node)
        .filter(|pod| !object_queries::is_finished(pod));
    pods.flat_map(|pod| {
        let namespace = pod.namespace().unwrap_or_default();
        claim_names(pod).filter_map(move |claim| {
            bound_volume(cache.claims.get(&ObjectKey::new(&namespace, claim))?)
        })
    })
    .collect()
}

fn bound_volume(claim: &PersistentVolumeClaim) -> Option<(String, bool)> {
    let spec = claim.spec.as_ref()?;
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    Some((
        spec.volume_name.clone()?,
        modes.iter().any(|mode| mode == "ReadWriteMany"),
    ))
}

fn claim_names(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref());
    volumes
        .unwrap_or_default()
        .iter()
        .filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()))
}

fn mark_attached(attachment: &VolumeAttachment) -> Option<ControllerAction> {
    let done = attachment
        .status
        .as_ref()
        .is_some_and(|status| status.attached);
    (!done).then(|| {
        let verb = WriteVerb::PatchStatus(json!({ "status": { "attached": true } }));
        ControllerAction::new(
            WritableKind::Attachment,
            ObjectKey::of_metadata(&attachment.metadata),
            verb,
        )
    })
}

fn attachment_name(volume: &str, node: &str) -> String {
    format!(
        "csi-{}",
        seed::short_hash(format!("{volume}/{node}").as_bytes())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(node: &str) -> ControllerCache {
        let mut cache = ControllerCache::default();
        let claim = json!({ "metadata": { "name": "data", "namespace": "n", "uid": "c", "resourceVersion": "1" }, "spec": { "volumeName": "pv1", "accessModes": ["ReadWriteOnce"] } });
        cache.observe_object::<PersistentVolumeClaim>(serde_json::from_value(claim).unwrap());
        cache.observe_object(pod("a", node));
        cache
    }

    fn pod(name: &str, node: &str) -> Pod {
        serde_json::from_value(json!({ "metadata": { "name": name, "namespace": "n", "uid": name, "resourceVersion": "1" },
            "spec": { "nodeName": node, "containers": [], "volumes": [{ "name": "d", "persistentVolumeClaim": { "claimName": "data" } }] } }))
        .unwrap()
    }

    fn attach(cache: &mut ControllerCache, created: &ControllerAction) {
        let WriteVerb::Create(attachment) = &created.verb else {
            panic!("an attachment is made: {created:?}")
        };
        let mut attachment = attachment.clone();
        attachment["metadata"]["uid"] = json!("va");
        attachment["metadata"]["resourceVersion"] = json!("2");
        attachment["status"] = json!({ "attached": true });
        cache.observe_object::<VolumeAttachment>(serde_json::from_value(attachment).unwrap());
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_volume_is_attached_while_used_and_detached_some_time_after() {
        let mut cache = cache("n1");
        let mut controller = AttachDetachController::default();
        let n1 = ObjectKey::cluster_scoped("n1");
        let actions = controller.reconcile(&cache, &n1, at(0)).actions;
        attach(&mut cache, &actions[0]);
        assert_eq!(controller.reconcile(&cache, &n1, at(1)).actions, Vec::new());
        cache.observe_deleted(&pod("a", "n1"));
        let verdict = controller.reconcile(&cache, &n1, at(5));
        assert_eq!(
            (verdict.actions.len(), verdict.requeue_after),
            (0, Some(DETACHES_AFTER))
        );
        let actions = controller.reconcile(&cache, &n1, at(7)).actions;
        assert!(matches!(
            actions[..],
            [ControllerAction {
                verb: WriteVerb::Delete { .. },
                ..
            }]
        ));
    }

    #[test]
    fn a_volume_for_one_goes_to_the_next_node_only_after_it_left_the_last() {
        let mut cache = cache("n1");
        let mut controller = AttachDetachController::default();
        let actions = controller
            .reconcile(&cache, &ObjectKey::cluster_scoped("n1"), at(0))
            .actions;
        attach(&mut cache, &actions[0]);
        cache.observe_object(pod("b", "n2"));
        let n2 = ObjectKey::cluster_scoped("n2");
        assert_eq!(controller.reconcile(&cache, &n2, at(1)).actions, Vec::new());
        let attachment = cache
            .attachments
            .iter()
            .next()
            .map(|(_, one)| (**one).clone())
            .unwrap();
        let change = cache.observe_deleted(&attachment).unwrap();
        let mut keys = BTreeSet::new();
        controller.enqueue_keys(&cache, &change, at(2), &mut keys);
        assert!(keys.contains(&n2));
        assert_eq!(controller.reconcile(&cache, &n2, at(2)).actions.len(), 1);
    }
}
