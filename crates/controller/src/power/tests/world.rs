//! Hosts, their Secrets and their machines in memory, and processes that control them. Every call,
//! to the API server or to a BMC, can be the last one of the process that makes it.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use dogwatch_bmc::{Bmc, Credentials, Password};
use dogwatch_core::Now;
use dogwatch_core::condition::{ConditionWrite, CurrentCondition};
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::leader::LeaderTerm;
use dogwatch_core::power::{
    BmcAddress, BmcFault, BmcInfo, CallCost, CommandAnswer, FaultClass, HostName, HostOwner,
    HostSeniority, HostSnapshot, HostStatus, KubeletLeases, OwnerRules, PowerCommand, PowerConfig,
    PowerDevice, PowerLevel, PowerReading, PowerReason, StatusWrite,
};
use dogwatch_runtime::clock::ProcessClock;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use super::super::bmc_connections::{BmcSecretState, ConnectDriver};
use super::super::host_changes::HostChanges;
use super::super::host_reconciler::HostInput;
use super::super::host_registry::HostRegistry;
use super::super::host_store::{HostStore, HostStoreError};
use super::super::power_controller::{PowerController, PowerDeps, PowerSettings};
use crate::decision_log::ControllerDecisionLog;
use crate::health_registry::HealthRegistry;
use crate::leader::LeadershipHandle;
use crate::metrics::MetricsRegistry;
use crate::{StopSignal, StopTrigger};

/// Where a call is cut: the process dies before the call has an effect, or after it and before its
/// answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Before,
    After,
}

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub(super) struct Machine {
    pub(super) is_on: bool,
    /// Each change of the power: when, and whether the machine is on since.
    pub(super) log: Vec<(Duration, bool)>,
    pub(super) hangs: bool,
    pub(super) ignores_soft: bool,
    pub(super) refuses_password: bool,
    pub(super) commands: Vec<PowerCommand>,
    pub(super) reads: usize,
    pub(super) system_uuid: Option<String>,
    soft_until: Option<Duration>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) hosts: BTreeMap<HostName, HostSnapshot>,
    pub(super) machines: BTreeMap<String, Machine>,
    pub(super) secrets: BTreeMap<String, (u32, BmcSecretState)>,
    pub(super) events: Vec<(HostName, DecisionEvent)>,
    pub(super) calls: Vec<String>,
    pub(super) cut: Option<(usize, Cut)>,
    /// Writes succeed, and this is the answer.
    pub(super) pruned: bool,
    /// No write of these hosts is ever answered.
    pub(super) stuck: BTreeSet<HostName>,
    /// Each write of the status of these hosts is refused.
    pub(super) refused: BTreeSet<HostName>,
    /// Each write of the status of these hosts is refused as if the host had changed.
    pub(super) conflicting: BTreeSet<HostName>,
    /// The live baremetal-operator, which manages all hosts.
    pub(super) operator: Option<String>,
    /// The newest version of any host.
    pub(super) version: u64,
    /// No watch shows anything more.
    pub(super) is_watch_silent: bool,
    watchers: Vec<mpsc::UnboundedSender<HostChanges>>,
}

#[derive(Clone)]
pub(super) struct World {
    state: Arc<Mutex<State>>,
    died: Arc<Notify>,
    pub(super) clock: ProcessClock,
    pub(super) config: PowerConfig,
    pub(super) max_concurrent: usize,
    pub(super) cost: CallCost,
}

