//! What the power controller counts. The families are listed in `docs/controller.md`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::condition::Status;
use dogwatch_core::power::{Decision, Fault, Host, HostStatus, Seen, State};

use super::lanes::Errand;
use crate::metrics::{Family, Metrics, Shape};

static HOSTS: Family = Family {
    name: "dogwatch_power_hosts",
    help: "Hosts that this process keeps, by what is known of their power.",
    shape: Shape::Gauge,
};
static DECISIONS: Family = Family {
    name: "dogwatch_power_decisions",
    help: "Hosts that this process keeps, by the reason of the last decision.",
    shape: Shape::Gauge,
};
static NOT_READY: Family = Family {
    name: "dogwatch_power_control_not_ready",
    help: "Hosts whose power could not be controlled now, by reason. Alert on it: it is found out before it is needed.",
    shape: Shape::Gauge,
};
static PENDING: Family = Family {
    name: "dogwatch_power_off_pending",
    help: "Hosts that must be off and are not proved so yet.",
    shape: Shape::Gauge,
};
static OLDEST: Family = Family {
    name: "dogwatch_power_off_pending_oldest_timestamp_seconds",
    help: "Unix time since when the one waits that waits longest to be proved off; 0 when none does.",
    shape: Shape::Gauge,
};
static CONFIRMED: Family = Family {
    name: "dogwatch_power_off_confirm_seconds",
    help: "From when a host had to be off until it was proved so.",
    shape: Shape::Seconds(&[
        1.0, 5.0, 6.0, 8.0, 10.0, 15.0, 30.0, 60.0, 180.0, 300.0, 900.0,
    ]),
};
static CALLS: Family = Family {
    name: "dogwatch_power_bmc_calls_total",
    help: "Calls to the BMCs of one level, by what they were and by how they ended: answered, or the reason.",
    shape: Shape::Counter,
};
static QUEUE: Family = Family {
    name: "dogwatch_power_queue_seconds",
    help: "How long calls waited for their place: urgent ones (commands, and readings that a power-off waits for) and routine ones.",
    shape: Shape::Seconds(&[0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0]),
};
static NOT_BELIEVED: Family = Family {
    name: "dogwatch_power_leaders_not_believed",
    help: "Leases called baremetal-operator outside of --metal3-namespaces: they are not obeyed.",
    shape: Shape::Gauge,
};
static WRITES: Family = Family {
    name: "dogwatch_power_host_writes_total",
    help: "Writes of a host's status or annotations that were answered.",
    shape: Shape::Counter,
};

/// Counts of all hosts. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    metrics: Metrics,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    gauges: BTreeMap<(&'static str, String), usize>,
    /// Since when each host waits that has to be off: unix seconds, and how many began then.
    pending: BTreeMap<i64, usize>,
}

