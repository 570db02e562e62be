//! The hosts of the demo: one is rebooted through its annotation, one is held off by a key, and one
//! fails ([`super::failed_node`]).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_controller::run::ControllerComponent;
use dogwatch_coordinator::agent::NoGateChecker;
use dogwatch_core::power::{HostSnapshot, PowerConfig, REBOOT_ANNOTATION};
use dogwatch_kubesim::api::ApiServer;
use dogwatch_kubesim::clock::TokioClock;
use dogwatch_kubesim::machine::SimMachine;
use dogwatch_kubesim::seed::SimulationSeed;
use jiff::Timestamp;

use super::cluster::{DemoConfig, DemoError};
use super::failed_node::{FAILED_NODE, FailedNodeDemo, SECOND_NODE};
use crate::bare_metal::{BareMetalLab, BmcAccess, ControllerReplica, SimController};
use crate::observer::{
    ClusterObserver, ObservedChange, ObservedKind, ObserverEntry, PromiseViolation, parse_host,
};
use crate::plan::LivePlanner;

pub(super) const REBOOTED_HOST: &str = "h1";
pub(super) const HELD_HOST: &str = "h2";
const HOLD_KEY: &str = "reboot.metal3.io/disk-swap";
const HARD_MODE: &str = r#"{"mode":"hard"}"#;
/// How long the key stays once the host is off, in seconds.
const HOLD_SECONDS: f64 = 3.0;
/// The time limit of one BMC call. No BMC hangs here; the limit allows for a busy machine.
const BMC_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The hosts and their controller.
pub(super) struct DemoHosts {
    pub lab: BareMetalLab,
    /// The failing node and its host.
    pub failed_node: FailedNodeDemo,
    pub is_recovered: bool,
    /// When the key was removed.
    pub key_removed_at: Option<Timestamp>,
    proved_since: Option<tokio::time::Instant>,
    held_for: Duration,
    _controller: SimController,
}

fn power_config(config: &DemoConfig) -> PowerConfig {
    PowerConfig {
        poll: config.scaled_time(4.0),
        check: config.scaled_time(60.0),
        confirm: config.scaled_time(1.0),
        settle: config.scaled_time(2.0),
        soft: config.scaled_time(20.0),
        call: BMC_CALL_TIMEOUT,
    }
}

/// Starts a replica with every component that acts on objects.
fn start_controller(
    config: &DemoConfig,
    server: &ApiServer,
    clock: &Arc<TokioClock>,
    yard: &BareMetalLab,
) -> SimController {
    SimController::start_replica(ControllerReplica {
        server,
        clock,
        process: "controller-1",
        components: BTreeSet::from([
            ControllerComponent::Healer,
            ControllerComponent::Power,
            ControllerComponent::Remediation,
        ]),
        flags: config.coordinator_config(),
        bmc_access: Some(BmcAccess::to_lab(yard)),
        gatekeeper: Arc::new(NoGateChecker),
        planner: Some(Arc::new(LivePlanner)),
    })
}

impl DemoHosts {
    /// Starts two hosts that are on and carry no nodes, and two that carry nodes.
    pub fn start_hosts(
        config: &DemoConfig,
        server: &ApiServer,
        clock: &Arc<TokioClock>,
    ) -> Result<Self, DemoError> {
        let mut yard = BareMetalLab::open_lab(
            server,
            clock,
            SimulationSeed(config.seed),
            power_config(config),
        )?;
        for name in [REBOOTED_HOST, HELD_HOST] {
            yard.add_host(name, None, |machine, bmc| {
                machine.boots_after = config.scaled_time(2.5);
                machine.shuts_down_after = Some(config.scaled_time(1.5));
                bmc.acts_after = config.scaled_time(0.2);
            })?;
        }
        let failed = FailedNodeDemo::start_nodes(config, server, clock, &mut yard)?;
        Ok(Self {
            _controller: start_controller(config, server, clock, &yard),
            lab: yard,
            failed_node: failed,
            is_recovered: false,
            key_removed_at: None,
            proved_since: None,
            held_for: config.scaled_time(HOLD_SECONDS),
        })
    }

