//! Stopping a reboot: annotation `dogwatch.dev/abort-requested`. Source: specification §2.4.

use dogwatch_api::annotation;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::{Abort, NodeSeen, Parsed, Phase, Request};
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use super::FleetClient;
use super::request::TRIES;
use crate::error::{Error, Kind};
use crate::node::{get_node, node_seen, watch_node};
use crate::watch::Event;

/// What became of the wish to stop a reboot.
#[derive(Debug, Clone, PartialEq)]
pub enum AbortAsked {
    /// It stands on the Node, which was as given when it was written.
    Written(Box<NodeSeen>),
    /// It stood there already.
    Already(Box<NodeSeen>),
    /// The command may have been started, and the caller did not say that this is fine. Nothing was
    /// written.
    Rebooting(Box<NodeSeen>),
    /// Its record cannot be read, so neither coordinator nor healer could obey. Nothing was written.
    Unreadable(String),
    /// Nothing had begun: the request for a reboot was taken back.
    TakenBack(Request),
    /// Nothing is under way. Nothing was written.
    NothingUnderWay(Box<NodeSeen>),
    /// There is no Node of that name.
    NoSuchNode,
}

impl FleetClient {
    /// Asks for the reboot under way on this Node to be stopped. In phase `rebooting` only if
    /// `although_rebooting`: a shutdown that was ordered may still come. Each write holds only for
    /// the Node as it was judged.
    pub async fn request_abort(
        &self,
        node: &NodeName,
        abort: &Abort,
        although_rebooting: bool,
    ) -> Result<AbortAsked, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let Some(object) = get_node(&self.client, node.as_str()).await? else {
                return Ok(AbortAsked::NoSuchNode);
            };
            let Ok(seen) = node_seen(&object) else {
                return Ok(AbortAsked::NoSuchNode);
            };
            let done = self.abort_seen(&object, seen, abort, although_rebooting);
            match done.await {
                Err(error) if error.kind() == Kind::Conflict && tries < TRIES => {}
                done => return done,
            }
        }
    }

    async fn abort_seen(
        &self,
        object: &Node,
        seen: NodeSeen,
        abort: &Abort,
        although_rebooting: bool,
    ) -> Result<AbortAsked, Error> {
        let seen = Box::new(seen);
        if seen.record == Parsed::Absent {
            let Some(request) = seen.request.get().cloned() else {
                return Ok(AbortAsked::NothingUnderWay(seen));
            };
            let gone = json!({ annotation::REBOOT_REQUESTED: null });
            self.annotate(object, &gone).await?;
            return Ok(AbortAsked::TakenBack(request));
        }
        if let Parsed::Bad { why } = &seen.record {
            return Ok(AbortAsked::Unreadable(why.clone()));
        }
        let rebooting = seen.record.get().map(|record| record.phase) == Some(Phase::Rebooting);
        if rebooting && !although_rebooting {
            return Ok(AbortAsked::Rebooting(seen));
        }
        if seen.abort != Parsed::Absent {
            return Ok(AbortAsked::Already(seen));
        }
        let text = serde_json::to_string(abort).expect("two texts serialise");
        let asked = json!({ annotation::ABORT_REQUESTED: text });
        self.annotate(object, &asked).await?;
        Ok(AbortAsked::Written(seen))
    }

    /// Watches one Node; nothing is sent before [`NodeWatch::next`] is awaited.
    pub fn watch_node(&self, node: &NodeName) -> NodeWatch {
        NodeWatch {
            events: watch_node(self.client.clone(), node.as_str()).boxed(),
        }
    }
}

/// One Node kept in sight.
pub struct NodeWatch {
    events: BoxStream<'static, Event<Node>>,
}

impl NodeWatch {
    /// How it stands after the next change; `None`: it is not there (any more).
    ///
    /// # Errors
    /// Trouble, which passes by itself: await the next.
    pub async fn next(&mut self) -> Result<Option<NodeSeen>, Error> {
        let event = self.events.next().await;
        let node = match event.expect("a watch never ends by itself") {
            Event::Restarted(nodes) => nodes.into_iter().next(),
            Event::Applied(node) => Some(node),
            Event::Deleted(_) => None,
            Event::Trouble(error) => return Err(error),
        };
        Ok(node.and_then(|node| node_seen(&node).ok()))
    }
}
