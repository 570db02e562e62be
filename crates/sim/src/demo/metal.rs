//! The hosts' part of the play: one is rebooted through its annotation, one is held off by a key, and one
//! fails ([`super::failed`]).

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::power::{Config, Host, REBOOT};
use jiff::Timestamp;

use super::cluster::{DemoConfig, DemoError};
use super::failed::{FAILED, Failed};
use crate::api::ApiServer;
use crate::bmc::Machine;
use crate::chronicle::{Change, Entry, Kind, Observer, Violation, host_of};
use crate::clock::TokioClock;
use crate::metal::{Controller, Yard};
use crate::seed::Seed;

/// The host that is rebooted.
pub(super) const REBOOTED: &str = "h1";
/// The host that is held off, and by what.
pub(super) const HELD: &str = "h2";
const KEY: &str = "reboot.metal3.io/disk-swap";
const HARD: &str = r#"{"mode":"hard"}"#;
/// The key stays for so long once the host is off.
const HELD_FOR: f64 = 8.0;
/// How long one call to a BMC may take. No BMC hangs here: the rest is for a machine that is busy with something
/// else.
const CALL: Duration = Duration::from_secs(30);

/// The hosts, and who keeps them.
pub(super) struct Metal {
    pub yard: Yard,
    /// The one that fails.
    pub failed: Failed,
    /// It is back.
    pub is_recovered: bool,
    /// When the key went.
    pub freed: Option<Timestamp>,
    proved: Option<tokio::time::Instant>,
    held_for: Duration,
    _controller: Controller,
}

fn times(config: &DemoConfig) -> Config {
    Config {
        poll: config.time(4.0),
        check: config.time(60.0),
        confirm: config.time(1.0),
        settle: config.time(2.0),
        soft: config.time(20.0),
        call: CALL,
    }
}

impl Metal {
    /// Two hosts that run, no nodes of the cluster; and two that carry nodes.
    pub fn start(
        config: &DemoConfig,
        server: &ApiServer,
        clock: &Arc<TokioClock>,
    ) -> Result<Self, DemoError> {
        let mut yard = Yard::open(server, clock, Seed(config.seed), times(config))?;
        for name in [REBOOTED, HELD] {
            yard.add(name, None, |machine, bmc| {
                machine.boots_after = config.time(2.5);
                machine.shuts_down_after = Some(config.time(1.5));
                bmc.acts_after = config.time(0.2);
            })?;
        }
        let failed = Failed::start(config, server, clock, &mut yard)?;
        let guards = dogwatch_core::remedy::Config::default();
        Ok(Self {
            _controller: Controller::remediating(&yard, "controller-1", guards),
            yard,
            failed,
            is_recovered: false,
            freed: None,
            proved: None,
            held_for: config.time(HELD_FOR),
        })
    }

    /// Asks for both; what was done.
    pub fn trigger(&self) -> Result<Vec<String>, DemoError> {
        self.yard.annotate(REBOOTED, REBOOT, Some(""))?;
        self.yard.annotate(HELD, KEY, Some(HARD))?;
        let confirm = self.yard.config.confirm.as_secs_f64();
        Ok(vec![
            format!("somebody annotates host {REBOOTED}, which is no node, with {REBOOT}"),
            format!("and host {HELD} with {KEY}, hard: until that goes, {HELD} stays off"),
            format!("(off is read twice, {confirm:.2} s apart here; 5 s on a cluster)"),
        ])
    }

    /// Goes on where it can; what was done.
    pub fn play(&mut self, observer: &Observer) -> Result<Vec<String>, DemoError> {
        let mut done = self.failed.play(&self.yard, observer)?;
        self.is_recovered = self.failed.is_over(observer);
        done.extend(self.free(observer)?);
        Ok(done)
    }

    /// Takes the key away when the host was off for long enough; what was done.
    fn free(&mut self, observer: &Observer) -> Result<Option<String>, DemoError> {
        let is_proved =
            host(observer, HELD).is_some_and(|host| host.status.power.off_confirmed_at.is_some());
        if self.freed.is_some() || !is_proved {
            return Ok(None);
        }
        let since = *self.proved.get_or_insert_with(tokio::time::Instant::now);
        if since.elapsed() < self.held_for {
            return Ok(None);
        }
        self.freed = Some(self.yard.now());
        self.yard.annotate(HELD, KEY, None)?;
        Ok(Some(format!(
            "the disk is swapped: {KEY} is taken off {HELD}"
        )))
    }

    /// What of it is not over yet.
    pub fn unfinished(&self, observer: &Observer) -> Vec<&'static str> {
        let is_back = |name: &str| {
            let host = host(observer, name);
            let is_served = host.is_some_and(|host| {
                let mut requests = host.annotations.keys();
                !requests.any(|name| name.starts_with(REBOOT))
                    && host.status.powered_on == Some(true)
                    && host.status.last_powered_on > host.status.pending_reboot_since
                    && host.status.pending_reboot_since.is_some()
            });
            is_served && self.machine(name).state().living().is_some()
        };
        let hosts = [REBOOTED, HELD].into_iter();
        let failed = (!self.is_recovered).then_some(FAILED);
        hosts.filter(|name| !is_back(name)).chain(failed).collect()
    }

    pub fn machine(&self, name: &str) -> Machine {
        self.yard.machine(name).expect("it was added at the start")
    }

    pub fn news(&mut self) -> Vec<Entry> {
        self.yard.news()
    }

    pub fn judge(&self, change: &Change) -> Vec<Violation> {
        self.yard.judge(change)
    }
}

fn host(observer: &Observer, name: &str) -> Option<Host> {
    observer.get(Kind::Host, name).and_then(host_of)
}
