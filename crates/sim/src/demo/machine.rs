//! One node of the demo: a simulated machine, and the real coordinator on real files.

use std::path::Path;
use std::sync::{Arc, Weak};

use dogwatch_coordinator::agent::{Agent, CannotAsk, Setup, Watcher};
use dogwatch_coordinator::args::{
    Args, Identity, Listen, OnDrainTimeout, PrometheusArgs, RebootMethod, Words,
};
use dogwatch_coordinator::clock::Clock as ProcessClock;
use dogwatch_coordinator::health::Heart;
use dogwatch_coordinator::host::sentinel::{self, SentinelError};
use dogwatch_coordinator::log::Format;
use dogwatch_coordinator::node_hands::NodeHands;
use dogwatch_core::name::{NodeName, RunId};
use dogwatch_core::reboot::{Config, TriggerSeen, TriggerState};
use tokio::sync::watch;

use super::files::HostFiles;
use crate::clock::{Clock, TokioClock};
use crate::scenario::Minds;
use crate::seed::Stream;
use crate::world::kubelet::Power;
use crate::world::{Actor, Cluster};

/// What a machine is made from.
pub struct MachineConfig {
    /// Its node.
    pub node: NodeName,
    /// Its files.
    pub files: HostFiles,
    /// The API server, as this node's coordinator.
    pub client: kube::Client,
    /// What the coordinator is told.
    pub config: Config,
    /// The time.
    pub clock: Arc<TokioClock>,
    /// Where run ids come from.
    pub runs: Stream,
    /// Who hears of decisions.
    pub minds: Minds,
    /// Its kubelet's cluster.
    pub cluster: Weak<Cluster>,
}

/// Starts what a machine does: its coordinator while it has power, a power cycle when the reboot
/// command asks for one.
pub fn start(config: MachineConfig, power: watch::Receiver<Power>) -> Result<Actor, SentinelError> {
    let requests = sentinel::watch(Path::new("/"), &[config.files.request()])?;
    Ok(Actor::spawn(live(config, power, requests)))
}

async fn live(
    mut machine: MachineConfig,
    mut power: watch::Receiver<Power>,
    mut requests: watch::Receiver<Vec<TriggerSeen>>,
) {
    let mut process: Option<Actor> = None;
    power.mark_changed();
    loop {
        tokio::select! {
            biased;
            changed = power.changed() => {
                if changed.is_err() {
                    return;
                }
                // What the old boot ran is gone before the new one begins.
                drop(process.take());
                let now = power.borrow_and_update().clone();
                process = machine.powered(&now);
            }
            changed = requests.changed() => {
                if changed.is_err() {
                    return;
                }
                let asked = requests.borrow_and_update().iter().any(is_there);
                if asked {
                    machine.cycle();
                }
            }
        }
    }
}

fn is_there(seen: &TriggerSeen) -> bool {
    matches!(seen.state, TriggerState::Present { .. })
}

impl MachineConfig {
    fn powered(&mut self, power: &Power) -> Option<Actor> {
        let Power::On(boot) = power else {
            return None;
        };
        match self
            .files
            .boot(boot)
            .map_err(|error| error.to_string())
            .and_then(|()| self.process())
        {
            Ok(process) => Some(process),
            Err(why) => {
                self.minds.note(
                    self.node.as_str(),
                    format!("!! its coordinator cannot start: {why}"),
                );
                None
            }
        }
    }

    fn cycle(&self) {
        let cluster = self.cluster.upgrade();
        if let Some(kubelet) = cluster
            .as_ref()
            .and_then(|cluster| cluster.kubelet(self.node.as_str()))
        {
            self.minds
                .note(self.node.as_str(), "the machine goes down to reboot".into());
            kubelet.reboot();
        }
    }

    /// The coordinator's process, as its own main function makes it.
    fn process(&mut self) -> Result<Actor, String> {
        let hands = NodeHands::new(&self.args()).map_err(|error| error.to_string())?;
        let clock = Arc::clone(&self.clock);
        let watcher: Arc<dyn Watcher> = self.minds.of(self.node.as_str());
        let setup = Setup {
            client: self.client.clone(),
            node_client: self.client.clone(),
            node: self.node.clone(),
            namespace: dogwatch_api::DEFAULT_NAMESPACE.into(),
            config: self.config.clone(),
            run: RunId::new(format!("coordinator/{}", self.runs.uuid()))
                .expect("a UUID after a known prefix"),
            clock: ProcessClock::with_wall(move || clock.now()),
            hands: Box::new(hands),
            gatekeeper: Arc::new(CannotAsk),
            watcher,
            heart: Heart::new(),
        };
        Ok(Actor::spawn(async move {
            Agent::new(setup).run(std::future::pending()).await;
        }))
    }

    /// The flags that a DaemonSet would give.
    fn args(&self) -> Args {
        let command = [
            "/bin/sh".to_owned(),
            self.files.command().to_string_lossy().into_owned(),
        ];
        Args {
            node_name: self.node.clone(),
            namespace: dogwatch_api::DEFAULT_NAMESPACE.into(),
            identity: Identity::ServiceAccount,
            kubelet_certificate: "/".into(),
            kubelet_key: None,
            max_unavailable: self.config.max_unavailable,
            sentinel: vec![self.files.sentinel()],
            sentinel_command: None,
            sentinel_interval: std::time::Duration::from_mins(1),
            sentinel_timeout: std::time::Duration::from_secs(30),
            reboot_method: RebootMethod::Command,
            reboot_command: Words(command.into()),
            boot_id_file: self.files.boot_id(),
            host_root: "/".into(),
            drain_timeout: self.config.drain_timeout,
            on_drain_timeout: OnDrainTimeout::Abort,
            volume_detach_timeout: self.config.volume_detach_timeout,
            reboot_timeout: self.config.reboot_timeout,
            reboot_attempts: self.config.reboot_attempts,
            settle: self.config.settle,
            prometheus: PrometheusArgs::default(),
            listen: Listen::Off,
            probe_listen: Listen::Off,
            log_format: Format::Text,
        }
    }
}
