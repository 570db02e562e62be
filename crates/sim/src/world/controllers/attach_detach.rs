//! VolumeAttachments: there while a pod of the node uses the volume, gone some time after.
//!
//! It stands for the attach/detach controller and the CSI driver in one. A volume that is not
//! `ReadWriteMany` is attached to one node at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::ResourceExt as _;
use serde_json::json;

use super::action::{Action, Kind, Verb};
use super::{Controller, Verdict, words};
use crate::seed;
use crate::world::cache::{Cache, Change, Key};

/// Who attaches, in `spec.attacher`.
pub const ATTACHER: &str = "sim.dogwatch.dev";
/// How long a volume takes to detach once its last pod is gone.
const DETACHES_AFTER: Duration = Duration::from_secs(2);

/// The controller; a key is a node.
#[derive(Debug, Default)]
pub struct AttachDetach {
    /// Attachments without a pod, since when.
    unused: BTreeMap<String, Timestamp>,
    /// Nodes that wait for a volume to leave another.
    waiting: BTreeSet<String>,
}

impl Controller for AttachDetach {
    fn name(&self) -> &'static str {
        "attach-detach"
    }

    fn touched(&mut self, cache: &Cache, change: &Change, _: Timestamp, keys: &mut BTreeSet<Key>) {
        match change {
            Change::Pod(shift) => {
                let using = shift.states().filter(|pod| claims(pod).next().is_some());
                keys.extend(
                    using
                        .filter_map(|pod| words::node_of(pod))
                        .map(Key::cluster),
                );
            }
            Change::Attachment(shift) => {
                keys.extend(shift.states().map(|one| Key::cluster(&one.spec.node_name)));
                if shift.new.is_none() {
                    keys.extend(
                        std::mem::take(&mut self.waiting)
                            .into_iter()
                            .map(Key::cluster),
                    );
                }
            }
            // It may have been bound to its volume only now.
            Change::Claim(shift) => {
                let Some(claim) = shift.states().next() else {
                    return;
                };
                let namespace = claim.namespace().unwrap_or_default();
                let pods = cache.pods.in_namespace(&namespace);
                let using = pods.filter(|pod| claims(pod).any(|name| name == claim.name_any()));
                keys.extend(
                    using
                        .filter_map(|pod| words::node_of(pod))
                        .map(Key::cluster),
                );
            }
            Change::Node(_)
            | Change::ReplicaSet(_)
            | Change::DaemonSet(_)
            | Change::Deployment(_)
            | Change::Budget(_)
            | Change::NodeLease(_)
            | Change::Power { .. } => {}
        }
    }

    fn reconcile(&mut self, cache: &Cache, key: &Key, now: Timestamp) -> Verdict {
        let node = key.name.as_str();
        let used = used(cache, node);
        let mut verdict = Verdict::default();
        for attachment in attachments(cache, node) {
            let volume = attachment
                .spec
                .source
                .persistent_volume_name
                .clone()
                .unwrap_or_default();
            if used.contains_key(&volume) {
                self.unused.remove(&attachment.name_any());
                verdict.actions.extend(attached(attachment));
            } else {
                self.detach(attachment, now, &mut verdict);
            }
        }
        for (volume, shared) in used {
            self.attach(cache, node, &volume, shared, &mut verdict);
        }
        verdict
    }
}

impl AttachDetach {
    fn attach(
        &mut self,
        cache: &Cache,
        node: &str,
        volume: &str,
        shared: bool,
        verdict: &mut Verdict,
    ) {
        let name = attachment_name(volume, node);
        if cache.attachments.get(&Key::cluster(&name)).is_some() {
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
        verdict.actions.push(Action::new(
            Kind::Attachment,
            Key::cluster(name),
            Verb::Create(attachment),
        ));
    }

    fn detach(&mut self, attachment: &VolumeAttachment, now: Timestamp, verdict: &mut Verdict) {
        let name = attachment.name_any();
        let since = *self.unused.entry(name.clone()).or_insert(now);
        let left =
            Duration::try_from((since + DETACHES_AFTER).duration_since(now)).unwrap_or_default();
        if left.is_zero() {
            self.unused.remove(&name);
            let uid = attachment.uid().unwrap_or_default();
            let verb = Verb::Delete { uid, grace: None };
            verdict
                .actions
                .push(Action::new(Kind::Attachment, Key::cluster(name), verb));
        } else {
            verdict.again_in = Some(verdict.again_in.map_or(left, |earlier| earlier.min(left)));
        }
    }
}

fn attachments<'a>(
    cache: &'a Cache,
    node: &'a str,
) -> impl Iterator<Item = &'a VolumeAttachment> + 'a {
    let all = cache.attachments.iter().map(|(_, one)| &**one);
    all.filter(move |one| one.spec.node_name == node && one.spec.attacher == ATTACHER)
}

