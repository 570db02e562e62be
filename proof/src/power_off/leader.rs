//! The process that leads: the host as it sees it, and what it remembers. It applies facts and
//! answers as the live shell does (`crates/controller/src/power/host_reconciler`).

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::power::{
    BmcFault, BmcInfo, CallCost, FaultClass, HostOwner, HostSnapshot, KubeletLeases, LevelAccess,
    LevelReading, PowerConfig, PowerMemory, PowerReading, PowerSnapshot,
};
use jiff::Timestamp;

/// The unit of time. Every wait in [`decision_config`] is a whole number of them.
pub const TICK: Duration = Duration::from_secs(5);
/// How long a BMC may run a command of unknown end.
pub const SETTLE_TICKS: u8 = 2;
/// The id that a decision gives a new command. It gets a number when it is written.
pub const NEW_ID: &str = "new";

/// Short waits, so that few ticks are to be told apart.
pub fn decision_config() -> PowerConfig {
    PowerConfig {
        poll: TICK * 2,
        // No later check than the first: it proves nothing more in this world.
        check: Duration::from_hours(1),
        confirm: TICK,
        settle: TICK * u32::from(SETTLE_TICKS),
        soft: TICK * 2,
        call: Duration::from_secs(2),
    }
}

/// The one moment of every state: a tick makes all that is remembered older instead.
pub fn state_time() -> Now {
    Now {
        wall: state_wall(),
        mono: Duration::from_hours(100),
    }
}

pub fn state_wall() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time of this century")
}

#[derive(Debug, Clone, PartialEq)]
pub struct LeaderView {
    pub host: Arc<HostSnapshot>,
    pub memory: PowerMemory,
}

impl LeaderView {
    pub fn new(host: Arc<HostSnapshot>) -> Self {
        let memory = PowerMemory::default();
        Self { host, memory }
    }

    pub fn snapshot(&self) -> PowerSnapshot {
        PowerSnapshot {
            host: self.host.clone(),
            owner: HostOwner::Ours,
            shared_with: Vec::new(),
            same_system: Vec::new(),
            access: vec![LevelAccess::Ready {
                cost: CallCost::Request,
            }],
            memory: self.memory.clone(),
        }
    }

    pub fn record_reading(&mut self, result: Result<PowerReading, BmcFault>, age: Duration) {
        let at = state_time().mono - age;
        self.memory.record_reading(LevelReading {
            level: 0,
            asked: at,
            answered: at,
            result,
            system_uuid: None,
        });
    }

    pub fn record_check(&mut self) {
        let found = Ok(BmcInfo::default());
        let now = state_time().mono;
        self.memory.record_check(0, found, now, now);
    }

    /// The host carries no Node.
    pub fn record_kubelet_leases(&mut self) {
        let none = KubeletLeases::default();
        self.memory.record_kubelet_leases(state_time().mono, none);
    }

    /// The stored host is read after a write that was not confirmed.
    pub fn apply_fresh_read(&mut self, stored: &Arc<HostSnapshot>) {
        let standing = stored.status.power.command.as_ref();
        let standing = standing.map(|standing| standing.id.clone());
        if let Some(id) = standing.filter(|id| self.memory.unanswered_write.as_ref() == Some(id)) {
            self.memory.record_write_done(id, state_time().mono);
        }
        self.host = stored.clone();
    }
}

pub fn timed_out() -> BmcFault {
    BmcFault::with_unknown_effect(FaultClass::TimedOut, "no answer")
}

pub fn refused() -> BmcFault {
    BmcFault::without_effect(FaultClass::Refused, "refused")
}
