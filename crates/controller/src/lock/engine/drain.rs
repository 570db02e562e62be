//! Drains a host's Node, and watches for what ends the drain early.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::drain::{DrainConfig, DrainStart};
use dogwatch_core::lock::ObservedLease;
use dogwatch_core::lock::api_lock::{self as rules, ApiDrainSnapshot, ApiDrainStep, PolicyDenial};
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::RebootAllowance;
use dogwatch_k8s::drain::{AttachmentWatch, AttachmentsHandle, DrainHandle, DrainRunner};
use dogwatch_k8s::lock::api_lock;
use dogwatch_k8s::node::{Node, watch_node};
use dogwatch_k8s::watch::ObjectEvent;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::sync::watch;

use super::lock_state::LockState;
use super::queue::GroupQueue;
use super::target::LockTarget;

/// A window's end is checked again after this time at the latest, because the wall clock may be
/// set.
const CLOCK_RECHECK_INTERVAL: Duration = Duration::from_mins(5);

pub(super) enum HostDrainOutcome {
    /// Every pod that the drain waits for is gone.
    Done {
        /// A remark for the client.
        note: Option<String>,
    },
    Failed {
        why: String,
    },
    /// The policy no longer allows the reboot.
    NotAllowed(PolicyDenial),
    /// The lock or the Node has changed: the caller checks whether the drain may go on.
    Look,
}

/// Stops the drain when it is dropped.
pub(super) struct HostDrain {
    shared: Arc<LockState>,
    target: LockTarget,
    name: String,
    handle: DrainHandle,
    node: BoxStream<'static, ObjectEvent<Node>>,
    leases: watch::Receiver<Option<Arc<Vec<ObservedLease>>>>,
    /// Keeps the group's Lease watch alive.
    _queue: Arc<GroupQueue>,
    since: Duration,
    /// How long the drain has waited for pods to end by themselves, or may wait.
    drain_wait: Duration,
    drained_since: Option<Duration>,
    deleting: bool,
    volumes: Option<AttachmentsHandle>,
}

impl HostDrain {
    /// Starts to drain the target's Node under a Lease of this group. `None` if the host is no
    /// Node.
    pub(super) fn start_drain(
        shared: &Arc<LockState>,
        target: &LockTarget,
        group: &GroupName,
    ) -> Option<Self> {
        let queue = shared.queue_of_group(group);
        let name = target.node_name()?.to_string();
        let client = shared.setup.client.clone();
        let since = shared.now().mono;
        let config = DrainConfig {
            rules: target.config.pod_rules.clone(),
            start: DrainStart {
                seen: since,
                before: Duration::ZERO,
            },
            ..DrainConfig::default()
        };
        let clock = shared.setup.clock.clone();
        Some(Self {
            handle: DrainRunner::start_drain(client.clone(), &name, config, move || clock.now()),
            node: watch_node(client, &name).boxed(),
            leases: queue.subscribe_leases(),
            _queue: queue,
            since,
            drain_wait: Duration::ZERO,
            drained_since: None,
            deleting: false,
            volumes: None,
            shared: Arc::clone(shared),
            target: target.clone(),
            name,
        })
    }

