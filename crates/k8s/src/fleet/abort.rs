//! Aborts a reboot: annotation `dogwatch.dev/abort-requested`. Source: specification §2.4.

use dogwatch_api::annotation;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::{
    AbortRequest, ObservedNode, ParsedAnnotation, RebootPhase, RebootRequest,
};
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use super::FleetClient;
use super::request::MAX_TRIES;
use crate::error::{ApiErrorKind, Error};
use crate::node::{get_node, observed_node, watch_node};
use crate::watch::ObjectEvent;

#[derive(Debug, Clone, PartialEq)]
pub enum AbortOutcome {
    /// The annotation was written; the Node as it was at the write.
    Written(Box<ObservedNode>),
    /// The annotation existed already.
    Already(Box<ObservedNode>),
    /// The reboot command may have been started, and the caller did not allow that. Nothing was
    /// written.
    Rebooting(Box<ObservedNode>),
    /// The record cannot be read, so neither coordinator nor healer could act on the annotation.
    /// Nothing was written.
    Unreadable(String),
    /// The reboot had not begun: its request was removed.
    TakenBack(RebootRequest),
    /// No reboot is under way. Nothing was written.
    NothingUnderWay(Box<ObservedNode>),
    NoSuchNode,
}

impl FleetClient {
    /// Requests the abort of the reboot of this Node. In phase `rebooting` only if
    /// `although_rebooting`: a shutdown that was ordered may still happen. Each write has the
    /// checked Node's UID and resourceVersion as preconditions.
    pub async fn request_abort(
        &self,
        node: &NodeName,
        abort: &AbortRequest,
        although_rebooting: bool,
    ) -> Result<AbortOutcome, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let Some(object) = get_node(&self.client, node.as_str()).await? else {
                return Ok(AbortOutcome::NoSuchNode);
            };
            let Ok(seen) = observed_node(&object) else {
                return Ok(AbortOutcome::NoSuchNode);
            };
            let done = self.write_abort(&object, seen, abort, although_rebooting);
            match done.await {
                Err(error) if error.kind() == ApiErrorKind::Conflict && tries < MAX_TRIES => {}
                done => return done,
            }
        }
    }

    async fn write_abort(
        &self,
        object: &Node,
        seen: ObservedNode,
        abort: &AbortRequest,
        although_rebooting: bool,
    ) -> Result<AbortOutcome, Error> {
        let seen = Box::new(seen);
        if seen.record == ParsedAnnotation::Absent {
            let Some(request) = seen.request.get().cloned() else {
                return Ok(AbortOutcome::NothingUnderWay(seen));
            };
            let gone = json!({ annotation::REBOOT_REQUESTED: null });
            self.annotate_node(object, &gone).await?;
            return Ok(AbortOutcome::TakenBack(request));
        }
        if let ParsedAnnotation::Bad { why } = &seen.record {
            return Ok(AbortOutcome::Unreadable(why.clone()));
        }
        let rebooting =
            seen.record.get().map(|record| record.phase) == Some(RebootPhase::Rebooting);
        if rebooting && !although_rebooting {
            return Ok(AbortOutcome::Rebooting(seen));
        }
        if seen.abort != ParsedAnnotation::Absent {
            return Ok(AbortOutcome::Already(seen));
        }
        let text = serde_json::to_string(abort).expect("two texts serialise");
        let asked = json!({ annotation::ABORT_REQUESTED: text });
        self.annotate_node(object, &asked).await?;
        Ok(AbortOutcome::Written(seen))
    }

    /// Watches one Node. Sends nothing before [`NodeWatch::next_state`] is awaited.
    pub fn watch_node(&self, node: &NodeName) -> NodeWatch {
        NodeWatch {
            events: watch_node(self.client.clone(), node.as_str()).boxed(),
        }
    }
}

pub struct NodeWatch {
    events: BoxStream<'static, ObjectEvent<Node>>,
}

impl NodeWatch {
    /// The Node after the next change; `None` if it does not exist.
    ///
    /// # Errors
    /// A temporary failure of the watch: await the next state.
    pub async fn next_state(&mut self) -> Result<Option<ObservedNode>, Error> {
        let event = self.events.next().await;
        let node = match event.expect("a watch never ends by itself") {
            ObjectEvent::Restarted(nodes) => nodes.into_iter().next(),
            ObjectEvent::Applied(node) => Some(node),
            ObjectEvent::Deleted(_) => None,
            ObjectEvent::Failed(error) => return Err(error),
        };
        Ok(node.and_then(|node| observed_node(&node).ok()))
    }
}