/// A process. Dropping it kills it.
pub(super) struct Process {
    task: JoinHandle<()>,
    pub(super) terms: watch::Sender<Option<LeaderTerm>>,
    pub(super) stopper: StopTrigger,
    pub(super) board: HostRegistry,
    #[expect(dead_code, reason = "until a test looks")]
    pub(super) metrics: MetricsRegistry,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Process {
    /// Waits until it has ended by itself.
    pub(super) async fn ended(mut self) {
        (&mut self.task).await.unwrap();
    }
}

impl World {
    pub(super) fn new() -> Self {
        let (epoch, origin) = ("2026-01-01T00:00:00Z", tokio::time::Instant::now());
        let epoch: Timestamp = epoch.parse().unwrap();
        let wall = move || epoch + SignedDuration::try_from(origin.elapsed()).unwrap();
        let world = Self {
            state: Arc::default(),
            died: Arc::default(),
            clock: ProcessClock::with_wall_clock(wall),
            config: PowerConfig::default(),
            max_concurrent: 100,
            cost: CallCost::Request,
        };
        world.give_secret("bmc", secret("sekret16"));
        world
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Adds a host that is on and externally provisioned, with a BMC of its own.
    pub(super) fn add(&self, name: &str) -> HostName {
        self.add_with_address(name, &format!("redfish+http://{name}"))
    }

    /// The same in a chassis, whose hosts share a BMC.
    pub(super) fn add_to_chassis(&self, name: &str) -> HostName {
        let address = format!("redfish+http://chassis/redfish/v1/Systems/{name}");
        self.add_with_address(name, &address)
    }

    fn add_with_address(&self, name: &str, address: &str) -> HostName {
        let name = HostName::new("metal", name);
        let device = PowerDevice {
            address: BmcAddress::parse(address),
            credentials: "bmc".into(),
            verify: true,
        };
        let host = HostSnapshot {
            name: name.clone(),
            uid: format!("uid-{}", name.name),
            resource_version: String::new(),
            deleting: false,
            annotations: BTreeMap::new(),
            online: true,
            externally_provisioned: None,
            disable_power_off: false,
            created: None,
            consumer: None,
            levels: vec![PowerLevel {
                devices: vec![device],
            }],
            status: HostStatus::default(),
        };
        let machine = Machine {
            is_on: true,
            ..Machine::default()
        };
        self.lock().machines.insert(name.name.clone(), machine);
        self.lock().put(host);
        name
    }

    pub(super) fn host(&self, name: &HostName) -> HostSnapshot {
        self.lock().hosts[name].clone()
    }

    pub(super) fn machine(&self, name: &HostName) -> Machine {
        self.lock().machines[&name.name].clone()
    }

    pub(super) fn change(&self, name: &HostName, change: impl FnOnce(&mut HostSnapshot)) {
        let mut state = self.lock();
        let mut host = state.hosts[name].clone();
        change(&mut host);
        state.put(host);
    }

    pub(super) fn change_machine(&self, name: &HostName, change: impl FnOnce(&mut Machine)) {
        change(self.lock().machines.get_mut(&name.name).unwrap());
    }

    pub(super) fn annotate(&self, name: &HostName, key: &str, value: &str) {
        self.change(name, |host| {
            host.annotations.insert(key.into(), value.into());
        });
    }

    pub(super) fn give_secret(&self, name: &str, secret: BmcSecretState) {
        let mut state = self.lock();
        let version = state
            .secrets
            .get(name)
            .map_or(1, |(version, _)| version + 1);
        state.secrets.insert(name.into(), (version, secret));
    }

    /// Starts a process that leads from now on.
    pub(super) fn process(&self, name: &str) -> Process {
        let (terms, leadership) = LeadershipHandle::new(self.clock.clone());
        let far = Now {
            wall: Timestamp::MAX,
            mono: Duration::from_hours(100_000),
        };
        terms.send_replace(Some(LeaderTerm {
            number: 1,
            until: far,
        }));
        let (stopper, stop) = StopSignal::new();
        let (metrics, board) = (MetricsRegistry::default(), HostRegistry::default());
        let means = PowerDeps {
            clock: self.clock.clone(),
            leadership,
            process: name.into(),
            decision_log: ControllerDecisionLog::default(),
            metrics: metrics.clone(),
            board: HealthRegistry::new(metrics.clone()),
            stop,
        };
        let settings = PowerSettings {
            config: self.config,
            max_concurrent: NonZeroUsize::new(self.max_concurrent).unwrap(),
            owners: OwnerRules::default(),
            connect: self.connect(),
            board: board.clone(),
            has_workload_clusters: false,
        };
        let (sender, news) = mpsc::unbounded_channel();
        let mut state = self.lock();
        let hosts = state.hosts.values().map(|host| state.seen(host));
        let list = HostChanges {
            hosts: hosts.collect(),
            is_in_sync: true,
            ..HostChanges::default()
        };
        sender.send(list).unwrap();
        state.watchers.push(sender);
        drop(state);
        let news = futures::stream::unfold(news, async |mut news| {
            let next = news.recv().await?;
            Some((next, news))
        });
        let power = PowerController::new(means, settings, Arc::new(self.clone()));
        Process {
            task: tokio::spawn(power.run_until_stopped(news.boxed())),
            terms,
            stopper,
            board,
            metrics,
        }
    }

    /// A lead that lasts this many seconds from now.
    pub(super) fn term(&self, seconds: u64) -> LeaderTerm {
        let (now, lasts) = (self.clock.now(), Duration::from_secs(seconds));
        LeaderTerm {
            number: 1,
            until: Now {
                wall: now.wall_after(lasts),
                mono: now.mono + lasts,
            },
        }
    }

    fn connect(&self) -> ConnectDriver {
        let world = self.clone();
        Arc::new(move |address: &BmcAddress, _: &Credentials, _| {
            let driver = Driver {
                world: world.clone(),
                machine: machine_of_address(address).to_owned(),
            };
            Ok(Arc::new(driver) as Arc<dyn Bmc>)
        })
    }

    /// Waits until the process has made the call at which it dies.
    pub(super) async fn death(&self) {
        self.died.notified().await;
    }

    /// Waits until `is_so`, for at most an hour of virtual time.
    pub(super) async fn until(&self, what: &str, is_so: impl Fn(&World) -> bool) {
        let deadline = self.clock.now().mono + Duration::from_hours(1);
        while !is_so(self) {
            let now = self.clock.now().mono;
            assert!(now < deadline, "never: {what}: {:#?}", self.lock().calls);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Makes one call, cut where the test wants it. One millisecond each way.
    async fn call<T>(&self, what: String, effect: impl FnOnce(&mut State, Duration) -> T) -> T {
        let cut = {
            let mut state = self.lock();
            let number = state.calls.len();
            state.calls.push(what);
            state
                .cut
                .filter(|(at, _)| *at == number)
                .map(|(_, cut)| cut)
        };
        if cut == Some(Cut::Before) {
            return self.die().await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        let now = self.clock.now().mono;
        let answer = effect(&mut self.lock(), now);
        if cut == Some(Cut::After) {
            return self.die().await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        answer
    }

    async fn die<T>(&self) -> T {
        self.died.notify_one();
        std::future::pending().await
    }
}

impl State {
    /// Stores a new version of a host, which the watch shows.
    fn put(&mut self, mut host: HostSnapshot) -> HostSnapshot {
        self.version += 1;
        host.resource_version = self.version.to_string();
        self.hosts.insert(host.name.clone(), host.clone());
        let news = HostChanges {
            hosts: vec![self.seen(&host)],
            is_in_sync: true,
            ..HostChanges::default()
        };
        let is_silent = self.is_watch_silent;
        self.watchers
            .retain(|watcher| is_silent || watcher.send(news.clone()).is_ok());
        host
    }

    fn seen(&self, host: &HostSnapshot) -> (HostName, Option<HostInput>) {
        let leader = self.operator.clone();
        let input = HostInput {
            host: Arc::new(host.clone()),
            owner: leader.map_or(HostOwner::Ours, |leader| HostOwner::Metal3 { leader }),
            shared_with: Vec::new(),
            seniority: HostSeniority::of_host(host, &OwnerRules::default()),
        };
        (host.name.clone(), Some(input))
    }

    fn change(
        &mut self,
        seen: &HostSnapshot,
        change: impl FnOnce(&mut HostSnapshot),
    ) -> Result<HostSnapshot, HostStoreError> {
        let standing = self.hosts.get(&seen.name);
        let standing = standing.filter(|host| {
            (&host.uid, &host.resource_version) == (&seen.uid, &seen.resource_version)
        });
        let mut host = standing.cloned().ok_or_else(conflict)?;
        change(&mut host);
        if self.pruned {
            return Err(HostStoreError::Pruned("drops status.power".into()));
        }
        Ok(self.put(host))
    }
}

impl HostStore for World {
    fn write_status<'a>(
        &'a self,
        host: &'a HostSnapshot,
        write: &'a StatusWrite,
        conditions: &'a [ConditionWrite],
        now: Now,
    ) -> BoxFuture<'a, Result<HostSnapshot, HostStoreError>> {
        if self.lock().stuck.contains(&host.name) {
            return futures::future::pending().boxed();
        }
        let what = format!("{} writes {}", host.name.name, write.why);
        let effect = move |state: &mut State, _| {
            if state.conflicting.contains(&host.name) {
                return Err(conflict());
            }
            if state.refused.contains(&host.name) {
                return Err(HostStoreError::Failed("a webhook refuses it".into()));
            }
            state.change(host, |host| {
                host.status = write.status.clone();
                write_conditions(&mut host.status.conditions, conditions, now);
            })
        };
        self.call(what, effect).boxed()
    }

    fn remove_annotations<'a>(
        &'a self,
        host: &'a HostSnapshot,
        names: &'a [String],
    ) -> BoxFuture<'a, Result<HostSnapshot, HostStoreError>> {
        let what = format!("{} removes {names:?}", host.name.name);
        let effect = move |state: &mut State, _| {
            state.change(host, |host| {
                host.annotations.retain(|name, _| !names.contains(name));
            })
        };
        self.call(what, effect).boxed()
    }

    fn read_host<'a>(
        &'a self,
        name: &'a HostName,
    ) -> BoxFuture<'a, Result<Option<HostSnapshot>, String>> {
        let effect = move |state: &mut State, _| Ok(state.hosts.get(name).cloned());
        self.call(format!("{} is read", name.name), effect).boxed()
    }

