//! The drain of a host's Node, and what ends it before its time.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::drain::DrainConfig;
use dogwatch_core::lock::LeaseSeen;
use dogwatch_core::lock::api_lock::{self as rules, DrainStep, Draining, NotAllowed};
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::Allowance;
use dogwatch_k8s::drain::{Attachments, AttachmentsHandle, Handle, Runner};
use dogwatch_k8s::lock::api_lock;
use dogwatch_k8s::node::{Node, watch_node};
use dogwatch_k8s::watch::Event;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::sync::watch;

use super::queue::Queue;
use super::shared::Shared;
use super::target::Target;

/// The wall clock may be set while a window's end is waited for.
const CLOCK_CHECK: Duration = Duration::from_mins(5);

/// How a look at a drain ended.
pub(super) enum Drained {
    /// Every pod is gone, as far as that is waited for.
    Done {
        /// What is worth telling.
        note: Option<String>,
    },
    /// It failed.
    Failed {
        /// Why.
        why: String,
    },
    /// The policy does not allow it any more.
    NotAllowed(NotAllowed),
    /// The lock or the Node has changed: look whether it may go on.
    Look,
}

/// A drain under way. It stops when this is dropped.
pub(super) struct Drain {
    shared: Arc<Shared>,
    target: Target,
    name: String,
    handle: Handle,
    node: BoxStream<'static, Event<Node>>,
    leases: watch::Receiver<Option<Arc<Vec<LeaseSeen>>>>,
    /// Its watch lives while it is held.
    _queue: Arc<Queue>,
    since: Duration,
    drained_since: Option<Duration>,
    deleting: bool,
    volumes: Option<AttachmentsHandle>,
}

impl Drain {
    /// Starts to drain the target's Node under a Lease of this group. `None` if the host is none.
    pub(super) fn start(shared: &Arc<Shared>, target: &Target, group: &GroupName) -> Option<Self> {
        let queue = shared.queue(group);
        let name = target.node_name()?.to_string();
        let client = shared.setup.client.clone();
        let config = DrainConfig {
            exclude: target.config.exclude.clone(),
            ..DrainConfig::default()
        };
        let clock = shared.setup.clock.clone();
        Some(Self {
            handle: Runner::start(client.clone(), &name, config, move || clock.now()),
            node: watch_node(client, &name).boxed(),
            leases: queue.leases(),
            _queue: queue,
            since: shared.now().mono,
            drained_since: None,
            deleting: false,
            volumes: None,
            shared: Arc::clone(shared),
            target: target.clone(),
            name,
        })
    }

    /// Waits until it is over, or something else has changed. `ours` says of the group's Leases
    /// whether the lock is ours still.
    pub(super) async fn run(&mut self, ours: impl Fn(&[LeaseSeen]) -> bool) -> Drained {
        let mut policies = self.shared.policies.subscribe();
        loop {
            let until = match self.step() {
                Ok(until) => until,
                Err(ended) => return ended,
            };
            let leave = match self.leave(&policies.borrow_and_update()) {
                Ok(leave) => leave,
                Err(not) => return Drained::NotAllowed(not),
            };
            let at = until.min(leave);
            let left = async {
                match &mut self.volumes {
                    Some(volumes) => volumes.left.changed().await.is_ok(),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(event) = self.node.next() => if opened(event) { return Drained::Look },
                Ok(()) = self.leases.changed() => {
                    let leases = self.leases.borrow_and_update().clone();
                    if leases.is_some_and(|leases| !ours(&leases)) {
                        return Drained::Look;
                    }
                }
                Ok(()) = policies.changed() => {}
                Ok(()) = self.handle.progress.changed() => {}
                _ = left => {}
                () = self.shared.setup.clock.sleep_until(at) => {}
            }
        }
    }

    /// What follows from where it stands: until when to wait, or how it ended.
    fn step(&mut self) -> Result<Duration, Drained> {
        let progress = self.handle.progress.borrow_and_update().clone();
        let now = self.shared.now().mono;
        self.drained_since = progress
            .drained()
            .then(|| self.drained_since.unwrap_or(now));
        let volumes = self
            .volumes
            .as_mut()
            .and_then(|volumes| volumes.left.borrow_and_update().clone());
        let seen = Draining {
            progress: &progress,
            since: self.since,
            drained_since: self.drained_since,
            deleting: self.deleting,
            volumes: volumes.as_deref(),
        };
        match rules::drain(&seen, &self.target.config, now) {
            DrainStep::Wait { until } => Ok(until),
            DrainStep::Detach { until } => {
                if self.volumes.is_none() {
                    let client = self.shared.setup.client.clone();
                    self.volumes = Some(Attachments::start(client, &self.name, progress.claims));
                }
                Ok(until)
            }
            DrainStep::DeleteRest { why } => {
                tracing::warn!(node = self.name, why, "deletes the rest, as configured");
                self.deleting = true;
                self.handle.delete_rest();
                Ok(now + Duration::from_millis(1))
            }
            DrainStep::Done { note } => Err(Drained::Done { note }),
            DrainStep::Failed { why } => Err(Drained::Failed { why }),
        }
    }

    /// Until when the policy allows it.
    fn leave(&self, policies: &dogwatch_core::policy::Policies) -> Result<Duration, NotAllowed> {
        let now = self.shared.now();
        // The newest policies rule, for a node as it was when the drain began.
        let target = self.shared.again(&self.target, policies);
        match target.still_allowed(policies, now.wall) {
            Allowance::Yes { until: Some(until) } => {
                Ok(now.mono_at(until).min(now.mono + CLOCK_CHECK))
            }
            Allowance::Yes { until: None } => Ok(now.mono + CLOCK_CHECK),
            Allowance::No {
                reason,
                message,
                until,
            } => Err(NotAllowed {
                reason,
                message,
                until,
            }),
        }
    }
}

/// Whether the Node is not as a lock of ours has left it, or is being fenced.
fn opened(event: Event<Node>) -> bool {
    let wrong = |node: &Node| {
        api_lock::seen(node).is_ok_and(|node| {
            !node.seen.unschedulable || node.lock.get().is_none() || node.seen.fenced
        })
    };
    match event {
        Event::Restarted(nodes) => nodes.first().is_none_or(wrong),
        Event::Applied(node) => wrong(&node),
        Event::Deleted(_) => true,
        Event::Trouble(error) => {
            tracing::warn!(
                error = error.in_words(),
                "cannot watch the Node; trying again"
            );
            false
        }
    }
}
