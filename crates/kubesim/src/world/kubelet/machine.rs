//! The life of the pods on one node: pure, the time is an argument.
//!
//! The kubelet passes in what its watch shows, sends the reports that are due, and passes in how
//! each report ended. Nothing here knows the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use tokio::time::Instant;

use crate::world::annotation::{self, STARTS_AFTER, STOPS_AFTER};

/// Pause before a report that the API server did not accept is retried.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Grace period of a pod that is being deleted without one (the default of Kubernetes).
const DEFAULT_GRACE_PERIOD: Duration = Duration::from_secs(30);

/// Times of pods without annotations.
#[derive(Debug, Clone, Copy)]
pub struct PodTiming {
    /// Time until a pod is ready.
    pub starts_after: Duration,
    /// Time that a pod takes to stop.
    pub stops_after: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodReport {
    pub namespace: String,
    pub name: String,
    /// The pod's UID, a precondition of every call.
    pub uid: String,
    pub kind: PodReportKind,
}

/// The state of a pod to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodReportKind {
    /// Its containers are starting again.
    Starting {
        /// Number of container restarts.
        restarts: u32,
    },
    /// It runs and is ready.
    Ready {
        /// Number of container restarts.
        restarts: u32,
    },
    /// It ended with the machine and does not start again.
    Failed,
    /// Its containers have ended: the API server may delete the object.
    Ended,
}

/// The pods of one machine from a start to the next stop.
#[derive(Debug)]
pub struct MachinePods {
    timing: PodTiming,
    /// Whether containers that the API server shows as running do run: after a boot none does.
    adopts: bool,
    pods: BTreeMap<String, TrackedPod>,
}

#[derive(Debug)]
struct TrackedPod {
    namespace: String,
    name: String,
    stops_after: Duration,
    life: PodLifeStage,
    restarts: u32,
    shown: Option<PodReportKind>,
    in_flight: Option<PodReportKind>,
    not_before: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PodLifeStage {
    Starting { ready_at: Instant },
    Running,
    Failed,
    Stopping { ends_at: Instant },
    Ended,
}

impl MachinePods {
    /// A machine whose kubelet has just started: after a boot (`booted`; no container runs), or on
    /// a machine that kept running.
    pub fn new(timing: PodTiming, booted: bool) -> Self {
        Self {
            timing,
            adopts: !booted,
            pods: BTreeMap::new(),
        }
    }

    /// Handles the complete list of the node's pods: pods that it lacks are gone.
    pub fn on_relist(&mut self, pods: &[Arc<Pod>], now: Instant) {
        let listed: BTreeSet<String> = pods.iter().filter_map(|pod| pod.uid()).collect();
        self.pods.retain(|uid, _| listed.contains(uid));
        for pod in pods {
            self.on_pod_observed(pod, now);
        }
    }

    pub fn on_pod_observed(&mut self, pod: &Pod, now: Instant) {
        let Some(uid) = pod.uid() else { return };
        if !self.pods.contains_key(&uid) {
            let Some(container) = self.track_pod(pod, now) else {
                return;
            };
            self.pods.insert(uid.clone(), container);
        }
        let container = self.pods.get_mut(&uid).expect("inserted above");
        container.resend_if_contradicted(pod);
        if pod.metadata.deletion_timestamp.is_some() {
            container.begin_stop(grace_period(pod), now);
        }
    }

    /// The object is gone, so its containers no longer matter.
    pub fn on_pod_deleted(&mut self, uid: &str) {
        self.pods.remove(uid);
    }

    /// All reports that are due now; each is returned once until [`MachinePods::on_report_ended`].
    pub fn due_reports(&mut self, now: Instant) -> Vec<PodReport> {
        let mut work = Vec::new();
        for (uid, container) in &mut self.pods {
            container.advance_stage(now);
            let Some(what) = container.due_report(now) else {
                continue;
            };
            container.in_flight = Some(what);
            work.push(PodReport {
                namespace: container.namespace.clone(),
                name: container.name.clone(),
                uid: uid.clone(),
                kind: what,
            });
        }
        work
    }

    /// Records whether the API server accepted the report; if not, it is retried.
    pub fn on_report_ended(&mut self, uid: &str, taken: bool, now: Instant) {
        let Some(container) = self.pods.get_mut(uid) else {
            return;
        };
        let told = container.in_flight.take();
        if taken {
            container.shown = told;
            container.not_before = None;
        } else {
            container.not_before = Some(now + RETRY_PAUSE);
        }
    }

    /// When [`MachinePods::due_reports`] may return something new.
    pub fn wake_at(&self) -> Option<Instant> {
        self.pods.values().filter_map(TrackedPod::wake_at).min()
    }

