//! The request on the Node: adds a NodeReboot to it, and takes one back.

use std::sync::Arc;

use dogwatch_api::node_reboot::RebootMethod;
use jiff::Timestamp;

use super::types::{NodeRebootPlan, ObservedNodeReboot};
use crate::name::NodeName;
use crate::reboot::{NodeRebootRef, ObservedNode, RebootRequest};

/// One patch of annotation `dogwatch.dev/reboot-requested`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRequestPatch {
    pub node: NodeName,
    /// A later Node of the same name is not patched.
    pub uid: String,
    /// The Node's version that the patch was decided on.
    pub resource_version: String,
    /// `None` removes the annotation.
    pub request: Option<RebootRequest>,
}

impl NodeRequestPatch {
    /// Whether the Node is asked for this NodeReboot afterwards. Right before such a patch the
    /// NodeReboot is read again: a leader that sees an older one would ask for what has ended.
    pub fn asks_for(&self, own: &ObservedNodeReboot) -> bool {
        let request = self.request.as_ref();
        request.is_some_and(|request| lists_reboot(&request.node_reboots, own))
    }

    /// Whether the patch was decided on this very version of the Node.
    pub fn is_decided_on(&self, node: &ObservedNode) -> bool {
        is_of_version(node, &self.uid, &self.resource_version)
    }

    fn of_node(node: &ObservedNode, request: Option<RebootRequest>) -> Self {
        Self {
            node: node.name.clone(),
            uid: node.uid.clone(),
            resource_version: node.resource_version.clone(),
            request,
        }
    }
}

/// A write of the Node that changes nothing that anybody acts on: a request that was sent for this or
/// an older version of the Node fails from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateAskBlock {
    pub node: NodeName,
    pub uid: String,
    /// The Node's version that is written.
    pub resource_version: String,
    /// The value of annotation `dogwatch.dev/request-withdrawn`. A write without a change makes no new
    /// version.
    pub text: String,
}

impl LateAskBlock {
    pub(super) fn new(node: &ObservedNode, own: &ObservedNodeReboot, now: Timestamp) -> Self {
        Self {
            node: node.name.clone(),
            uid: node.uid.clone(),
            resource_version: node.resource_version.clone(),
            text: format!("{} at {now}", writer_mark(&own.name)),
        }
    }

    /// Whether it was decided on this very version of the Node.
    pub fn is_decided_on(&self, node: &ObservedNode) -> bool {
        is_of_version(node, &self.uid, &self.resource_version)
    }
}

fn is_of_version(node: &ObservedNode, uid: &str, resource_version: &str) -> bool {
    (node.uid.as_str(), node.resource_version.as_str()) == (uid, resource_version)
}

/// Whether a person wrote the request, and not the controller for a NodeReboot: NodeReboots may have
/// joined it since.
pub fn is_written_by_person(request: &RebootRequest) -> bool {
    let mut joined = request.node_reboots.iter();
    !joined.any(|one| is_written_for(request, &one.name))
}

pub(super) fn lists_reboot(refs: &[NodeRebootRef], own: &ObservedNodeReboot) -> bool {
    refs.iter().any(|one| one.uid == own.uid)
}

/// Adds the NodeReboot to what the Node is asked for. Somebody else's request keeps its fields.
pub(super) fn ask_patch(
    node: &ObservedNode,
    own: &ObservedNodeReboot,
    plan: &NodeRebootPlan,
    method: RebootMethod,
) -> NodeRequestPatch {
    let request = match node.request.get() {
        Some(there) => {
            let mut request = there.clone();
            request.method = request.method.max(method);
            request.node_reboots.push(own.own_ref());
            request
        }
        None => RebootRequest {
            reason: plan.reason.clone(),
            requester: requester_text(own, plan),
            not_before: None,
            method,
            node_reboots: vec![own.own_ref()],
        },
    };
    NodeRequestPatch::of_node(node, Some(request))
}

/// Takes the NodeReboot back; what others ask for stays. `None`: the Node is not asked for it.
pub(super) fn withdraw_patch(
    node: &ObservedNode,
    own: &ObservedNodeReboot,
    others: &[Arc<ObservedNodeReboot>],
) -> Option<NodeRequestPatch> {
    let there = node.request.get()?;
    if !lists_reboot(&there.node_reboots, own) {
        return None;
    }
    let mut rest = there.clone();
    rest.node_reboots.retain(|one| one.uid != own.uid);
    let written_by = there
        .node_reboots
        .iter()
        .find(|one| is_written_for(there, &one.name));
    rest.method = method_of_rest(&rest, others);
    let request = match (written_by, rest.node_reboots.first().cloned()) {
        // A person's request stays, also without NodeReboots.
        (None, _) => Some(rest),
        (Some(_), None) => None,
        (Some(writer), Some(_)) if writer.uid != own.uid => Some(rest),
        (Some(_), Some(next)) => {
            let other = others.iter().find(|other| other.uid == next.uid);
            let plan = other.and_then(|other| Some((other, other.plan.as_ref().ok()?)));
            rest.requester = match plan {
                Some((other, plan)) => {
                    rest.reason.clone_from(&plan.reason);
                    requester_text(other, plan)
                }
                None => writer_mark(&next.name),
            };
            Some(rest)
        }
    };
    Some(NodeRequestPatch::of_node(node, request))
}

/// The strongest method of the NodeReboots that stay.
fn method_of_rest(rest: &RebootRequest, others: &[Arc<ObservedNodeReboot>]) -> RebootMethod {
    if rest.method == RebootMethod::Hold {
        return RebootMethod::Hold;
    }
    if rest.node_reboots.is_empty() {
        // A person's request, which no NodeReboot raises any more.
        return RebootMethod::default();
    }
    let listed = others
        .iter()
        .filter(|other| lists_reboot(&rest.node_reboots, other));
    let methods = listed.filter_map(|other| other.open_attempt().map(|attempt| attempt.method));
    methods.max().unwrap_or(rest.method)
}

/// Who asks, for people; it also tells that a NodeReboot wrote the request, and which.
fn requester_text(own: &ObservedNodeReboot, plan: &NodeRebootPlan) -> String {
    match &plan.requester {
        Some(requester) => format!("{requester} ({})", writer_mark(&own.name)),
        None => writer_mark(&own.name),
    }
}

fn writer_mark(name: &str) -> String {
    format!("nodereboot/{name}")
}

fn is_written_for(request: &RebootRequest, name: &str) -> bool {
    let mark = writer_mark(name);
    request.requester == mark || request.requester.ends_with(&format!(" ({mark})"))
}
