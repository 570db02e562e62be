//! The release of a Node's workloads: the only code that deletes a Node, or taints it out of service.

use std::time::Duration;

use dogwatch_core::reboot::NodeSeen;
use dogwatch_core::remedy::{Cleared, Release, StrategyType};
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::Patch;
use kube::core::Status;
use serde_json::json;
use tokio::time::Instant;

use super::node::{GET, PATCH, is_ours, our_taint, seen, taints};
use super::{Right, WriteError};
use crate::error::{Error, Kind, ask_for};
use crate::in_time::Until;
use crate::node::OUT_OF_SERVICE;
use crate::remedy::client::{RemedyClient, params, precondition};
use crate::remedy::look::beat;

const DELETE: Right = Right::new("delete", "nodes");

/// How often a Node is looked at once more because it was written in between.
const TRIES: u32 = 5;

/// How a release ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Released {
    /// The Node of that UID is gone: this call deleted it, or it was gone before.
    Gone,
    /// The taint stands. [`Released::Tainted`] of a Node that somebody else had tainted so already: the
    /// workloads are released, and the taint is not ours to lift.
    Tainted(Box<NodeSeen>),
}

impl RemedyClient {
    /// Deletes the Node, or taints it, as long as the permission lasts by `now`, the monotonic clock that
    /// it was made by. No call waits, here or in the API server, for longer than that.
    ///
    /// # Errors
    /// [`WriteError::Expired`]: nothing was sent. [`WriteError::Changed`]: another Node has the name, or
    /// it has changed since it was read; nothing was written. [`WriteError::Kept`]: it goes when others
    /// let it. After any other it may have been done.
    pub async fn release(
        &self,
        release: &Release,
        now: impl Fn() -> Duration + Send + Sync,
    ) -> Result<Released, WriteError> {
        match release.how {
            StrategyType::DeleteNode => self.delete_node(&release.cleared, &now).await,
            StrategyType::OutOfServiceTaint => {
                let (cleared, at) = (&release.cleared, release.tainted_at);
                let node = self.taint_node(cleared, at, &now).await?;
                Ok(Released::Tainted(Box::new(node)))
            }
        }
    }

    /// With UID and resourceVersion of one last look, which finds the Node as silent as it was cleared: so a
    /// deletion that is late, held up by the network or by a process that was stopped, does nothing to a Node
    /// that has said anything since. The Node's controllers may write to it as well: then it is looked at again.
    async fn delete_node(
        &self,
        cleared: &Cleared,
        now: &(impl Fn() -> Duration + Sync),
    ) -> Result<Released, WriteError> {
        let about = format!("node {}", cleared.node());
        for _ in 0..TRIES {
            let Some(node) = self.still_silent(cleared, now).await? else {
                return Ok(Released::Gone);
            };
            let version = node.resource_version().unwrap_or_default();
            if let Some(released) = self.delete_version(cleared, &version, now).await? {
                return Ok(released);
            }
        }
        Err(WriteError::Changed(about))
    }

    /// The Node, if it is there: the one that was cleared, and it has given no sign of life since.
    async fn still_silent(
        &self,
        cleared: &Cleared,
        now: &(impl Fn() -> Duration + Sync),
    ) -> Result<Option<Node>, WriteError> {
        let (name, nodes, leases) = (cleared.node().as_str(), self.nodes(), self.node_leases());
        let both = async { futures::try_join!(nodes.get_opt(name), leases.get_opt(name)) };
        let read = ask_for(left(cleared, now)?, both).await;
        let (node, lease) = read.map_err(|error| GET.refused(&format!("node {name}"), error))?;
        let Some(node) = node else {
            return Ok(None);
        };
        if beat(lease.as_ref(), Some(&node)) != *cleared.beat() {
            return Err(WriteError::Changed(format!("node {name}")));
        }
        Ok(Some(node))
    }

    /// `None`: it is another version by now.
    async fn delete_version(
        &self,
        cleared: &Cleared,
        version: &str,
        now: &(impl Fn() -> Duration + Sync),
    ) -> Result<Option<Released>, WriteError> {
        let name = cleared.node().as_str();
        let about = format!("node {name}");
        let preconditions = json!({ "uid": cleared.node_uid(), "resourceVersion": version });
        let body = json!({ "preconditions": preconditions }).to_string();
        let left = left(cleared, now)?;
        let until = Until(Instant::now() + left);
        // The API server gives up by itself when the permission ends: what waits there for long enough
        // to outlive it is not done later.
        let path = format!("/api/v1/nodes/{name}?timeout={}ms", left.as_millis());
        let request = Request::delete(path).header("content-type", "application/json");
        let request = request.extension(until).body(body.into_bytes());
        let request = request.map_err(|error| Error::from(kube::Error::HttpError(error)))?;
        let answer = ask_for(left, self.client.request_status::<Node>(request)).await;
        match answer {
            Ok(answer) => answer.either(
                |node| kept(&node).map_or(Ok(Some(Released::Gone)), Err),
                |_: Status| Ok(Some(Released::Gone)),
            ),
            Err(error) if error.kind() == Kind::NotFound => Ok(Some(Released::Gone)),
            Err(error) if error.kind() == Kind::Conflict => Ok(None),
            Err(error) => Err(DELETE.refused(&about, error)),
        }
    }

    /// On the version that is read here: one that a Node which lives again has made older is refused, so
    /// that a patch which is late does nothing.
    async fn taint_node(
        &self,
        cleared: &Cleared,
        tainted_at: Timestamp,
        now: &(impl Fn() -> Duration + Sync),
    ) -> Result<NodeSeen, WriteError> {
        let name = cleared.node().as_str();
        let about = format!("node {name}");
        let nodes = self.nodes();
        let node = self.still_silent(cleared, now).await?;
        let node = node.ok_or_else(|| WriteError::Changed(about.clone()))?;
        let mut all = taints(&node).to_vec();
        let ours = our_taint(tainted_at);
        let is_it = |there: &k8s_openapi::api::core::v1::Taint| {
            there.key == OUT_OF_SERVICE && there.effect == ours.effect
        };
        if all.iter().any(is_it) {
            return seen(&node, &about);
        }
        all.push(ours);
        let version = node.resource_version().unwrap_or_default();
        let metadata = precondition(cleared.node_uid(), &version);
        let body = Patch::Merge(json!({ "metadata": metadata, "spec": { "taints": all } }));
        let params = params();
        let answer = ask_for(left(cleared, now)?, nodes.patch(name, &params, &body)).await;
        let answer = answer.map_err(|error| PATCH.refused(&about, error))?;
        if taints(&answer)
            .iter()
            .any(|taint| is_ours(taint, tainted_at))
        {
            seen(&answer, &about)
        } else {
            Err(WriteError::Dropped(format!("the taint of {about}")))
        }
    }
}

/// How long the permission lasts from now on.
fn left(cleared: &Cleared, now: &impl Fn() -> Duration) -> Result<Duration, WriteError> {
    let now = now();
    if !cleared.lasts(now) {
        return Err(WriteError::Expired(cleared.host().to_string()));
    }
    // In whole milliseconds, as it is sent: none is not without limit.
    let left = cleared.left(now).as_millis().max(1);
    Ok(Duration::from_millis(u64::try_from(left).unwrap_or(1)))
}

/// A Node with finalizers is answered with, and stays until they are gone.
fn kept(node: &Node) -> Option<WriteError> {
    let finalizers = node.finalizers();
    (!finalizers.is_empty()).then(|| WriteError::Kept {
        node: node.name_any(),
        finalizers: finalizers.to_vec(),
    })
}
