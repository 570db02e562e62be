//! The power component: every replica watches hosts, and the leader controls their power.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use dogwatch_core::leader::LeaderTerm;
use dogwatch_core::power::{HostName, OwnerRules, PowerConfig};
use dogwatch_k8s::host::HostClient;
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::jitter::JitterSource;
use futures::stream::{BoxStream, StreamExt as _};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{info, warn};

use super::bmc_concurrency::BmcConcurrency;
use super::bmc_connections::ConnectDriver;
use super::host_changes::{self, HostChanges};
use super::host_reconciler::HostInput;
use super::host_reconcilers::HostReconcilers;
use super::host_registry::HostRegistry;
use super::host_store::HostStore;
use super::power_metrics::PowerMetrics;
use super::services::{CommandIds, PowerServices};
use super::write_limiter::WriteLimiter;
use crate::decision_log::ControllerDecisionLog;
use crate::health_registry::HealthRegistry;
use crate::leader::LeadershipHandle;
use crate::metrics::MetricsRegistry;
use crate::{ControllerContext, StopSignal};

/// The part's name in `/readyz`.
const READINESS_PART: &str = "hosts";

#[derive(Clone)]
pub struct PowerSettings {
    pub config: PowerConfig,
    /// `--bmc-max-concurrent`: the number of polls and checks at a time.
    pub max_concurrent: NonZeroUsize,
    /// Which hosts Dogwatch manages, and which metal3.
    pub owners: OwnerRules,
    pub connect: ConnectDriver,
    /// Publishes the state of the hosts to other parts.
    pub board: HostRegistry,
    /// `--workload-clusters`: Machines of Cluster API are Nodes of other clusters.
    pub has_workload_clusters: bool,
}

/// Controls the power of all hosts while this process leads, and watches them all the time.
pub async fn run_power_controller(context: ControllerContext, settings: PowerSettings) {
    allow_many_connections();
    let hosts = HostClient::new(context.client.clone());
    let hosts = Arc::new(hosts.with_workload_clusters(settings.has_workload_clusters));
    let news = host_changes::watch_hosts(&context, settings.owners.clone());
    let means = PowerDeps {
        clock: context.clock,
        leadership: context.leadership,
        process: context.process,
        decision_log: context.decision_log,
        metrics: context.metrics,
        board: context.health,
        stop: context.stop,
    };
    PowerController::new(means, settings, hosts)
        .run_until_stopped(news)
        .await;
}

/// Raises the limit of open files to the machine's maximum: 10,000 Redfish hosts keep 10,000
/// connections.
fn allow_many_connections() {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, all) {
        warn!(%error, "failed to raise the limit of open files");
    }
}

pub(super) struct PowerDeps {
    pub(super) clock: ProcessClock,
    pub(super) leadership: LeadershipHandle,
    pub(super) process: String,
    pub(super) decision_log: ControllerDecisionLog,
    pub(super) metrics: MetricsRegistry,
    pub(super) board: HealthRegistry,
    pub(super) stop: StopSignal,
}

pub(super) struct PowerController {
    means: PowerDeps,
    services: Arc<PowerServices>,
    board: HostRegistry,
    hosts: BTreeMap<HostName, HostInput>,
    keepers: Option<(LeaderTerm, HostReconcilers)>,
    is_in_sync: bool,
    /// Leases with the name of metal3's leader Lease that Dogwatch does not trust, as last logged.
    not_believed: BTreeMap<String, String>,
}

impl PowerController {
    pub(super) fn new(
        means: PowerDeps,
        settings: PowerSettings,
        hosts: Arc<dyn HostStore>,
    ) -> Self {
        means
            .board
            .set_readiness(READINESS_PART, Err("not in sync yet".to_owned()));
        let services = PowerServices {
            hosts,
            clock: means.clock.clone(),
            leadership: means.leadership.clone(),
            config: settings.config,
            concurrency: BmcConcurrency::new(settings.max_concurrent),
            write_limiter: WriteLimiter::new(),
            connect: settings.connect,
            metrics: PowerMetrics::new(means.metrics.clone()),
            jitter: JitterSource::of_process(&means.process),
            ids: CommandIds::of(&means.process),
            decision_log: means.decision_log.clone(),
        };
        Self {
            means,
            services: Arc::new(services),
            board: settings.board,
            hosts: BTreeMap::new(),
            keepers: None,
            is_in_sync: false,
            not_believed: BTreeMap::new(),
        }
    }

