//! What becomes of the pods on one node: pure, time passed in.
//!
//! The kubelet feeds in what its watch shows, takes out what is due, and tells how each piece of
//! work ended. Nothing here knows the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use tokio::time::Instant;

use crate::world::annotation::{self, STARTS_AFTER, STOPS_AFTER};

/// A pause before something the API server did not take is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// The grace of a pod that is being deleted and does not say (Kubernetes' own default).
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// How long pods take that do not say it themselves.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// To be ready.
    pub starts_after: Duration,
    /// To stop.
    pub stops_after: Duration,
}

/// Something to tell the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// Its UID, which every call carries as a precondition.
    pub uid: String,
    /// What to tell.
    pub what: Report,
}

/// What the API server is to know of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// Its containers are being started, so often again.
    Starting {
        /// How often its containers were started again.
        restarts: u32,
    },
    /// It runs and is ready.
    Ready {
        /// How often its containers were started again.
        restarts: u32,
    },
    /// It ended with the machine and is not to be started again.
    Failed,
    /// Its containers have ended: the object can go.
    Ended,
}

/// The pods of one machine between two of its stops.
#[derive(Debug)]
pub struct Machine {
    timing: Timing,
    /// Whether containers that the API server shows as running really run: after a boot none does.
    adopts: bool,
    pods: BTreeMap<String, Container>,
}

#[derive(Debug)]
struct Container {
    namespace: String,
    name: String,
    stops_after: Duration,
    life: Life,
    restarts: u32,
    shown: Option<Report>,
    in_flight: Option<Report>,
    not_before: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Starting { ready_at: Instant },
    Running,
    Failed,
    Stopping { ends_at: Instant },
    Ended,
}

impl Machine {
    /// A machine whose kubelet has just been started: after a boot of the machine (no container
    /// runs), or on one that has been running.
    pub fn new(timing: Timing, booted: bool) -> Self {
        Self {
            timing,
            adopts: !booted,
            pods: BTreeMap::new(),
        }
    }

    /// The complete list of the node's pods: what it lacks is gone.
    pub fn relisted(&mut self, pods: &[Arc<Pod>], now: Instant) {
        let listed: BTreeSet<String> = pods.iter().filter_map(|pod| pod.uid()).collect();
        self.pods.retain(|uid, _| listed.contains(uid));
        for pod in pods {
            self.seen(pod, now);
        }
    }

    /// A pod as it is now.
    pub fn seen(&mut self, pod: &Pod, now: Instant) {
        let Some(uid) = pod.uid() else { return };
        if !self.pods.contains_key(&uid) {
            let Some(container) = self.taken_up(pod, now) else {
                return;
            };
            self.pods.insert(uid.clone(), container);
        }
        let container = self.pods.get_mut(&uid).expect("inserted above");
        container.contradicted(pod);
        if pod.metadata.deletion_timestamp.is_some() {
            container.told_to_stop(grace(pod), now);
        }
    }

    /// The object is gone; its containers are of no interest any more.
    pub fn deleted(&mut self, uid: &str) {
        self.pods.remove(uid);
    }

    /// Everything to tell now, each thing once until [`Machine::told`].
    pub fn due(&mut self, now: Instant) -> Vec<Work> {
        let mut work = Vec::new();
        for (uid, container) in &mut self.pods {
            container.age(now);
            let Some(what) = container.due(now) else {
                continue;
            };
            container.in_flight = Some(what);
            work.push(Work {
                namespace: container.namespace.clone(),
                name: container.name.clone(),
                uid: uid.clone(),
                what,
            });
        }
        work
    }

    /// How telling ended: taken, or to be tried again.
    pub fn told(&mut self, uid: &str, taken: bool, now: Instant) {
        let Some(container) = self.pods.get_mut(uid) else {
            return;
        };
        let told = container.in_flight.take();
        if taken {
            container.shown = told;
            container.not_before = None;
        } else {
            container.not_before = Some(now + RETRY);
        }
    }