/// One host's part of the counts; taken out when it is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    tally: Tally,
    summary: Option<Summary>,
    /// Since when it has to be off.
    since: Option<(Duration, i64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Summary {
    state: &'static str,
    because: &'static str,
    not_ready: Option<String>,
    pending: Option<i64>,
}

impl Tally {
    pub(super) fn new(metrics: Metrics) -> Self {
        let tally = Self {
            metrics,
            counts: Arc::default(),
        };
        tally.metrics.set(&PENDING, &[], 0.0);
        tally.metrics.set(&OLDEST, &[], 0.0);
        tally.metrics.set(&NOT_BELIEVED, &[], 0.0);
        tally
    }

    /// A host's place.
    pub(super) fn entry(&self) -> Entry {
        Entry {
            tally: self.clone(),
            summary: None,
            since: None,
        }
    }

    /// A call to a level ended.
    pub(super) fn called(&self, what: &str, fault: Option<&Fault>) {
        let end = fault.map_or("answered", |fault| fault.class.reason());
        self.metrics.add(&CALLS, &[("call", what), ("end", end)], 1);
    }

    /// So many Leases look like those of metal3's leaders, and are not believed.
    pub(super) fn not_believed(&self, leases: usize) {
        self.metrics.set(&NOT_BELIEVED, &[], float(leases));
    }

    /// A call has its place.
    pub(super) fn waited(&self, errand: Errand, waited: Duration) {
        let lane = match errand {
            Errand::Urgent => "urgent",
            Errand::Routine => "routine",
        };
        self.metrics.observe(&QUEUE, &[("lane", lane)], waited);
    }

    fn shift(&self, before: Option<&Summary>, after: Option<&Summary>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for (summary, is_in) in [(before, false), (after, true)] {
            let Some(summary) = summary else { continue };
            self.gauge(&mut counts, &HOSTS, "state", summary.state, is_in);
            self.gauge(&mut counts, &DECISIONS, "reason", summary.because, is_in);
            if let Some(reason) = &summary.not_ready {
                self.gauge(&mut counts, &NOT_READY, "reason", reason, is_in);
            }
            if let Some(since) = summary.pending {
                move_one(&mut counts.pending, since, is_in);
            }
        }
        let pending: usize = counts.pending.values().sum();
        let oldest = counts.pending.keys().next().copied().unwrap_or_default();
        self.metrics.set(&PENDING, &[], float(pending));
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
        self.metrics.set(&OLDEST, &[], oldest as f64);
    }

    fn gauge(
        &self,
        counts: &mut Counts,
        family: &'static Family,
        label: &'static str,
        value: &str,
        is_in: bool,
    ) {
        let count = move_one(&mut counts.gauges, (family.name, value.to_owned()), is_in);
        self.metrics.set(family, &[(label, value)], float(count));
    }
}

impl Entry {
    /// A decision was made.
    pub(super) fn count(&mut self, seen: &Seen, decision: &Decision, now: Now) {
        let must_be_off = is_off_pending(&seen.host.status);
        self.since = match (must_be_off, self.since) {
            (false, _) => None,
            (true, Some(since)) => Some(since),
            (true, None) => Some((now.mono, now.wall.as_second())),
        };
        let ready = decision.report.conditions.iter();
        let mut ready = ready.filter(|condition| condition.kind == "PowerControlReady");
        let not_ready = ready.next().filter(|ready| ready.status == Status::False);
        let summary = Summary {
            state: state(&seen.host.status),
            because: decision.because.reason,
            not_ready: not_ready.map(|ready| ready.reason.clone()),
            pending: self.since.map(|(_, since)| since),
        };
        if self.summary.as_ref() != Some(&summary) {
            self.tally.shift(self.summary.as_ref(), Some(&summary));
            self.summary = Some(summary);
        }
    }

    /// A write was answered.
    pub(super) fn wrote(&self, before: &Host, after: &Host, now: Duration) {
        self.tally.metrics.add(&WRITES, &[], 1);
        let confirmed = |host: &Host| host.status.power.off_confirmed_at.is_some();
        if let Some((since, _)) = self
            .since
            .filter(|_| !confirmed(before) && confirmed(after))
        {
            let took = now.saturating_sub(since);
            self.tally.metrics.observe(&CONFIRMED, &[], took);
        }
    }
}

impl Drop for Entry {
    /// Who keeps nothing counts nothing.
    fn drop(&mut self) {
        self.tally.shift(self.summary.as_ref(), None);
    }
}

/// Whether an off is under way that is not proved: a reboot is pending, or the newest command is one.
fn is_off_pending(status: &HostStatus) -> bool {
    let command = status.power.command.as_ref();
    let is_commanded = command.is_some_and(|command| command.command.is_off());
    let is_rebooting = status.pending_reboot_since > status.last_powered_on;
    status.power.off_confirmed_at.is_none() && (is_commanded || is_rebooting)
}

fn state(status: &HostStatus) -> &'static str {
    status.power.state.unwrap_or(State::Unknown).as_str()
}

/// One more, or one less, of this key; how many there are now.
fn move_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K, is_in: bool) -> usize {
    if is_in {
        let count = counts.entry(key).or_default();
        *count += 1;
        return *count;
    }
    let Some(count) = counts.get_mut(&key) else {
        return 0;
    };
    *count = count.saturating_sub(1);
    let left = *count;
    if left == 0 {
        counts.remove(&key);
    }
    left
}

fn float(count: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
    let count = count as f64;
    count
}
