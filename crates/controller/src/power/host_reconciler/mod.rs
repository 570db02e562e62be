//! One host's power, while this process leads: observe, decide, do the first batch, sleep until the
//! wake-up or a change.
//!
//! **Promises:**
//! - A call that hangs delays no decision: readings, checks, commands and writes run beside the
//!   loop.
//! - One write at a time, and one command at a time. A command has its permit before its intention
//!   is written, so that it is sent right after the answer to the write.
//! - A host whose write fails gives its permit back, and takes one again only once its command is
//!   written.
//! - A reporting write is decided once it has its permit: no urgent work waits for it, and it
//!   contains what changed meanwhile.
//! - The memory of a host ends with the lead.

mod actions;
mod conditions;
mod jobs;
mod observations;
mod results;
mod write_permits;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::backoff::{BackoffRange, RetryBackoff};
use dogwatch_core::condition;
use dogwatch_core::power::{
    HostName, HostOwner, HostSeniority, HostSnapshot, PowerDecision, PowerMemory, PowerSnapshot,
    decide,
};
use dogwatch_core::reported_events::ReportedEvents;
use dogwatch_core::resource_version::is_newer_version;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::watch;

use self::jobs::HostJobResult;
use self::write_permits::ReportingPermitState;
use super::bmc_concurrency::BmcCallPermit;
use super::bmc_connections::BmcConnections;
use super::host_registry::HostEntry;
use super::power_metrics::HostMetrics;
use super::services::PowerServices;
use crate::StopSignal;
use crate::decision_log::HostDecisionLog;

/// What the host watch says about a host.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HostInput {
    /// The object, as the watch shows it.
    pub(super) host: Arc<HostSnapshot>,
    /// The controller that manages this host's power.
    pub(super) owner: HostOwner,
    /// Other hosts that claim one of its devices and keep it.
    pub(super) shared_with: Vec<HostName>,
    /// Decides which of several hosts that claim one device keeps it.
    pub(super) seniority: HostSeniority,
}

/// Pauses after failed writes and reads of one host.
const HOST_RETRY_PAUSES: BackoffRange =
    BackoffRange::new(Duration::from_secs(1), Duration::from_mins(1));
/// The delay before an overdue wake-up is handled again, while jobs run.
const BUSY_RECHECK_DELAY: Duration = Duration::from_secs(1);
/// The same delay while no job runs.
const IDLE_RECHECK_DELAY: Duration = Duration::from_millis(50);

pub(super) struct HostReconciler {
    services: Arc<PowerServices>,
    input: watch::Receiver<HostInput>,
    entry: HostEntry,
    connections: BmcConnections,
    jobs: FuturesUnordered<BoxFuture<'static, HostJobResult>>,
    under_way: RunningHostJobs,
    /// The permit for the next command, and its level.
    place: Option<(usize, BmcCallPermit)>,
    reporting_permit: ReportingPermitState,
    writes: RetryBackoff,
    /// The answer to the last write, if it was refused as if the host had changed.
    conflict: Option<String>,
    /// A version of the watch that is newer than the stored host: the API server's store was
    /// restored from a backup, and the watch has not noticed.
    void_version: Option<String>,
    secrets: RetryBackoff,
    signs_of_life: RetryBackoff,
    /// Why the API server drops the fields that are written (an old CRD), if it does.
    pruned: Option<String>,
    reported_events: ReportedEvents,
    /// A wake-up beside the decision's own.
    again: Option<Duration>,
    /// Counts changes of the drivers: results of older drivers are ignored.
    epoch: u64,
    metrics: HostMetrics,
    decision_log: HostDecisionLog,
    /// In 0..1; drawn anew after each job.
    jitter: f64,
    is_finishing: bool,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a job of its own")]
struct RunningHostJobs {
    polls: BTreeSet<usize>,
    urgent: BTreeSet<usize>,
    checks: BTreeSet<usize>,
    command: bool,
    write: bool,
    /// Whether that write records a command.
    command_write: bool,
    place: Option<usize>,
    secrets: bool,
    signs_of_life: bool,
}

impl HostReconciler {
    pub(super) fn new(
        services: Arc<PowerServices>,
        input: watch::Receiver<HostInput>,
        spot: HostEntry,
    ) -> Self {
        let jitter = services.jitter.next_fraction();
        let tally = services.metrics.host_metrics();
        let decision_log = services.decision_log.open_host(&input.borrow().host.name);
        Self {
            services,
            input,
            entry: spot,
            connections: BmcConnections::default(),
            jobs: FuturesUnordered::new(),
            under_way: RunningHostJobs::default(),
            place: None,
            reporting_permit: ReportingPermitState::default(),
            writes: RetryBackoff::default(),
            conflict: None,
            void_version: None,
            secrets: RetryBackoff::default(),
            signs_of_life: RetryBackoff::default(),
            pruned: None,
            reported_events: ReportedEvents::default(),
            again: None,
            epoch: 0,
            metrics: tally,
            decision_log,
            jitter,
            is_finishing: false,
        }
    }