    /// When [`Machine::due`] may have something new.
    pub fn wake(&self) -> Option<Instant> {
        self.pods.values().filter_map(Container::wake).min()
    }

    fn taken_up(&self, pod: &Pod, now: Instant) -> Option<Container> {
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
        let starts_after = annotation::duration(pod, STARTS_AFTER, self.timing.starts_after);
        let life = if running && self.adopts {
            Life::Running
        } else if deleting {
            Life::Ended
        } else if running && never_restarts(pod) {
            Life::Failed
        } else {
            Life::Starting {
                ready_at: now + starts_after,
            }
        };
        let restarts = restarts(pod) + u32::from(running && !self.adopts);
        Some(Container {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            stops_after: annotation::duration(pod, STOPS_AFTER, self.timing.stops_after),
            life,
            restarts,
            shown: running.then_some(Report::Ready {
                restarts: self::restarts(pod),
            }),
            in_flight: None,
            not_before: None,
        })
    }
}

impl Container {
    fn told_to_stop(&mut self, grace: Duration, now: Instant) {
        self.life = match self.life {
            Life::Starting { .. } | Life::Failed | Life::Ended => Life::Ended,
            Life::Running => Life::Stopping {
                ends_at: now + self.stops_after.min(grace),
            },
            // A later deletion may only shorten the grace.
            Life::Stopping { ends_at } => Life::Stopping {
                ends_at: ends_at.min(now + grace),
            },
        };
    }

    /// Somebody else said that it is not ready: it has to be said again. An old event may look the
    /// same, and then it is said once more than needed.
    fn contradicted(&mut self, pod: &Pod) {
        let told_ready = matches!(self.shown, Some(Report::Ready { .. }));
        if told_ready && self.in_flight.is_none() && is_unready(pod) {
            self.shown = Some(Report::Starting {
                restarts: self.restarts,
            });
        }
    }

    fn age(&mut self, now: Instant) {
        self.life = match self.life {
            Life::Starting { ready_at } if ready_at <= now => Life::Running,
            Life::Stopping { ends_at } if ends_at <= now => Life::Ended,
            life @ (Life::Starting { .. }
            | Life::Stopping { .. }
            | Life::Running
            | Life::Failed
            | Life::Ended) => life,
        };
    }

    fn due(&self, now: Instant) -> Option<Report> {
        let waits = self.not_before.is_some_and(|moment| moment > now);
        if self.in_flight.is_some() || waits {
            return None;
        }
        self.wanted().filter(|report| Some(*report) != self.shown)
    }

    /// What the API server is to know by now. A first start is told when it is done, not before: the
    /// object says Pending already.
    fn wanted(&self) -> Option<Report> {
        let restarts = self.restarts;
        match self.life {
            Life::Starting { .. } => self.shown.map(|_| Report::Starting { restarts }),
            Life::Running => Some(Report::Ready { restarts }),
            Life::Failed => Some(Report::Failed),
            Life::Stopping { .. } => None,
            Life::Ended => Some(Report::Ended),
        }
    }

    fn wake(&self) -> Option<Instant> {
        if self.in_flight.is_some() {
            return None;
        }
        let alarm = match self.life {
            Life::Starting { ready_at } => Some(ready_at),
            Life::Stopping { ends_at } => Some(ends_at),
            Life::Running | Life::Failed | Life::Ended => None,
        };
        let unsaid = self
            .wanted()
            .is_some_and(|report| Some(report) != self.shown);
        let retry = self.not_before.filter(|_| unsaid);
        [alarm, retry].into_iter().flatten().min()
    }
}

fn grace(pod: &Pod) -> Duration {
    pod.metadata
        .deletion_grace_period_seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(DEFAULT_GRACE, Duration::from_secs)
}

/// Whether the pod says that it runs and is not ready.
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

fn restarts(pod: &Pod) -> u32 {
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