    /// Requests the reboot and the hold; returns what was done.
    pub fn trigger_hosts(&self) -> Result<Vec<String>, DemoError> {
        self.lab
            .annotate_host(REBOOTED_HOST, REBOOT_ANNOTATION, Some(""))?;
        self.lab
            .annotate_host(HELD_HOST, HOLD_KEY, Some(HARD_MODE))?;
        let confirm = self.lab.config.confirm.as_secs_f64();
        Ok(vec![
            format!(
                "somebody annotates host {REBOOTED_HOST}, which is not a node, with {REBOOT_ANNOTATION}"
            ),
            format!(
                "and host {HELD_HOST} with {HOLD_KEY}, hard: {HELD_HOST} stays off until this key is removed"
            ),
            format!(
                "(Dogwatch reads \"off\" twice, {confirm:.2} s apart here and 5 s apart on a cluster)"
            ),
        ])
    }

    /// Advances the hosts if possible; returns what was done.
    pub fn advance_hosts(&mut self, observer: &ClusterObserver) -> Result<Vec<String>, DemoError> {
        let mut done = self.failed_node.advance_failure(&self.lab, observer)?;
        self.is_recovered = self.failed_node.is_recovered(observer);
        done.extend(self.remove_hold_key(observer)?);
        Ok(done)
    }

    /// Removes the key once the host was off for long enough; returns what was done.
    fn remove_hold_key(&mut self, observer: &ClusterObserver) -> Result<Option<String>, DemoError> {
        let is_proved = observed_host(observer, HELD_HOST)
            .is_some_and(|host| host.status.power.off_confirmed_at.is_some());
        if self.key_removed_at.is_some() || !is_proved {
            return Ok(None);
        }
        let since = *self
            .proved_since
            .get_or_insert_with(tokio::time::Instant::now);
        if since.elapsed() < self.held_for {
            return Ok(None);
        }
        self.key_removed_at = Some(self.lab.now());
        self.lab.annotate_host(HELD_HOST, HOLD_KEY, None)?;
        Ok(Some(format!(
            "the disk is swapped: {HOLD_KEY} is removed from {HELD_HOST}"
        )))
    }

    /// Returns what the hosts have not completed yet.
    pub fn unfinished_hosts(&self, observer: &ClusterObserver) -> Vec<&'static str> {
        let is_back = |name: &str| {
            let host = observed_host(observer, name);
            let is_served = host.is_some_and(|host| {
                let mut requests = host.annotations.keys();
                !requests.any(|name| name.starts_with(REBOOT_ANNOTATION))
                    && host.status.powered_on == Some(true)
                    && host.status.last_powered_on > host.status.pending_reboot_since
                    && host.status.pending_reboot_since.is_some()
            });
            is_served
                && self
                    .machine_of_host(name)
                    .power_state()
                    .running_boot()
                    .is_some()
        };
        let hosts = [REBOOTED_HOST, HELD_HOST].into_iter();
        let failed = (!self.is_recovered).then_some(FAILED_NODE);
        hosts.filter(|name| !is_back(name)).chain(failed).collect()
    }

    /// Whether the controller has read every BMC, and reported it.
    pub fn are_checked(observer: &ClusterObserver) -> bool {
        let is_checked = |name: &str| {
            let host = observed_host(observer, name);
            let conditions = host.map(|host| host.status.conditions).unwrap_or_default();
            let ready = conditions
                .iter()
                .find(|condition| condition.kind == "PowerControlReady");
            ready.is_some_and(|condition| condition.status == "True")
        };
        [REBOOTED_HOST, HELD_HOST, FAILED_NODE, SECOND_NODE]
            .into_iter()
            .all(is_checked)
    }

    /// Whether both requests are served.
    pub fn are_requests_served(&self, observer: &ClusterObserver) -> bool {
        let unfinished = self.unfinished_hosts(observer);
        unfinished.iter().all(|name| *name == FAILED_NODE)
    }

    pub fn machine_of_host(&self, name: &str) -> SimMachine {
        self.lab
            .machine_of_host(name)
            .expect("it was added at the start")
    }

    pub fn take_entries(&mut self) -> Vec<ObserverEntry> {
        self.lab.take_entries()
    }

    pub fn judge_change(&self, change: &ObservedChange) -> Vec<PromiseViolation> {
        self.lab.judge_change(change)
    }
}

fn observed_host(observer: &ClusterObserver, name: &str) -> Option<HostSnapshot> {
    observer
        .get_object(ObservedKind::Host, name)
        .and_then(parse_host)
}