    pub(super) async fn run_until_stopped(mut self, mut news: BoxStream<'static, HostChanges>) {
        let stop = self.means.stop.clone();
        let leadership = self.means.leadership.clone();
        let heart = self.means.board.heartbeat_of("power control");
        loop {
            heart.mark_sleeping(None);
            tokio::select! {
                biased;
                () = stop.wait_for_stop() => break,
                lead = next_lead_change(&leadership, &mut self.keepers) => self.handle_lead_change(&lead),
                Some(news) = news.next() => {
                    heart.mark_working("telling each host's keeper");
                    self.apply_changes(news);
                }
            }
        }
        if let Some((_, keepers)) = self.keepers.take() {
            keepers.wait_until_finished().await;
        }
    }

    /// Starts the reconcilers of all hosts when this process leads, and drops them when it no
    /// longer does.
    fn handle_lead_change(&mut self, lead: &LeadChange) {
        self.keepers = match lead {
            LeadChange::Lost => None,
            LeadChange::Won(term) => {
                let (services, board) = (self.services.clone(), self.board.clone());
                services.decision_log.log_term(services.config.confirm);
                let mut keepers = HostReconcilers::new(services, board, self.means.stop.clone());
                self.hosts
                    .values()
                    .for_each(|input| keepers.update_host(input));
                Some((*term, keepers))
            }
        };
        self.publish_sync();
    }

    /// Marks the registry as in sync once all hosts have their reconcilers.
    fn publish_sync(&self) {
        if self.is_in_sync && self.keepers.is_some() {
            self.board.mark_in_sync();
        }
    }

    fn apply_changes(&mut self, news: HostChanges) {
        for (name, input) in news.hosts {
            self.apply_host_change(name, input);
        }
        if let Some(why) = &news.trouble {
            warn!(why, "failed to read all objects of power control; retrying");
        }
        self.warn_untrusted_leases(news.not_believed);
        if news.is_in_sync && !self.is_in_sync {
            info!(hosts = self.hosts.len(), "all hosts have been read");
        }
        self.is_in_sync |= news.is_in_sync;
        self.publish_sync();
        self.means
            .board
            .set_readiness(READINESS_PART, readiness_of(self.is_in_sync, news.trouble));
    }

    fn warn_untrusted_leases(&mut self, leases: BTreeMap<String, String>) {
        for (namespace, holder) in &leases {
            if self.not_believed.get(namespace) != Some(holder) {
                warn!(
                    namespace,
                    holder,
                    "ignores a Lease baremetal-operator in this namespace: if metal3's controller runs there, add the namespace to --metal3-namespaces; if not, find out who created the Lease"
                );
            }
        }
        self.services.metrics.set_untrusted_leaders(leases.len());
        self.not_believed = leases;
    }

    fn apply_host_change(&mut self, name: HostName, input: Option<HostInput>) {
        let keepers = self.keepers.as_mut().map(|(_, keepers)| keepers);
        let Some(input) = input else {
            if let Some(keepers) = keepers {
                keepers.remove_host(&name);
            }
            self.hosts.remove(&name);
            return;
        };
        if let Some(keepers) = keepers {
            keepers.update_host(&input);
        }
        self.hosts.insert(name, input);
    }
}

fn readiness_of(is_in_sync: bool, trouble: Option<String>) -> Result<(), String> {
    if is_in_sync {
        return Ok(());
    }
    let why = trouble.map_or(String::new(), |why| format!(" ({why})"));
    Err(format!("not in sync yet{why}"))
}

enum LeadChange {
    Won(LeaderTerm),
    Lost,
}

async fn next_lead_change(
    leadership: &LeadershipHandle,
    keepers: &mut Option<(LeaderTerm, HostReconcilers)>,
) -> LeadChange {
    let Some((term, keepers)) = keepers else {
        return LeadChange::Won(leadership.wait_until_leading().await);
    };
    tokio::select! {
        biased;
        () = leadership.wait_until_lost(*term) => LeadChange::Lost,
        never = keepers.report_ended_tasks() => match never {},
    }
}
