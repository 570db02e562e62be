//! What a controller wants done, as data.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::world::cache::Key;

/// The kinds that controllers write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A pod.
    Pod,
    /// A Node.
    Node,
    /// A ReplicaSet.
    ReplicaSet,
    /// A DaemonSet.
    DaemonSet,
    /// A Deployment.
    Deployment,
    /// A PodDisruptionBudget.
    Budget,
    /// A VolumeAttachment.
    Attachment,
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Of what kind.
    pub kind: Kind,
    /// Which object.
    pub key: Key,
    /// What.
    pub verb: Verb,
}

/// What is done to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Verb {
    /// It is made.
    Create(Value),
    /// A merge patch of it.
    Patch(Value),
    /// A merge patch of its status.
    PatchStatus(Value),
    /// A strategic merge patch of its status, where its conditions belong to many.
    PatchConditions(Value),
    /// It is deleted.
    Delete {
        /// Only if it is this incarnation.
        uid: String,
        /// With this grace instead of its own.
        grace: Option<u32>,
    },
    /// It, a pod, is bound to this node.
    Bind {
        /// Only if it is this incarnation.
        uid: String,
        /// The node.
        node: String,
    },
}

/// Writes this status, unless the object says so already; a zero that is not written is one.
pub(super) fn status<S: serde::Serialize>(
    kind: Kind,
    meta: &ObjectMeta,
    current: &S,
    wanted: &Value,
) -> Option<Action> {
    let current = serde_json::to_value(current).unwrap_or(Value::Null);
    let says = |(field, value): (&String, &Value)| {
        current[field] == *value || (current[field].is_null() && *value == json!(0))
    };
    let same = wanted.as_object().into_iter().flatten().all(says);
    (!same).then(|| {
        let verb = Verb::PatchStatus(json!({ "status": wanted }));
        Action::new(kind, Key::of(meta), verb)
    })
}

#[cfg(test)]
impl Verb {
    /// The patch of whatever kind; a test that finds none fails.
    pub(super) fn patch(&self) -> &Value {
        match self {
            Verb::Patch(patch) | Verb::PatchStatus(patch) | Verb::PatchConditions(patch) => patch,
            Verb::Create(_) | Verb::Delete { .. } | Verb::Bind { .. } => {
                panic!("no patch: {self:?}")
            }
        }
    }
}

impl Action {
    /// This verb on this object.
    pub fn new(kind: Kind, key: Key, verb: Verb) -> Self {
        Self { kind, key, verb }
    }

    /// The deletion of a pod, with its own grace.
    pub fn delete_pod(pod: &Pod) -> Self {
        Self::delete_pod_within(pod, None)
    }

    /// The deletion of a pod at once: nobody is left to end its containers.
    pub fn force_delete_pod(pod: &Pod) -> Self {
        Self::delete_pod_within(pod, Some(0))
    }

    fn delete_pod_within(pod: &Pod, grace: Option<u32>) -> Self {
        let uid = pod.uid().unwrap_or_default();
        Self::new(
            Kind::Pod,
            Key::of(&pod.metadata),
            Verb::Delete { uid, grace },
        )
    }

    /// A pod made from a template, for this owner.
    pub fn create_pod(pod: Value) -> Self {
        let text = |field: &str| {
            pod["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let key = Key::new(text("namespace"), text("generateName"));
        Self::new(Kind::Pod, key, Verb::Create(pod))
    }
}

/// A pod as its owner makes it: the template, a generated name, the owner as controller.
pub fn pod_from_template(
    template: &impl serde::Serialize,
    namespace: &str,
    owner: &Owner<'_>,
) -> Value {
    let mut pod = serde_json::to_value(template).unwrap_or_else(|_| json!({}));
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["namespace"] = json!(namespace);
    pod["metadata"]["generateName"] = json!(format!("{}-", owner.name));
    pod["metadata"]["ownerReferences"] = json!([owner.reference()]);
    pod
}

/// A controller to be.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// e.g. `ReplicaSet`; all our owners are of `apps/v1`.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
}

impl Owner<'_> {
    /// The owner reference that says so.
    pub fn reference(&self) -> Value {
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
