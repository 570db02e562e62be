//! Faults between the server and one watch: an event that is lost, late or out of order.
//!
//! A server never does this within one watch. A client that survives it does not rely on any single
//! event. What was lost or out of order stays so until the watch ends: the next watch of the same
//! objects is answered 410, so that the client lists again.

use std::collections::{BTreeSet, VecDeque};
use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Sleep, sleep};

use super::request::ApiRequest;
use super::route::{ApiVerb, ResourcePath};

/// How long an event waits for its successor. If none comes, the event is only late.
const LONGEST_WAIT_FOR_SUCCESSOR: Duration = Duration::from_secs(30);

/// An event that a watch is about to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchEventInfo {
    pub user: String,
    /// The plural.
    pub resource: String,
    /// Empty for all namespaces, and for cluster-scoped objects.
    pub namespace: String,
}

/// A fault of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEventFault {
    /// The event is never delivered.
    Drop,
    /// The event is delivered late, and everything after it too.
    Hold(Duration),
    /// The event is delivered after its successor.
    Overtake,
}

type WatchFaultPlan = Box<dyn Fn(&WatchEventInfo) -> Option<WatchEventFault> + Send + Sync>;

/// The plan for events, and the watches that must list again.
#[derive(Default)]
pub(crate) struct WatchFaults {
    state: Mutex<WatchFaultState>,
}

#[derive(Default)]
struct WatchFaultState {
    plan: Option<WatchFaultPlan>,
    expired: BTreeSet<String>,
}

impl WatchFaults {
    fn lock_state(&self) -> MutexGuard<'_, WatchFaultState> {
        // A fault plan that panics leaves this state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_plan(&self, plan: Option<WatchFaultPlan>) {
        self.lock_state().plan = plan;
    }

    fn fault_of_event(&self, info: &WatchEventInfo) -> Option<WatchEventFault> {
        let state = self.lock_state();
        state.plan.as_ref().and_then(|plan| plan(info))
    }

    fn expire_watch(&self, target: &str) {
        self.lock_state().expired.insert(target.to_owned());
    }

    /// Whether this request resumes a watch that missed an event. A list makes up for it.
    pub(crate) fn take_expired(&self, request: &ApiRequest, verb: Option<ApiVerb>) -> bool {
        let mut state = self.lock_state();
        let reads = matches!(verb, Some(ApiVerb::List | ApiVerb::Watch));
        if state.expired.is_empty() || !reads {
            return false;
        }
        state.expired.remove(&watch_target(request)) && verb == Some(ApiVerb::Watch)
    }
}

/// The objects that a list and the watch after it are about, with their user.
fn watch_target(request: &ApiRequest) -> String {
    let (fields, labels) = (
        request.query.get("fieldSelector"),
        request.query.get("labelSelector"),
    );
    format!("{} {} {fields} {labels}", request.user, request.path)
}

/// The events of one watch on their way to the client.
pub(crate) struct WatchDelivery {
    info: WatchEventInfo,
    target: String,
    /// To be delivered before anything else.
    ready: VecDeque<Bytes>,
    /// Until then, nothing of `ready` is delivered.
    hold: Option<Pin<Box<Sleep>>>,
    /// An event that waits for its successor.
    overtaken: Option<(Bytes, Pin<Box<Sleep>>)>,
}

impl WatchDelivery {
    pub(crate) fn for_request(request: &ApiRequest) -> Self {
        let path = ResourcePath::parse(&request.path).unwrap_or_default();
        Self {
            info: WatchEventInfo {
                user: request.user.clone(),
                resource: path.resource,
                namespace: path.namespace,
            },
            target: watch_target(request),
            ready: VecDeque::new(),
            hold: None,
            overtaken: None,
        }
    }

    /// Takes in a line that the server sends.
    pub(crate) fn accept_line(&mut self, line: Bytes, faults: &WatchFaults) {
        if !is_event(&line) {
            // A bookmark says that everything before it was delivered.
            self.ready
                .extend(self.overtaken.take().map(|(line, _)| line));
            self.ready.push_back(line);
            return;
        }
        let before = self.overtaken.take();
        match faults.fault_of_event(&self.info) {
            Some(WatchEventFault::Drop) => faults.expire_watch(&self.target),
            Some(WatchEventFault::Hold(time)) => {
                self.hold = Some(Box::pin(sleep(time)));
                self.ready.push_back(line);
            }
            Some(WatchEventFault::Overtake) => {
                let wait = Box::pin(sleep(LONGEST_WAIT_FOR_SUCCESSOR));
                self.overtaken = Some((line, wait));
            }
            None => self.ready.push_back(line),
        }
        if let Some((line, _)) = before {
            faults.expire_watch(&self.target);
            self.ready.push_back(line);
        }
    }

    /// The next line for the client.
    pub(crate) fn poll_line(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        if let Some(hold) = &mut self.hold {
            if hold.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.hold = None;
        }
        if let Some(line) = self.ready.pop_front() {
            return Poll::Ready(line);
        }
        let Some((_, wait)) = &mut self.overtaken else {
            return Poll::Pending;
        };
        if wait.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.overtaken
            .take()
            .map_or(Poll::Pending, |(line, _)| Poll::Ready(line))
    }
}

/// Whether a line is about an object: neither a bookmark nor an error.
fn is_event(line: &[u8]) -> bool {
    [
        &b"{\"type\":\"ADDED\""[..],
        b"{\"type\":\"MODIFIED\"",
        b"{\"type\":\"DELETED\"",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}