    fn read_secret<'a>(&'a self, _: &'a str, name: &'a str) -> BoxFuture<'a, BmcSecretState> {
        let effect = move |state: &mut State, _| match state.secrets.get(name) {
            Some((version, BmcSecretState::Found { credentials, .. })) => BmcSecretState::Found {
                version: version.to_string(),
                credentials: credentials.clone(),
            },
            Some((_, other)) => other.clone(),
            None => BmcSecretState::Missing {
                reason: PowerReason::SecretNotFound,
                message: "make it".into(),
            },
        };
        self.call(format!("Secret {name}"), effect).boxed()
    }

    fn read_signs_of_life<'a>(
        &'a self,
        _: &'a Arc<HostSnapshot>,
    ) -> BoxFuture<'a, Result<KubeletLeases, String>> {
        async { Ok(KubeletLeases::default()) }.boxed()
    }

    fn report_event<'a>(
        &'a self,
        host: &'a HostSnapshot,
        event: &'a DecisionEvent,
        _: Now,
    ) -> BoxFuture<'a, Result<(), String>> {
        let effect = move |state: &mut State, _| {
            state.events.push((host.name.clone(), event.clone()));
            Ok(())
        };
        let what = format!("{} says {}", host.name.name, event.reason);
        self.call(what, effect).boxed()
    }
}

