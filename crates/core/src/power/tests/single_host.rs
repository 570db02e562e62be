//! One decision at a time: a host with a command, and what this process knows of both.

use std::time::Duration;

use jiff::Timestamp;

use super::world::World;
use crate::Now;
use crate::name::NodeName;
use crate::power::context::PowerContext;
use crate::power::level_digest::digest_level;
use crate::power::step::PowerStep;
use crate::power::*;

pub(crate) const ID: &str = "p1/1";
const NEXT_ID: &str = "p1/2";
/// When the command was intended; everything else happens later.
pub(crate) const INTENDED: u64 = 90;

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The wall-clock time of a monotonic moment.
pub(crate) fn wall(mono: Duration) -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap() + mono
}

pub(crate) fn refused() -> Result<CommandAnswer, BmcFault> {
    Err(BmcFault::without_effect(FaultClass::Refused, "no"))
}

pub(crate) fn unknown() -> Result<CommandAnswer, BmcFault> {
    Err(BmcFault::with_unknown_effect(FaultClass::TimedOut, "no"))
}

pub(crate) struct SingleHost {
    pub(crate) seen: PowerSnapshot,
    pub(crate) config: PowerConfig,
    pub(crate) jitter: f64,
    pub(crate) now: Duration,
}

impl SingleHost {
    pub(crate) fn new(annotations: &[(&str, &str)], online: bool) -> Self {
        Self::of_world(World::new(annotations, online, true))
    }

    pub(crate) fn with_pdu(annotations: &[(&str, &str)], online: bool) -> Self {
        let mut world = World::new(annotations, online, true);
        world.add_level();
        Self::of_world(world)
    }

    fn of_world(world: World) -> Self {
        Self {
            seen: world.seen,
            config: PowerConfig::default(),
            jitter: 0.0,
            now: secs(100),
        }
    }

    /// A host with this command to the BMC.
    pub(crate) fn with_command(online: bool, command: PowerCommand) -> Self {
        let mut single_host = Self::new(&[], online);
        single_host.intend(command, 0);
        single_host
    }

    pub(crate) fn status(&mut self) -> &mut HostStatus {
        &mut self.seen.host_mut().status
    }

    pub(crate) fn intend(&mut self, command: PowerCommand, level: usize) -> &mut PendingCommand {
        let target = digest_level(&self.seen.host.levels[level]);
        let since = wall(secs(INTENDED));
        self.seen.memory.need = Some(PowerNeed {
            since,
            seen: secs(INTENDED),
            age: Duration::ZERO,
        });
        self.status().power.command.insert(PendingCommand {
            id: ID.to_owned(),
            command,
            level,
            target,
            since,
            at: since,
            attempt: 1,
            before: 0,
            after_unknown: false,
            why: "test".to_owned(),
            end: PendingCommandEnd::Open,
        })
    }

    /// This process sent the command.
    pub(crate) fn sent(&mut self, at: u64) {
        self.seen.memory.command = Some(SentCommand {
            id: ID.to_owned(),
            written: secs(at),
            sent: Some(secs(at)),
            ended: None,
        });
    }

    /// This process sent the command, and the call ended so.
    pub(crate) fn end(&mut self, at: u64, how: Result<CommandAnswer, BmcFault>) {
        self.sent(at);
        let ours = self.seen.memory.command.as_mut().unwrap();
        ours.ended = Some((secs(at), how));
    }

    pub(crate) fn accept(&mut self, at: u64) {
        self.end(at, Ok(CommandAnswer::Accepted));
    }

    pub(crate) fn read_at(
        &mut self,
        level: usize,
        at: Duration,
        said: Result<PowerReading, FaultClass>,
    ) {
        self.seen.memory.record_reading(LevelReading {
            level,
            asked: at,
            answered: at,
            result: said.map_err(|class| BmcFault::without_effect(class, "no")),
            system_uuid: None,
        });
    }

    pub(crate) fn read(&mut self, level: usize, at: u64, said: PowerReading) {
        self.read_at(level, secs(at), Ok(said));
    }

    pub(crate) fn fail_to_read(&mut self, level: usize, at: u64, class: FaultClass) {
        self.read_at(level, secs(at), Err(class));
    }

    /// Reads the Lease of node n1, which was renewed at `renewed`.
    pub(crate) fn read_lease(&mut self, at: u64, renewed: i64) {
        let lease = KubeletLease {
            renewed: Timestamp::from_second(renewed).ok(),
            lasts: None,
        };
        let leases = KubeletLeases {
            leases: [(NodeName::new("n1").unwrap(), lease)].into(),
            unread: None,
        };
        self.seen.memory.record_kubelet_leases(secs(at), leases);
    }

    /// Reads the Leases of a host without a Node.
    pub(crate) fn read_no_lease(&mut self, at: u64, unread: Option<&str>) {
        let leases = KubeletLeases {
            unread: unread.map(str::to_owned),
            ..KubeletLeases::default()
        };
        self.seen.memory.record_kubelet_leases(secs(at), leases);
    }

    pub(crate) fn now(&self) -> Now {
        Now {
            wall: wall(self.now),
            mono: self.now,
        }
    }

    pub(crate) fn ctx(&self) -> PowerContext<'_> {
        PowerContext::new(&self.seen, &self.config, NEXT_ID, self.jitter, self.now())
    }

    pub(crate) fn decide(&self) -> PowerDecision {
        decide(&self.seen, &self.config, NEXT_ID, self.jitter, self.now())
    }

    pub(crate) fn step(&self, act: impl FnOnce(&PowerContext<'_>, &mut PowerStep)) -> PowerStep {
        let mut step = PowerStep::new(self.seen.host.status.clone());
        act(&self.ctx(), &mut step);
        step
    }

    pub(crate) fn handle_command(
        &self,
        act: impl FnOnce(&PowerContext<'_>, &mut PowerStep, &PendingCommand),
    ) -> PowerStep {
        let command = self.seen.host.status.power.command.as_ref().unwrap();
        self.step(|ctx, step| act(ctx, step, command))
    }
}

impl PowerStep {
    /// The command that this step decided on, with its level.
    pub(crate) fn next_command(&self) -> Option<(PowerCommand, usize)> {
        let command = self.status.power.command.as_ref()?;
        (command.id == NEXT_ID).then_some((command.command, command.level))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.status.power.command.is_none()
    }

    pub(crate) fn reads(&self, level: usize) -> bool {
        let is_of_level = |look: &PowerObserve| matches!(look, PowerObserve::Read { level: of, .. } if *of == level);
        self.observe.iter().any(is_of_level)
    }

    pub(crate) fn wakes_at(&self) -> Option<Duration> {
        self.wake.as_ref().map(|wake| wake.at)
    }

    pub(crate) fn because(&self) -> PowerReason {
        self.cause.reason
    }
}