    /// Waits until the drain ends or something else changes. `ours` checks in the group's Leases
    /// whether this host still holds the lock. With `needs_allowance` it ends when the policy no
    /// longer allows the reboot.
    pub(super) async fn wait_for_outcome(
        &mut self,
        ours: impl Fn(&[ObservedLease]) -> bool,
        needs_allowance: bool,
    ) -> HostDrainOutcome {
        let mut policies = self.shared.policies.subscribe();
        loop {
            let until = match self.apply_next_step() {
                Ok(until) => until,
                Err(ended) => return ended,
            };
            let allowed_until = match self.allowed_until(&policies.borrow_and_update()) {
                Ok(allowed_until) => allowed_until,
                Err(_) if !needs_allowance => until,
                Err(not) => return HostDrainOutcome::NotAllowed(not),
            };
            let at = until.min(allowed_until);
            let left = async {
                match &mut self.volumes {
                    Some(volumes) => volumes.left.changed().await.is_ok(),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(event) = self.node.next() => if has_node_changed(event) { return HostDrainOutcome::Look },
                Ok(()) = self.leases.changed() => {
                    let leases = self.leases.borrow_and_update().clone();
                    if leases.is_some_and(|leases| !ours(&leases)) {
                        return HostDrainOutcome::Look;
                    }
                }
                Ok(()) = policies.changed() => {}
                Ok(()) = self.handle.progress.changed() => {}
                _ = left => {}
                () = self.shared.setup.clock.sleep_until(at) => {}
            }
        }
    }

    /// Decides the next step of the drain. Returns until when to wait, or how the drain ended.
    fn apply_next_step(&mut self) -> Result<Duration, HostDrainOutcome> {
        let progress = self.handle.progress.borrow_and_update().clone();
        let now = self.shared.now().mono;
        self.drained_since = progress
            .is_drained()
            .then(|| self.drained_since.unwrap_or(now));
        self.drain_wait = progress.drain_wait(self.drain_wait, now.saturating_sub(self.since));
        let volumes = self
            .volumes
            .as_mut()
            .and_then(|volumes| volumes.left.borrow_and_update().clone());
        let seen = ApiDrainSnapshot {
            progress: &progress,
            since: self.since,
            drain_wait: self.drain_wait,
            drained_since: self.drained_since,
            deleting: self.deleting,
            volumes: volumes.as_deref(),
        };
        match rules::decide_drain(&seen, &self.target.config, now) {
            ApiDrainStep::Wait { until } => Ok(until),
            ApiDrainStep::Detach { until } => {
                if self.volumes.is_none() {
                    let client = self.shared.setup.client.clone();
                    self.volumes = Some(AttachmentWatch::start_watching(
                        client,
                        &self.name,
                        progress.claims,
                    ));
                }
                Ok(until)
            }
            ApiDrainStep::DeleteRest { why } => {
                tracing::warn!(
                    node = self.name,
                    why,
                    "the drain has timed out: deletes the remaining pods, as configured"
                );
                self.deleting = true;
                self.handle.delete_rest();
                Ok(now + Duration::from_millis(1))
            }
            ApiDrainStep::Done { note } => Err(HostDrainOutcome::Done { note }),
            ApiDrainStep::Failed { why } => Err(HostDrainOutcome::Failed { why }),
        }
    }

    /// How long the policy still allows the drain.
    fn allowed_until(
        &self,
        policies: &dogwatch_core::policy::ClusterPolicies,
    ) -> Result<Duration, PolicyDenial> {
        let now = self.shared.now();
        // The newest policies apply, to the node as it was when the drain began.
        let target = self.shared.target_under_policies(&self.target, policies);
        match target.drain_allowance(policies, now.wall) {
            RebootAllowance::Yes { until: Some(until) } => Ok(now
                .mono_time_of(until)
                .min(now.mono + CLOCK_RECHECK_INTERVAL)),
            RebootAllowance::Yes { until: None } => Ok(now.mono + CLOCK_RECHECK_INTERVAL),
            RebootAllowance::No {
                reason,
                message,
                until,
            } => Err(PolicyDenial {
                reason,
                message,
                until,
            }),
        }
    }
}

/// Whether the Node is not as our lock has left it, or is being fenced.
fn has_node_changed(event: ObjectEvent<Node>) -> bool {
    let wrong = |node: &Node| {
        api_lock::observed_api_node(node).is_ok_and(|node| {
            !node.seen.unschedulable || node.lock.get().is_none() || node.seen.being_fenced
        })
    };
    match event {
        ObjectEvent::Restarted(nodes) => nodes.first().is_none_or(wrong),
        ObjectEvent::Applied(node) => wrong(&node),
        ObjectEvent::Deleted(_) => true,
        ObjectEvent::Failed(error) => {
            tracing::warn!(
                error = error.error_chain(),
                "failed to watch the Node; retrying"
            );
            false
        }
    }
}