fn conflict() -> HostStoreError {
    HostStoreError::Changed("409 Conflict".into())
}

fn write_conditions(standing: &mut Vec<CurrentCondition>, writes: &[ConditionWrite], now: Now) {
    for write in writes {
        let observation = &write.observation;
        standing.retain(|there| there.kind != observation.kind);
        standing.push(CurrentCondition {
            kind: observation.kind.into(),
            status: observation.status.as_str().into(),
            reason: observation.reason.clone(),
            message: observation.message.clone(),
            last_transition: Some(write.last_transition),
            last_heartbeat: Some(now.wall),
        });
    }
}

fn machine_of_address(address: &BmcAddress) -> &str {
    match address {
        BmcAddress::Redfish {
            system: Some(system),
            ..
        } => system.rsplit('/').next().unwrap(),
        BmcAddress::Redfish { .. } | BmcAddress::Ipmi { .. } | BmcAddress::Fence { .. } => {
            address.host()
        }
    }
}

/// A driver that calls the machine directly.
struct Driver {
    world: World,
    machine: String,
}

impl Driver {
    async fn ask<T>(
        &self,
        what: &str,
        within: Duration,
        effect: impl FnOnce(&mut Machine, Duration) -> T,
    ) -> Result<T, BmcFault> {
        let name = self.machine.clone();
        let answer = self.world.call(format!("{name} {what}"), |state, now| {
            let machine = state.machines.get_mut(&name).unwrap();
            machine.pass(now);
            if machine.hangs {
                return None;
            }
            if machine.refuses_password {
                let refused = BmcFault::without_effect(FaultClass::WrongCredentials, "401");
                return Some(Err(refused));
            }
            Some(Ok(effect(machine, now)))
        });
        if let Some(answer) = answer.await {
            return answer;
        }
        tokio::time::sleep(within).await;
        Err(BmcFault::with_unknown_effect(
            FaultClass::TimedOut,
            "no answer",
        ))
    }
}

