//! Controllers of a script, and the hosts that call them for the lock.

use std::collections::BTreeSet;
use std::sync::Arc;

use dogwatch_controller::lock::service::{LockRequest, Wait};
use dogwatch_controller::run::Component;

use super::caller::{Asked, CallWish, client};
use super::process::{Process, ProcessConfig};
use super::stage::Stage;
use super::words::Words;
use crate::metal::Way;

/// What happens to a controller, or comes to it.
#[derive(Debug, Clone)]
pub enum ControllerDeed {
    /// One is started for the first time.
    Start {
        /// Its name.
        name: String,
        /// What runs in it.
        components: BTreeSet<Component>,
    },
    /// It is told to finish, and stays away.
    Stop {
        /// Which.
        name: String,
    },
    /// A host asks for the lock.
    Lock {
        /// `HOST`, or `GROUP/ID` for FleetLock.
        client: String,
        /// Whom it asks.
        at: String,
        /// How long it wants to wait.
        wait: Wait,
    },
    /// A host gives the lock up.
    Unlock {
        /// `HOST`, or `GROUP/ID` for FleetLock.
        client: String,
        /// Whom it asks.
        at: String,
    },
    /// A host goes away before it is answered.
    HangUp {
        /// Which.
        client: String,
    },
}

/// The commands of this file.
pub(super) const NAMES: [&str; 5] = ["controller", "stop", "lock", "unlock", "hang-up"];

const CONTROLLER: &str = "the controller";
const CLIENT: &str = "the host";

/// What a line says that begins with `name`, one of [`NAMES`].
pub(super) fn read(name: &str, words: &mut Words) -> Result<ControllerDeed, String> {
    Ok(match name {
        "controller" => ControllerDeed::Start {
            name: words.next(CONTROLLER)?,
            components: words
                .read("components", components)?
                .unwrap_or_else(|| BTreeSet::from([Component::Healer])),
        },
        "stop" => ControllerDeed::Stop {
            name: words.next(CONTROLLER)?,
        },
        "hang-up" => ControllerDeed::HangUp {
            client: words.next(CLIENT)?,
        },
        call => {
            let client = words.next(CLIENT)?;
            words.expect("at")?;
            let at = words.next(CONTROLLER)?;
            if call == "unlock" {
                return Ok(ControllerDeed::Unlock { client, at });
            }
            let wait = if words.is_next("nowait") {
                Wait::No
            } else if words.is_next("always") {
                Wait::Always
            } else {
                Wait::Soon
            };
            ControllerDeed::Lock { client, at, wait }
        }
    })
}

fn components(text: &str) -> Result<BTreeSet<Component>, String> {
    let one = |word: &str| match word {
        "healer" => Ok(Component::Healer),
        "lock" => Ok(Component::Lock),
        "power" => Ok(Component::Power),
        "remediation" => Ok(Component::Remediation),
        other => Err(format!("{other:?} is no component")),
    };
    text.split(',').map(one).collect()
}

impl Stage {
    /// Starts a controller that there was not before.
    fn start_controller(
        &mut self,
        name: &str,
        components: BTreeSet<Component>,
    ) -> Result<(), String> {
        if self.knows(name).is_ok() {
            return Err(format!("there is {name:?} already"));
        }
        let process = Process::start(ProcessConfig {
            server: self.server.clone(),
            clock: Arc::clone(&self.clock),
            name: name.to_owned(),
            components,
            flags: self.flags.clone(),
            way: self.metal.as_ref().map(|metal| Way::to(&metal.yard)),
            prometheus: self.prometheus.clone(),
            minds: self.minds.clone(),
        });
        self.faults.know(name, "is killed", process.killer());
        self.controllers.insert(name.to_owned(), process);
        Ok(())
    }

    pub(super) fn controller(&self, name: &str) -> Result<&Process, String> {
        let controller = self.controllers.get(name);
        controller.ok_or_else(|| format!("there is no controller {name:?}"))
    }

    /// Whether this is a machine or a controller.
    pub(super) fn knows(&self, name: &str) -> Result<(), String> {
        if self.hosts.contains_key(name) || self.controllers.contains_key(name) {
            return Ok(());
        }
        Err(format!("there is no machine {name:?}"))
    }
}

/// Does it.
pub(super) fn perform(stage: &mut Stage, deed: &ControllerDeed) -> Result<(), String> {
    match deed {
        ControllerDeed::Start { name, components } => {
            return stage.start_controller(name, components.clone());
        }
        ControllerDeed::Stop { name } => stage.controller(name)?.stop(),
        ControllerDeed::Lock {
            client: name,
            at,
            wait,
        } => {
            let client = client(name);
            let request = LockRequest {
                client,
                wait: *wait,
            };
            return call(stage, name, at, CallWish::Lock(request));
        }
        ControllerDeed::Unlock { client: name, at } => {
            return call(stage, name, at, CallWish::Unlock(client(name)));
        }
        ControllerDeed::HangUp { client } => {
            let mut all = stage.controllers.values();
            if !all.any(|controller| controller.hang_up(client)) {
                return Err(format!("{client} waits for no answer"));
            }
        }
    }
    Ok(())
}

fn call(stage: &Stage, name: &str, at: &str, wish: CallWish) -> Result<(), String> {
    let client = name.to_owned();
    let asked = Asked { client, wish };
    if !stage
        .controller(at)?
        .ask(asked, &stage.answers, &stage.minds)
    {
        let text = format!("reaches nobody at {at}");
        stage.minds.note(name, text);
    }
    Ok(())
}