    pub(super) fn initial_snapshot(input: &HostInput) -> PowerSnapshot {
        PowerSnapshot {
            host: Arc::clone(&input.host),
            owner: input.owner.clone(),
            shared_with: input.shared_with.clone(),
            same_system: Vec::new(),
            access: Vec::new(),
            memory: PowerMemory::default(),
        }
    }

    /// Runs until the host is gone, or until `stop` fires and the running command and write have
    /// ended.
    pub(super) async fn run_until_stopped(mut self: Box<Self>, stop: StopSignal) {
        loop {
            self.observe_host();
            let wake = self.decide_and_start();
            if self.is_finishing && self.has_no_running_write() {
                break;
            }
            tokio::select! {
                biased;
                () = stop.wait_for_stop(), if !self.is_finishing => self.is_finishing = true,
                Some(done) = self.jobs.next() => self.handle_job_result(done),
                changed = self.input.changed() => if changed.is_err() { break },
                () = self.services.clock.sleep_until(wake) => {}
            }
        }
        let Self {
            connections: links,
            services,
            ..
        } = *self;
        Box::pin(links.close_all(&services.concurrency)).await;
    }

    /// Applies the watch's newest input. While one of our writes runs, the watch's version is not
    /// applied.
    fn observe_host(&mut self) {
        let now = self.services.clock.now();
        let input = self.input.borrow_and_update().clone();
        let mut spot = self.entry.lock_state();
        let seen = &mut spot.seen;
        seen.owner = input.owner;
        seen.shared_with = input.shared_with;
        // The answer to our own write and the watch show the same version: the first of the two is
        // used.
        let is_same = input.host.resource_version == seen.host.resource_version;
        let is_void = self.void_version.as_ref() == Some(&input.host.resource_version);
        let is_newer = is_newer_host(&input.host, &seen.host);
        if !is_void && (is_same || !self.under_way.write && is_newer) {
            seen.host = input.host;
        }
        if self
            .connections
            .follow_spec(&seen.host.levels, &self.services.concurrency)
        {
            seen.memory.forget_bmc();
            self.entry.record_system_uuid(&seen.host.name, None);
            self.epoch += 1;
            self.secrets.reset();
        }
        seen.same_system = self.entry.hosts_of_same_system(&seen.host.name);
        seen.observe_host(now);
        seen.access = self.bmc_access();
    }

    /// Decides and starts the work. Returns when to decide again.
    fn decide_and_start(&mut self) -> Duration {
        let now = self.services.clock.now();
        let id = self.services.ids.next_id();
        let decision = {
            let mut spot = self.entry.lock_state();
            let decision = decide(&spot.seen, &self.services.config, &id, self.jitter, now);
            let decision = Arc::new(decision);
            spot.decision = Some(Arc::clone(&decision));
            self.metrics.record_decision(&spot.seen, &decision, now);
            decision
        };
        self.decision_log.log_decision(&decision);
        self.entry.notify_if_changed(&self.services.config, now);
        self.start_work(&decision, now);
        self.next_wake(&decision)
    }

    fn next_wake(&mut self, decision: &PowerDecision) -> Duration {
        let now = self.services.clock.now();
        let standing = &self.entry.lock_state().seen.host.status.conditions;
        let pauses = [&self.writes, &self.secrets, &self.signs_of_life];
        let pauses = pauses.map(|pace| pace.blocked_until(now.mono));
        let wakes = [
            decision.wake.as_ref().map(|wake| wake.at),
            condition::next_condition_write(standing, &decision.report.conditions, now),
            self.again.take(),
        ];
        let wakes = wakes.into_iter().chain(pauses);
        let pause = if self.jobs.is_empty() {
            IDLE_RECHECK_DELAY
        } else {
            BUSY_RECHECK_DELAY
        };
        let soonest = now.mono + pause;
        let wake = wakes.flatten().min();
        wake.map_or(
            Duration::MAX,
            |wake| {
                if wake <= now.mono { soonest } else { wake }
            },
        )
    }

    fn has_no_running_write(&self) -> bool {
        !self.under_way.command && !self.under_way.write
    }
}

/// An object of another UID has another reconciler.
fn is_newer_host(new: &HostSnapshot, known: &HostSnapshot) -> bool {
    is_newer_version(&new.resource_version, &known.resource_version)
}