    fn track_pod(&self, pod: &Pod, now: Instant) -> Option<TrackedPod> {
        let deleting = pod.metadata.deletion_timestamp.is_some();
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        let finished = matches!(phase, Some("Succeeded" | "Failed"));
        if finished && !deleting {
            return None;
        }
        let running = phase == Some("Running");
        let starts_after = annotation::duration_of_pod(pod, STARTS_AFTER, self.timing.starts_after);
        let life = if running && self.adopts {
            PodLifeStage::Running
        } else if deleting {
            PodLifeStage::Ended
        } else if running && never_restarts(pod) {
            PodLifeStage::Failed
        } else {
            PodLifeStage::Starting {
                ready_at: now + starts_after,
            }
        };
        let restarts = restart_count(pod) + u32::from(running && !self.adopts);
        Some(TrackedPod {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            stops_after: annotation::duration_of_pod(pod, STOPS_AFTER, self.timing.stops_after),
            life,
            restarts,
            shown: running.then_some(PodReportKind::Ready {
                restarts: self::restart_count(pod),
            }),
            in_flight: None,
            not_before: None,
        })
    }
}

impl TrackedPod {
    fn begin_stop(&mut self, grace: Duration, now: Instant) {
        self.life = match self.life {
            PodLifeStage::Starting { .. } | PodLifeStage::Failed | PodLifeStage::Ended => {
                PodLifeStage::Ended
            }
            PodLifeStage::Running => PodLifeStage::Stopping {
                ends_at: now + self.stops_after.min(grace),
            },
            // A later deletion can only shorten the grace period.
            PodLifeStage::Stopping { ends_at } => PodLifeStage::Stopping {
                ends_at: ends_at.min(now + grace),
            },
        };
    }

    /// Another writer set the pod to not ready, so the kubelet reports it again. An old event may
    /// look the same and then causes one report too many.
    fn resend_if_contradicted(&mut self, pod: &Pod) {
        let told_ready = matches!(self.shown, Some(PodReportKind::Ready { .. }));
        if told_ready && self.in_flight.is_none() && is_unready(pod) {
            self.shown = Some(PodReportKind::Starting {
                restarts: self.restarts,
            });
        }
    }

    fn advance_stage(&mut self, now: Instant) {
        self.life = match self.life {
            PodLifeStage::Starting { ready_at } if ready_at <= now => PodLifeStage::Running,
            PodLifeStage::Stopping { ends_at } if ends_at <= now => PodLifeStage::Ended,
            life @ (PodLifeStage::Starting { .. }
            | PodLifeStage::Stopping { .. }
            | PodLifeStage::Running
            | PodLifeStage::Failed
            | PodLifeStage::Ended) => life,
        };
    }

    fn due_report(&self, now: Instant) -> Option<PodReportKind> {
        let waits = self.not_before.is_some_and(|moment| moment > now);
        if self.in_flight.is_some() || waits {
            return None;
        }
        self.wanted_report()
            .filter(|report| Some(*report) != self.shown)
    }

    /// The report that the API server should have by now. A first start is reported only when the
    /// pod is ready: until then the object says Pending already.
    fn wanted_report(&self) -> Option<PodReportKind> {
        let restarts = self.restarts;
        match self.life {
            PodLifeStage::Starting { .. } => {
                self.shown.map(|_| PodReportKind::Starting { restarts })
            }
            PodLifeStage::Running => Some(PodReportKind::Ready { restarts }),
            PodLifeStage::Failed => Some(PodReportKind::Failed),
            PodLifeStage::Stopping { .. } => None,
            PodLifeStage::Ended => Some(PodReportKind::Ended),
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        if self.in_flight.is_some() {
            return None;
        }
        let alarm = match self.life {
            PodLifeStage::Starting { ready_at } => Some(ready_at),
            PodLifeStage::Stopping { ends_at } => Some(ends_at),
            PodLifeStage::Running | PodLifeStage::Failed | PodLifeStage::Ended => None,
        };
        let unsaid = self
            .wanted_report()
            .is_some_and(|report| Some(report) != self.shown);
        let retry = self.not_before.filter(|_| unsaid);
        [alarm, retry].into_iter().flatten().min()
    }
}

fn grace_period(pod: &Pod) -> Duration {
    pod.metadata
        .deletion_grace_period_seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(DEFAULT_GRACE_PERIOD, Duration::from_secs)
}

/// Whether the pod's status says that it runs and is not ready.
fn is_unready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    let ready = conditions
        .unwrap_or_default()
        .iter()
        .find(|condition| condition.type_ == "Ready");
    ready.is_some_and(|condition| condition.status == "False")
}

fn never_restarts(pod: &Pod) -> bool {
    let policy = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.restart_policy.as_deref());
    policy == Some("Never")
}

fn restart_count(pod: &Pod) -> u32 {
    pod.status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref())
        .and_then(|statuses| statuses.first())
        .and_then(|status| u32::try_from(status.restart_count).ok())
        .unwrap_or(0)
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