impl Machine {
    fn pass(&mut self, now: Duration) {
        if let Some(until) = self.soft_until.filter(|until| *until <= now) {
            self.soft_until = None;
            self.turn(false, until);
        }
    }

    fn turn(&mut self, is_on: bool, now: Duration) {
        if self.is_on != is_on {
            self.is_on = is_on;
            self.log.push((now, is_on));
        }
    }

    /// How often the machine lost its power.
    pub(super) fn offs(&self) -> usize {
        self.log.iter().filter(|(_, is_on)| !is_on).count()
    }

    fn take(&mut self, command: PowerCommand, now: Duration) -> CommandAnswer {
        self.commands.push(command);
        let was_on = self.is_on;
        match command {
            PowerCommand::On => self.turn(true, now),
            PowerCommand::Off => self.turn(false, now),
            PowerCommand::SoftOff if self.ignores_soft || !self.is_on => {}
            PowerCommand::SoftOff => self.soft_until = Some(now + Duration::from_secs(3)),
        }
        if was_on == (command == PowerCommand::On) {
            return CommandAnswer::AlreadyThere;
        }
        CommandAnswer::Accepted
    }
}

impl Bmc for Driver {
    fn read_power(&self, within: Duration) -> BoxFuture<'_, Result<PowerReading, BmcFault>> {
        let effect = |machine: &mut Machine, _| {
            machine.reads += 1;
            if machine.is_on {
                PowerReading::On
            } else {
                PowerReading::Off
            }
        };
        self.ask("is read", within, effect).boxed()
    }

    fn send_command(
        &self,
        command: PowerCommand,
        within: Duration,
    ) -> BoxFuture<'_, Result<CommandAnswer, BmcFault>> {
        let effect = move |machine: &mut Machine, now| machine.take(command, now);
        let ask = async move { self.ask(command.as_str(), within, effect).await };
        ask.boxed()
    }

    fn describe_device(&self, within: Duration) -> BoxFuture<'_, Result<BmcInfo, BmcFault>> {
        let ask = async move {
            let about = |machine: &mut Machine, _| BmcInfo {
                system_uuid: machine.system_uuid.clone(),
                ..BmcInfo::default()
            };
            self.ask("is checked", within, about).await
        };
        ask.boxed()
    }

    fn call_cost(&self) -> CallCost {
        self.world.cost
    }

    fn close_session(&self, _: Duration) -> BoxFuture<'_, ()> {
        let world = self.world.clone();
        let what = format!("{} is closed", self.machine);
        async move { world.call(what, |_, _| ()).await }.boxed()
    }
}

pub(super) fn secret(password: &str) -> BmcSecretState {
    BmcSecretState::Found {
        version: String::new(),
        credentials: Credentials {
            username: "admin".into(),
            password: Password::new(password),
            ca: None,
        },
    }
}
