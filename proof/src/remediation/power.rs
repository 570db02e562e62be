//! What the power controller tells the remediator, for each stage. The proof is made by the
//! production functions: the controller's decisions are run until they prove a keyed host off.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::power::{
    self, BmcInfo, CallCost, CommandAnswer, CurrentPower, HostOwner, KubeletLeases, LevelAccess,
    LevelReading, PowerAction, PowerConfig, PowerDecision, PowerMemory, PowerObserve, PowerReading,
    PowerSnapshot,
};
use dogwatch_core::remediation::ObservedPower;

use super::objects::{SYSTEM_UUID, free_host, machine_key};
use super::process::{TICK, state_time};
use super::state::PowerStage;

const STEP: Duration = Duration::from_secs(5);
/// The power controller proves off within half a minute here.
const MOST_STEPS: u32 = 40;

#[derive(Debug)]
pub struct PowerViews {
    proved: ObservedPower,
}

impl PowerViews {
    pub fn new(wrong_bmc: bool) -> Self {
        let system_uuid = (!wrong_bmc).then(|| SYSTEM_UUID.to_owned());
        let seen = prove_keyed_host_off(system_uuid.as_ref());
        let (config, now) = (PowerConfig::default(), state_time());
        let proved = ObservedPower {
            now: power::current_power(&seen, &config, now),
            proof: power::find_off_proof(&seen, &config, now),
            bmc_answers: true,
            system_uuid,
            off_since: power::off_since(&seen, &config, now),
            because: None,
        };
        assert!(proved.proof.is_some(), "the power controller proves it off");
        Self { proved }
    }

    pub fn observed(&self, stage: PowerStage) -> ObservedPower {
        let unproved = |now| ObservedPower {
            now,
            proof: None,
            off_since: None,
            ..self.proved.clone()
        };
        match stage {
            PowerStage::On => unproved(CurrentPower::On),
            PowerStage::ReadOff => unproved(CurrentPower::Unknown),
            PowerStage::Proved => self.proved.clone(),
            PowerStage::ProvedLong => ObservedPower {
                off_since: self.proved.off_since.map(|since| since - TICK),
                ..self.proved.clone()
            },
        }
    }
}

/// Runs the power controller's decisions on a host with the key until they prove it off. Its two
/// readings are 20 s and 10 s old in every state.
fn prove_keyed_host_off(system_uuid: Option<&String>) -> PowerSnapshot {
    let config = PowerConfig::default();
    let mut seen = PowerSnapshot {
        host: Arc::new(machine_key().with_key_on(&free_host())),
        owner: HostOwner::Ours,
        shared_with: Vec::new(),
        same_system: Vec::new(),
        access: vec![LevelAccess::Ready {
            cost: CallCost::Request,
        }],
        memory: PowerMemory::default(),
    };
    let mut running = true;
    for step in 0..MOST_STEPS {
        let now = earlier(STEP * (2 * MOST_STEPS - step));
        for turn in 0..4 {
            let host = seen.host.clone();
            seen.memory.observe_host(&host, now);
            let id = format!("p/{step}-{turn}");
            let decision = power::decide(&seen, &config, &id, 0.5, now);
            perform_decision(&mut seen, &mut running, decision, system_uuid, now);
        }
        if power::find_off_proof(&seen, &config, now).is_some() {
            break;
        }
    }
    seen.memory.readings.clear();
    for age in [20, 10].map(Duration::from_secs) {
        record_reading(
            &mut seen.memory,
            PowerReading::Off,
            system_uuid,
            earlier(age),
        );
    }
    seen
}

fn earlier(by: Duration) -> Now {
    let now = state_time();
    let ago = jiff::SignedDuration::try_from(by).expect("a few minutes");
    Now {
        wall: now.wall - ago,
        mono: now.mono - by,
    }
}

/// A reading names the machine, as Redfish's do.
fn record_reading(
    memory: &mut PowerMemory,
    reading: PowerReading,
    system_uuid: Option<&String>,
    at: Now,
) {
    memory.record_reading(LevelReading {
        level: 0,
        asked: at.mono,
        answered: at.mono,
        result: Ok(reading),
        system_uuid: system_uuid.cloned(),
    });
}

fn perform_decision(
    seen: &mut PowerSnapshot,
    running: &mut bool,
    decision: PowerDecision,
    system_uuid: Option<&String>,
    now: Now,
) {
    for look in decision.observe {
        match look {
            PowerObserve::Read { .. } => {
                let reading = if *running {
                    PowerReading::On
                } else {
                    PowerReading::Off
                };
                record_reading(&mut seen.memory, reading, system_uuid, now);
            }
            PowerObserve::Check { level } => {
                let found = BmcInfo {
                    system_uuid: system_uuid.cloned(),
                    ..BmcInfo::default()
                };
                seen.memory
                    .record_check(level, Ok(found), now.mono, now.mono);
            }
            PowerObserve::KubeletLeases => {
                let none = KubeletLeases::default();
                seen.memory.record_kubelet_leases(now.mono, none);
            }
        }
    }
    for action in decision.actions {
        match action {
            PowerAction::WriteStatus(write) => {
                let id = write.status.power.command.as_ref();
                let id = id.map(|command| command.id.clone());
                let known = seen.memory.command.as_ref().map(|known| known.id.clone());
                if let Some(id) = id.filter(|id| known.as_ref() != Some(id)) {
                    seen.memory.record_write_done(id, now.mono);
                }
                seen.host_mut().status = write.status;
            }
            PowerAction::Send(command) => {
                *running = false;
                let accepted = Ok(CommandAnswer::Accepted);
                seen.memory.record_command_sent(now.mono);
                seen.memory
                    .record_command_end(&command.id, accepted, now.mono);
            }
            PowerAction::RemoveAnnotations(_) => {}
        }
    }
}
