//! The writes of a controller, as data.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::world::cache::ObjectKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WritableKind {
    Pod,
    Node,
    ReplicaSet,
    DaemonSet,
    Deployment,
    Budget,
    Attachment,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ControllerAction {
    pub kind: WritableKind,
    pub key: ObjectKey,
    pub verb: WriteVerb,
}

#[derive(Debug, Clone, PartialEq)]
pub enum WriteVerb {
    Create(Value),
    /// A merge patch of the object.
    Patch(Value),
    /// A merge patch of its status.
    PatchStatus(Value),
    /// A strategic merge patch of its status, for conditions that several writers share.
    PatchConditions(Value),
    Delete {
        /// Precondition: the object's UID.
        uid: String,
        /// Overrides the object's own grace period, in seconds.
        grace: Option<u32>,
    },
    /// Binds a pod to a node.
    Bind {
        /// Precondition: the pod's UID.
        uid: String,
        node: String,
    },
}

/// Patches the status unless it is already the wanted one; an absent number counts as 0.
pub(super) fn patch_status_if_changed<S: serde::Serialize>(
    kind: WritableKind,
    meta: &ObjectMeta,
    current: &S,
    wanted: &Value,
) -> Option<ControllerAction> {
    let current = serde_json::to_value(current).unwrap_or(Value::Null);
    let says = |(field, value): (&String, &Value)| {
        current[field] == *value || (current[field].is_null() && *value == json!(0))
    };
    let same = wanted.as_object().into_iter().flatten().all(says);
    (!same).then(|| {
        let verb = WriteVerb::PatchStatus(json!({ "status": wanted }));
        ControllerAction::new(kind, ObjectKey::of_metadata(meta), verb)
    })
}

#[cfg(test)]
impl WriteVerb {
    /// The patch of any of the patch verbs; panics on another verb.
    pub(super) fn patch_body(&self) -> &Value {
        match self {
            WriteVerb::Patch(patch)
            | WriteVerb::PatchStatus(patch)
            | WriteVerb::PatchConditions(patch) => patch,
            WriteVerb::Create(_) | WriteVerb::Delete { .. } | WriteVerb::Bind { .. } => {
                panic!("no patch: {self:?}")
            }
        }
    }
}

impl ControllerAction {
    pub fn new(kind: WritableKind, key: ObjectKey, verb: WriteVerb) -> Self {
        Self { kind, key, verb }
    }

    /// Deletes a pod with its own grace period.
    pub fn delete_pod(pod: &Pod) -> Self {
        Self::delete_pod_within(pod, None)
    }

    /// Deletes a pod at once, because no kubelet is left to stop its containers.
    pub fn force_delete_pod(pod: &Pod) -> Self {
        Self::delete_pod_within(pod, Some(0))
    }

    fn delete_pod_within(pod: &Pod, grace: Option<u32>) -> Self {
        let uid = pod.uid().unwrap_or_default();
        Self::new(
            WritableKind::Pod,
            ObjectKey::of_metadata(&pod.metadata),
            WriteVerb::Delete { uid, grace },
        )
    }

    /// Creates a pod that [`pod_from_template`] built.
    pub fn create_pod(pod: Value) -> Self {
        let text = |field: &str| {
            pod["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let key = ObjectKey::new(text("namespace"), text("generateName"));
        Self::new(WritableKind::Pod, key, WriteVerb::Create(pod))
    }
}

/// A pod as its owner creates it: the template, a generated name, the owner as controller.
pub fn pod_from_template(
    template: &impl serde::Serialize,
    namespace: &str,
    owner: &ControllerOwner<'_>,
) -> Value {
    let mut pod = serde_json::to_value(template).unwrap_or_else(|_| json!({}));
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["namespace"] = json!(namespace);
    pod["metadata"]["generateName"] = json!(format!("{}-", owner.name));
    pod["metadata"]["ownerReferences"] = json!([owner.owner_reference()]);
    pod
}

/// The owner of a pod that is created.
#[derive(Debug, Clone, Copy)]
pub struct ControllerOwner<'a> {
    /// For example `ReplicaSet`; all our owners are of `apps/v1`.
    pub kind: &'static str,
    pub name: &'a str,
    pub uid: &'a str,
}

impl ControllerOwner<'_> {
    /// The owner reference, with `controller: true`.
    pub fn owner_reference(&self) -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
}
