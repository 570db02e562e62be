//! Writes of Nodes: that it is being fenced, the need taken away, what comes back on it, our taint lifted.

use dogwatch_api::annotation::{EXTERNAL_REMEDIATION, FENCING};
use dogwatch_core::reboot::NodeSeen;
use dogwatch_core::remedy::{Backup, Subject};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt as _;
use kube::api::Patch;
use serde_json::{Value, json};

use super::{Right, WriteError};
use crate::error::ask;
use crate::node::{OUT_OF_SERVICE, node_seen};
use crate::remedy::client::{
    Annotations, RemedyClient, annotating, params, precondition, send, stand,
};
use crate::remedy::restore;

/// The value of the taint out-of-service that Kubernetes' documentation gives; nothing reads it.
pub(in crate::remedy) const NODE_SHUTDOWN: &str = "nodeshutdown";

pub(super) const GET: Right = Right::new("get", "nodes");
pub(super) const PATCH: Right = Right::new("patch", "nodes");

/// Each answers with the Node as it stands then.
///
/// # Errors
/// [`WriteError`]: only after [`WriteError::Changed`] and [`WriteError::Forbidden`] is it certain that
/// nothing was written.
impl RemedyClient {
    /// Says on the Node that it is being fenced, for whom, and since when. What stands there already
    /// stays: whoever drains it has stopped.
    pub async fn mark_node(
        &self,
        node: &NodeSeen,
        subject: &Subject,
        since: Timestamp,
    ) -> Result<NodeSeen, WriteError> {
        // A Node that just failed is written to by its controllers: the version that a watch has shown
        // is often an older one, and the mark is right on any.
        let now = self.same_node(node).await?;
        if now.annotations().contains_key(FENCING) {
            return seen(&now, &about(node));
        }
        let mark = json!({ "by": subject.to_string(), "since": since });
        let wanted = vec![(FENCING.to_owned(), Some(mark.to_string()))];
        let version = now.resource_version().unwrap_or_default();
        self.annotate_node(node, &version, wanted).await
    }

    /// Takes that away, from the Node as it was seen.
    pub async fn unmark_node(&self, node: &NodeSeen) -> Result<NodeSeen, WriteError> {
        let wanted = vec![(FENCING.to_owned(), None)];
        self.annotate_node(node, &node.resource_version, wanted)
            .await
    }

    /// Takes the need away, from the Node as it was seen.
    pub async fn remove_node_need(&self, node: &NodeSeen) -> Result<NodeSeen, WriteError> {
        let wanted = vec![(EXTERNAL_REMEDIATION.to_owned(), None)];
        self.annotate_node(node, &node.resource_version, wanted)
            .await
    }

    /// Puts on the new Node what the deleted one had and it has not, in one patch; what stands there wins.
    pub async fn restore(&self, node: &NodeSeen, backup: &Backup) -> Result<NodeSeen, WriteError> {
        let about = about(node);
        let now = self.same_node(node).await?;
        let Some(mut body) = restore::patch(&now, backup) else {
            return seen(&now, &about);
        };
        let version = now.resource_version().unwrap_or_default();
        for (field, value) in [("uid", &node.uid), ("resourceVersion", &version)] {
            body["metadata"][field] = json!(value);
        }
        let answer = self.patch_node(node, body).await?;
        match restore::patch(&answer, backup) {
            None => seen(&answer, &about),
            Some(_) => Err(WriteError::Dropped(format!("what was kept for {about}"))),
        }
    }

    /// Lifts our taint out-of-service, from the Node as it was seen. One with another `timeAdded`, value
    /// or effect is somebody else's, and stays.
    pub async fn untaint(
        &self,
        node: &NodeSeen,
        tainted_at: Timestamp,
    ) -> Result<NodeSeen, WriteError> {
        let about = about(node);
        let now = self.same_node(node).await?;
        if now.resource_version().as_ref() != Some(&node.resource_version) {
            return Err(WriteError::Changed(about));
        }
        let standing = taints(&now);
        let kept = standing.iter().filter(|taint| !is_ours(taint, tainted_at));
        let kept: Vec<&Taint> = kept.collect();
        if kept.len() == standing.len() {
            return seen(&now, &about);
        }
        let taints = (!kept.is_empty()).then_some(kept);
        let metadata = precondition(&node.uid, &node.resource_version);
        let body = json!({ "metadata": metadata, "spec": { "taints": taints } });
        let answer = self.patch_node(node, body).await?;
        seen(&answer, &about)
    }

    async fn annotate_node(
        &self,
        node: &NodeSeen,
        version: &str,
        wanted: Annotations,
    ) -> Result<NodeSeen, WriteError> {
        let about = about(node);
        let body = annotating(&node.uid, version, &wanted);
        let answer = self.patch_node(node, body).await?;
        stand(&answer, &about, &wanted)?;
        seen(&answer, &about)
    }

    async fn patch_node(&self, node: &NodeSeen, body: Value) -> Result<Node, WriteError> {
        let (nodes, params, body) = (self.nodes(), params(), Patch::Merge(body));
        let call = nodes.patch(node.name.as_str(), &params, &body);
        send(PATCH, &about(node), call).await
    }

    /// This very Node, as it is now.
    async fn same_node(&self, node: &NodeSeen) -> Result<Node, WriteError> {
        let about = about(node);
        let now = ask(self.nodes().get(node.name.as_str())).await;
        let now = now.map_err(|error| GET.refused(&about, error))?;
        if now.uid().as_ref() == Some(&node.uid) {
            Ok(now)
        } else {
            Err(WriteError::Changed(about))
        }
    }
}

pub(super) fn about(node: &NodeSeen) -> String {
    format!("node {}", node.name)
}

/// What is kept of an answer.
pub(super) fn seen(node: &Node, about: &str) -> Result<NodeSeen, WriteError> {
    // The API server accepts no name that we would not.
    node_seen(node).map_err(|_| WriteError::Changed(about.to_owned()))
}

pub(super) fn taints(node: &Node) -> &[Taint] {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    taints.unwrap_or_default()
}

/// Our taint, as it was set at this moment.
pub(super) fn our_taint(tainted_at: Timestamp) -> Taint {
    let whole = Timestamp::from_second(tainted_at.as_second()).unwrap_or(tainted_at);
    Taint {
        key: OUT_OF_SERVICE.to_owned(),
        value: Some(NODE_SHUTDOWN.to_owned()),
        effect: "NoExecute".to_owned(),
        time_added: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(whole)),
    }
}

pub(super) fn is_ours(taint: &Taint, tainted_at: Timestamp) -> bool {
    *taint == our_taint(tainted_at)
}
