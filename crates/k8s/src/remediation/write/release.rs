//! Releases a Node's workloads: the only code that deletes a Node or taints it out of service.

use std::time::Duration;

use dogwatch_api::CONTROLLER;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{ReleasePermit, StrategyType, WorkloadRelease};
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::core::Status;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::node::{
    GET_RIGHT, PATCH_RIGHT, is_own_taint, node_taints, own_taint, parse_node_answer,
};
use super::{RemediationWriteError, RequiredRight};
use crate::deadline::SendDeadline;
use crate::error::{ApiErrorKind, Error, with_custom_timeout};
use crate::node::OUT_OF_SERVICE_TAINT;
use crate::readable_dates::ReadableApi as _;
use crate::remediation::client::{RemediationClient, patch_precondition};
use crate::remediation::observe::heartbeat_of;

const DELETE_RIGHT: RequiredRight = RequiredRight::new("delete", "nodes");

/// How often the Node is read again because it was written in between.
const MAX_TRIES: u32 = 5;

#[derive(Debug, Clone, PartialEq)]
pub enum NodeReleaseOutcome {
    /// The Node of that UID is gone: this call deleted it, or it was gone before.
    Gone,
    /// The Node has the taint. If somebody else had added it before, the workloads are released
    /// too, but the taint is not ours to remove.
    Tainted(Box<ObservedNode>),
}

impl RemediationClient {
    /// Deletes or taints the Node while the permit is valid. `now` is the monotonic clock that the
    /// permit was made with. No call waits, here or in the API server, past the permit's end.
    ///
    /// # Errors
    /// [`RemediationWriteError::Expired`]: nothing was sent. [`RemediationWriteError::Changed`]:
    /// another Node has the name, or it has changed since it was read; nothing was written.
    /// [`RemediationWriteError::Kept`]: the Node goes when others remove their finalizers. After
    /// any other error the release may have been done.
    pub async fn release_node(
        &self,
        release: &WorkloadRelease,
        now: impl Fn() -> Duration + Send + Sync,
    ) -> Result<NodeReleaseOutcome, RemediationWriteError> {
        match release.strategy_type {
            StrategyType::DeleteNode => self.delete_node(&release.permit, &now).await,
            StrategyType::OutOfServiceTaint => {
                let (cleared, at) = (&release.permit, release.tainted_at);
                let node = self.taint_node(cleared, at, &now).await?;
                Ok(NodeReleaseOutcome::Tainted(Box::new(node)))
            }
        }
    }

    /// Deletes with UID and resourceVersion of one last read, which checks that the heartbeat is
    /// still the permit's. So a late deletion (held up by the network or by a stopped process) does
    /// nothing to a Node that has sent a heartbeat since. Controllers may write to the Node too;
    /// then it is read again.
    async fn delete_node(
        &self,
        cleared: &ReleasePermit,
        now: &(impl Fn() -> Duration + Sync),
    ) -> Result<NodeReleaseOutcome, RemediationWriteError> {
        let about = format!("node {}", cleared.node());
        for _ in 0..MAX_TRIES {
            let Some(node) = self.read_silent_node(cleared, now).await? else {
                return Ok(NodeReleaseOutcome::Gone);
            };
            let version = node.resource_version().unwrap_or_default();
            if let Some(released) = self.delete_version(cleared, &version, now).await? {
                return Ok(released);
            }
        }
        Err(RemediationWriteError::object_changed(about))
    }

    /// The Node, if it exists. An error if it is not the permit's Node, or has sent a heartbeat
    /// since.
    async fn read_silent_node(
        &self,
        cleared: &ReleasePermit,
        now: &(impl Fn() -> Duration + Sync),
    ) -> Result<Option<Node>, RemediationWriteError> {
        let (name, nodes, leases) = (
            cleared.node().as_str(),
            self.node_api(),
            self.node_lease_api(),
        );
        let both = async {
            futures::try_join!(nodes.get_readable_opt(name), leases.get_readable_opt(name))
        };
        let read = with_custom_timeout(remaining_permit_time(cleared, now)?, both).await;
        let (node, lease) =
            read.map_err(|error| GET_RIGHT.classify_error(&format!("node {name}"), error))?;
        let Some(node) = node else {
            return Ok(None);
        };
        if heartbeat_of(lease.as_ref(), Some(&node)) != *cleared.beat() {
            return Err(RemediationWriteError::object_changed(format!(
                "node {name}"
            )));
        }
        Ok(Some(node))
    }