/// The volumes that pods on the node use, and whether others may use them at the same time. A pod
/// uses its volumes until its object is gone, but no longer than it runs.
fn used(cache: &Cache, node: &str) -> BTreeMap<String, bool> {
    let pods = cache.pods_on(node).filter(|pod| !words::is_finished(pod));
    pods.flat_map(|pod| {
        let namespace = pod.namespace().unwrap_or_default();
        claims(pod).filter_map(move |claim| volume(cache.claims.get(&Key::new(&namespace, claim))?))
    })
    .collect()
}

fn volume(claim: &PersistentVolumeClaim) -> Option<(String, bool)> {
    let spec = claim.spec.as_ref()?;
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    Some((
        spec.volume_name.clone()?,
        modes.iter().any(|mode| mode == "ReadWriteMany"),
    ))
}

fn claims(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref());
    volumes
        .unwrap_or_default()
        .iter()
        .filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()))
}

fn attached(attachment: &VolumeAttachment) -> Option<Action> {
    let done = attachment
        .status
        .as_ref()
        .is_some_and(|status| status.attached);
    (!done).then(|| {
        let verb = Verb::PatchStatus(json!({ "status": { "attached": true } }));
        Action::new(Kind::Attachment, Key::of(&attachment.metadata), verb)
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

    fn cache(node: &str) -> Cache {
        let mut cache = Cache::default();
        let claim = json!({ "metadata": { "name": "data", "namespace": "n", "uid": "c", "resourceVersion": "1" }, "spec": { "volumeName": "pv1", "accessModes": ["ReadWriteOnce"] } });
        cache.seen::<PersistentVolumeClaim>(serde_json::from_value(claim).unwrap());
        cache.seen(pod("a", node));
        cache
    }

    fn pod(name: &str, node: &str) -> Pod {
        serde_json::from_value(json!({ "metadata": { "name": name, "namespace": "n", "uid": name, "resourceVersion": "1" },
            "spec": { "nodeName": node, "containers": [], "volumes": [{ "name": "d", "persistentVolumeClaim": { "claimName": "data" } }] } }))
        .unwrap()
    }

    fn attach(cache: &mut Cache, created: &Action) {
        let Verb::Create(attachment) = &created.verb else {
            panic!("an attachment is made: {created:?}")
        };
        let mut attachment = attachment.clone();
        attachment["metadata"]["uid"] = json!("va");
        attachment["metadata"]["resourceVersion"] = json!("2");
        attachment["status"] = json!({ "attached": true });
        cache.seen::<VolumeAttachment>(serde_json::from_value(attachment).unwrap());
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_volume_is_attached_while_used_and_detached_some_time_after() {
        let mut cache = cache("n1");
        let mut controller = AttachDetach::default();
        let n1 = Key::cluster("n1");
        let actions = controller.reconcile(&cache, &n1, at(0)).actions;
        attach(&mut cache, &actions[0]);
        assert_eq!(controller.reconcile(&cache, &n1, at(1)).actions, Vec::new());
        cache.deleted(&pod("a", "n1"));
        let verdict = controller.reconcile(&cache, &n1, at(5));
        assert_eq!(
            (verdict.actions.len(), verdict.again_in),
            (0, Some(DETACHES_AFTER))
        );
        let actions = controller.reconcile(&cache, &n1, at(7)).actions;
        assert!(matches!(
            actions[..],
            [Action {
                verb: Verb::Delete { .. },
                ..
            }]
        ));
    }

    #[test]
    fn a_volume_for_one_goes_to_the_next_node_only_after_it_left_the_last() {
        let mut cache = cache("n1");
        let mut controller = AttachDetach::default();
        let actions = controller
            .reconcile(&cache, &Key::cluster("n1"), at(0))
            .actions;
        attach(&mut cache, &actions[0]);
        cache.seen(pod("b", "n2"));
        let n2 = Key::cluster("n2");
        assert_eq!(controller.reconcile(&cache, &n2, at(1)).actions, Vec::new());
        let attachment = cache
            .attachments
            .iter()
            .next()
            .map(|(_, one)| (**one).clone())
            .unwrap();
        let change = cache.deleted(&attachment).unwrap();
        let mut keys = BTreeSet::new();
        controller.touched(&cache, &change, at(2), &mut keys);
        assert!(keys.contains(&n2));
        assert_eq!(controller.reconcile(&cache, &n2, at(2)).actions.len(), 1);
    }
}
