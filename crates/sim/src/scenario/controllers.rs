//! Commands of a script for controllers, and lock calls of hosts.

use std::collections::BTreeSet;
use std::sync::Arc;

use dogwatch_controller::lock::service::{LockRequest, WaitMode};
use dogwatch_controller::run::ControllerComponent;

use super::controller_process::{ControllerProcess, ControllerProcessConfig};
use super::line_words::LineWords;
use super::lock_caller::{LockCall, LockCallKind, parse_client};
use super::scenario_cluster::ScenarioCluster;
use crate::bare_metal::BmcAccess;

/// Something that happens to a controller, or a call to one.
#[derive(Debug, Clone)]
pub enum ControllerCommand {
    /// Starts a new controller.
    Start {
        name: String,
        components: BTreeSet<ControllerComponent>,
    },
    /// Asks a controller to finish; it stays away.
    Stop { name: String },
    /// A host asks for the lock.
    Lock {
        /// `HOST`, or `GROUP/ID` for FleetLock.
        client: String,
        /// The controller that it calls.
        at: String,
        /// How long the host waits.
        wait: WaitMode,
    },
    /// A host releases the lock.
    Unlock {
        /// `HOST`, or `GROUP/ID` for FleetLock.
        client: String,
        /// The controller that it calls.
        at: String,
    },
    /// A host ends its call before the answer.
    HangUp { client: String },
}

/// The commands that this file parses.
pub(super) const CONTROLLER_COMMANDS: [&str; 5] =
    ["controller", "stop", "lock", "unlock", "hang-up"];

const CONTROLLER_WORD: &str = "the controller";
const CLIENT_WORD: &str = "the host";

/// Parses a line that begins with `name`, one of [`CONTROLLER_COMMANDS`].
pub(super) fn parse_controller_command(
    name: &str,
    words: &mut LineWords,
) -> Result<ControllerCommand, String> {
    Ok(match name {
        "controller" => ControllerCommand::Start {
            name: words.next_word(CONTROLLER_WORD)?,
            components: words
                .read_option("components", parse_components)?
                .unwrap_or_else(|| BTreeSet::from([ControllerComponent::Healer])),
        },
        "stop" => ControllerCommand::Stop {
            name: words.next_word(CONTROLLER_WORD)?,
        },
        "hang-up" => ControllerCommand::HangUp {
            client: words.next_word(CLIENT_WORD)?,
        },
        call => {
            let client = words.next_word(CLIENT_WORD)?;
            words.expect_word("at")?;
            let at = words.next_word(CONTROLLER_WORD)?;
            if call == "unlock" {
                return Ok(ControllerCommand::Unlock { client, at });
            }
            let wait = if words.take_if_next("nowait") {
                WaitMode::No
            } else if words.take_if_next("always") {
                WaitMode::Always
            } else {
                WaitMode::Soon
            };
            ControllerCommand::Lock { client, at, wait }
        }
    })
}

fn parse_components(text: &str) -> Result<BTreeSet<ControllerComponent>, String> {
    let one = |word: &str| match word {
        "healer" => Ok(ControllerComponent::Healer),
        "lock" => Ok(ControllerComponent::Lock),
        "power" => Ok(ControllerComponent::Power),
        "remediation" => Ok(ControllerComponent::Remediation),
        other => Err(format!("{other:?} is not a component")),
    };
    text.split(',').map(one).collect()
}

impl ScenarioCluster {
    /// Starts a controller that did not exist before.
    fn start_controller(
        &mut self,
        name: &str,
        components: BTreeSet<ControllerComponent>,
    ) -> Result<(), String> {
        if self.check_name_exists(name).is_ok() {
            return Err(format!("a controller {name:?} already exists"));
        }
        let process = ControllerProcess::start_process(ControllerProcessConfig {
            server: self.server.clone(),
            clock: Arc::clone(&self.clock),
            name: name.to_owned(),
            components,
            flags: self.flags.clone(),
            bmc_access: self
                .bare_metal_hosts
                .as_ref()
                .map(|metal| BmcAccess::to_lab(&metal.lab)),
            prometheus: self.prometheus.clone(),
            decision_log: self.decision_log.clone(),
        });
        self.faults
            .register_process(name, "is killed", process.kill_function());
        self.controllers.insert(name.to_owned(), process);
        Ok(())
    }

    pub(super) fn find_controller(&self, name: &str) -> Result<&ControllerProcess, String> {
        let controller = self.controllers.get(name);
        controller.ok_or_else(|| format!("there is no controller {name:?}"))
    }

    /// Checks that a machine or a controller has this name.
    pub(super) fn check_name_exists(&self, name: &str) -> Result<(), String> {
        if self.hosts.contains_key(name) || self.controllers.contains_key(name) {
            return Ok(());
        }
        Err(format!("there is no machine {name:?}"))
    }
}

pub(super) fn apply_controller_command(
    stage: &mut ScenarioCluster,
    deed: &ControllerCommand,
) -> Result<(), String> {
    match deed {
        ControllerCommand::Start { name, components } => {
            return stage.start_controller(name, components.clone());
        }
        ControllerCommand::Stop { name } => stage.find_controller(name)?.stop_process(),
        ControllerCommand::Lock {
            client: name,
            at,
            wait,
        } => {
            let client = parse_client(name);
            let request = LockRequest {
                client,
                wait: *wait,
            };
            return call_lock(stage, name, at, LockCallKind::Lock(request));
        }
        ControllerCommand::Unlock { client: name, at } => {
            return call_lock(stage, name, at, LockCallKind::Unlock(parse_client(name)));
        }
        ControllerCommand::HangUp { client } => {
            let mut all = stage.controllers.values();
            if !all.any(|controller| controller.hang_up(client)) {
                return Err(format!("{client} is not waiting for an answer"));
            }
        }
    }
    Ok(())
}

fn call_lock(
    stage: &ScenarioCluster,
    name: &str,
    at: &str,
    wish: LockCallKind,
) -> Result<(), String> {
    let client = name.to_owned();
    let asked = LockCall { client, kind: wish };
    if !stage
        .find_controller(at)?
        .call_lock(asked, &stage.lock_answers, &stage.decision_log)
    {
        let text = format!("reaches nobody at {at}");
        stage.decision_log.record_note(name, text);
    }
    Ok(())
}