    /// `None`: the Node has another version by now.
    async fn delete_version(
        &self,
        cleared: &ReleasePermit,
        version: &str,
        now: &(impl Fn() -> Duration + Sync),
    ) -> Result<Option<NodeReleaseOutcome>, RemediationWriteError> {
        let name = cleared.node().as_str();
        let about = format!("node {name}");
        let preconditions = json!({ "uid": cleared.node_uid(), "resourceVersion": version });
        let left = remaining_permit_time(cleared, now)?;
        let request = Request::delete(node_path_with_limit(name, left))
            .header("content-type", "application/json");
        let body = json!({ "preconditions": preconditions });
        let request = with_send_deadline(request, &body, left)?;
        let deletion = self.node_client.request_status::<Node>(request);
        let answer = with_custom_timeout(left, deletion).await;
        match answer {
            Ok(answer) => answer.either(
                |node| finalizer_error(&node).map_or(Ok(Some(NodeReleaseOutcome::Gone)), Err),
                |_: Status| Ok(Some(NodeReleaseOutcome::Gone)),
            ),
            Err(error) if error.kind() == ApiErrorKind::NotFound => {
                Ok(Some(NodeReleaseOutcome::Gone))
            }
            Err(error) if error.kind() == ApiErrorKind::Conflict => Ok(None),
            Err(error) => Err(DELETE_RIGHT.classify_error(&about, error)),
        }
    }

    /// Taints the version that is read here. A Node that is alive again has another version, so a
    /// late patch is refused and does nothing.
    async fn taint_node(
        &self,
        cleared: &ReleasePermit,
        tainted_at: Timestamp,
        now: &(impl Fn() -> Duration + Sync),
    ) -> Result<ObservedNode, RemediationWriteError> {
        let name = cleared.node().as_str();
        let about = format!("node {name}");
        let node = self.read_silent_node(cleared, now).await?;
        let node = node.ok_or_else(|| RemediationWriteError::object_changed(&about))?;
        let mut all = node_taints(&node).to_vec();
        let ours = own_taint(tainted_at);
        let is_it = |there: &k8s_openapi::api::core::v1::Taint| {
            there.key == OUT_OF_SERVICE_TAINT && there.effect == ours.effect
        };
        if all.iter().any(is_it) {
            return parse_node_answer(&node, &about);
        }
        all.push(ours);
        let version = node.resource_version().unwrap_or_default();
        let metadata = patch_precondition(cleared.node_uid(), &version);
        let body = json!({ "metadata": metadata, "spec": { "taints": all } });
        let left = remaining_permit_time(cleared, now)?;
        let path = node_path_with_limit(name, left);
        let request = Request::patch(format!("{path}&fieldManager={CONTROLLER}"))
            .header("content-type", "application/merge-patch+json");
        let request = with_send_deadline(request, &body, left)?;
        let answer = with_custom_timeout(left, self.node_client.request::<Node>(request)).await;
        let answer = answer.map_err(|error| PATCH_RIGHT.classify_error(&about, error))?;
        if node_taints(&answer)
            .iter()
            .any(|taint| is_own_taint(taint, tainted_at))
        {
            parse_node_answer(&answer, &about)
        } else {
            Err(RemediationWriteError::Dropped(format!(
                "the taint of {about}"
            )))
        }
    }
}

/// The API server itself gives up when the permit ends, so that a queued request is not executed
/// later.
fn node_path_with_limit(name: &str, left: Duration) -> String {
    format!("/api/v1/nodes/{name}?timeout={}ms", left.as_millis())
}

fn with_send_deadline(
    request: http::request::Builder,
    body: &Value,
    left: Duration,
) -> Result<Request<Vec<u8>>, Error> {
    let until = SendDeadline(Instant::now() + left);
    let request = request.extension(until);
    let request = request.body(body.to_string().into_bytes());
    request.map_err(|error| Error::from(kube::Error::HttpError(error)))
}

/// Remaining validity of the permit.
fn remaining_permit_time(
    cleared: &ReleasePermit,
    now: &impl Fn() -> Duration,
) -> Result<Duration, RemediationWriteError> {
    let now = now();
    if !cleared.is_valid_at(now) {
        return Err(RemediationWriteError::Expired(cleared.host().to_string()));
    }
    // Whole milliseconds, as in the request; at least 1, because 0 means no limit.
    let left = cleared.remaining_validity(now).as_millis().max(1);
    Ok(Duration::from_millis(u64::try_from(left).unwrap_or(1)))
}

/// The API server answers the deletion of a Node with finalizers with the Node, which stays until
/// they are gone.
fn finalizer_error(node: &Node) -> Option<RemediationWriteError> {
    let finalizers = node.finalizers();
    (!finalizers.is_empty()).then(|| RemediationWriteError::Kept {
        node: node.name_any(),
        finalizers: finalizers.to_vec(),
    })
}
