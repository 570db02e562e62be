//! One node of the demo: a simulated machine, and the real coordinator on real files.

use std::path::Path;
use std::sync::{Arc, Weak};

use dogwatch_coordinator::agent::{
    CoordinatorAgent, CoordinatorSetup, DecisionSink, NoGateChecker,
};
use dogwatch_coordinator::args::{
    Args, ListenAddress, OnDrainTimeout, PrometheusArgs, RebootCommandKind, ShellWords,
    WriterIdentity,
};
use dogwatch_coordinator::clock::ProcessClock;
use dogwatch_coordinator::health::LoopHeartbeat;
use dogwatch_coordinator::host::sentinel::{self, SentinelError};
use dogwatch_coordinator::linux_host_ops::LinuxHostOps;
use dogwatch_coordinator::log::LogFormat;
use dogwatch_core::name::{NodeName, RunId};
use dogwatch_core::reboot::{ObservedTrigger, RebootConfig, TriggerState};
use dogwatch_kubesim::clock::{ClusterClock, TokioClock};
use dogwatch_kubesim::seed::RandomStream;
use dogwatch_kubesim::world::kubelet::MachinePower;
use dogwatch_kubesim::world::{ActorTask, SimulatedCluster};
use tokio::sync::watch;

use super::files::HostFiles;
use crate::names;
use crate::scenario::DecisionLog;

pub struct DemoMachineConfig {
    pub node: NodeName,
    pub files: HostFiles,
    /// The API server's client, with this coordinator's user.
    pub client: kube::Client,
    /// The coordinator's flags.
    pub config: RebootConfig,
    pub clock: Arc<TokioClock>,
    /// Source of the run ids.
    pub runs: RandomStream,
    /// Receives the decisions.
    pub decision_log: DecisionLog,
    /// The cluster of its kubelet.
    pub cluster: Weak<SimulatedCluster>,
}

/// Starts the machine: its coordinator runs while it has power, and the reboot command causes a
/// power cycle.
pub fn start_machine(
    config: DemoMachineConfig,
    power: watch::Receiver<MachinePower>,
) -> Result<ActorTask, SentinelError> {
    let requests = sentinel::watch_sentinels(Path::new("/"), &[config.files.request_path()])?;
    Ok(ActorTask::spawn(run_machine(config, power, requests)))
}

async fn run_machine(
    mut machine: DemoMachineConfig,
    mut power: watch::Receiver<MachinePower>,
    mut requests: watch::Receiver<Vec<ObservedTrigger>>,
) {
    let mut process: Option<ActorTask> = None;
    power.mark_changed();
    loop {
        tokio::select! {
            biased;
            changed = power.changed() => {
                if changed.is_err() {
                    return;
                }
                // The processes of the old boot end before the new boot begins.
                drop(process.take());
                let now = power.borrow_and_update().clone();
                process = machine.on_power_change(&now);
            }
            changed = requests.changed() => {
                if changed.is_err() {
                    return;
                }
                let asked = requests.borrow_and_update().iter().any(is_trigger_present);
                if asked {
                    machine.power_cycle();
                }
            }
        }
    }
}

fn is_trigger_present(seen: &ObservedTrigger) -> bool {
    matches!(seen.state, TriggerState::Present { .. })
}

impl DemoMachineConfig {
    fn on_power_change(&mut self, power: &MachinePower) -> Option<ActorTask> {
        let MachinePower::On(boot) = power else {
            return None;
        };
        match self
            .files
            .apply_boot(&names::boot_id(boot))
            .map_err(|error| error.to_string())
            .and_then(|()| self.spawn_coordinator())
        {
            Ok(process) => Some(process),
            Err(why) => {
                self.decision_log.record_note(
                    self.node.as_str(),
                    format!("!! its coordinator cannot start: {why}"),
                );
                None
            }
        }
    }

    fn power_cycle(&self) {
        let cluster = self.cluster.upgrade();
        if let Some(kubelet) = cluster
            .as_ref()
            .and_then(|cluster| cluster.find_kubelet(self.node.as_str()))
        {
            self.decision_log
                .record_note(self.node.as_str(), "the machine goes down to reboot".into());
            kubelet.reboot();
        }
    }

    /// Starts the coordinator as its own main function does.
    fn spawn_coordinator(&mut self) -> Result<ActorTask, String> {
        let hands =
            LinuxHostOps::new(&self.coordinator_args()).map_err(|error| error.to_string())?;
        let clock = Arc::clone(&self.clock);
        let watcher: Arc<dyn DecisionSink> = self.decision_log.sink_for_node(self.node.as_str());
        let setup = CoordinatorSetup {
            client: self.client.clone(),
            node_client: self.client.clone(),
            node: self.node.clone(),
            namespace: dogwatch_api::DEFAULT_NAMESPACE.into(),
            config: self.config.clone(),
            run: RunId::new(format!("coordinator/{}", self.runs.next_uuid()))
                .expect("a UUID after a known prefix"),
            clock: ProcessClock::with_wall_clock(move || clock.now()),
            host_ops: Box::new(hands),
            gatekeeper: Arc::new(NoGateChecker),
            decision_sink: watcher,
            heart: LoopHeartbeat::new(),
        };
        Ok(ActorTask::spawn(async move {
            CoordinatorAgent::new(setup)
                .run(std::future::pending())
                .await;
        }))
    }

    /// The flags that a DaemonSet would set.
    fn coordinator_args(&self) -> Args {
        let command = [
            "/bin/sh".to_owned(),
            self.files.command_path().to_string_lossy().into_owned(),
        ];
        Args {
            node_name: self.node.clone(),
            namespace: dogwatch_api::DEFAULT_NAMESPACE.into(),
            identity: WriterIdentity::ServiceAccount,
            kubelet_certificate: "/".into(),
            kubelet_key: None,
            max_unavailable: self.config.max_unavailable,
            sentinel: vec![self.files.sentinel_path()],
            sentinel_command: None,
            sentinel_interval: std::time::Duration::from_mins(1),
            sentinel_timeout: std::time::Duration::from_secs(30),
            reboot_method: RebootCommandKind::Command,
            reboot_command: ShellWords(command.into()),
            reboot_request_label: None,
            boot_id_file: self.files.boot_id_path(),
            host_root: "/".into(),
            drain_timeout: self.config.drain_timeout,
            on_drain_timeout: OnDrainTimeout::Abort,
            volume_detach_timeout: self.config.volume_detach_timeout,
            reboot_timeout: self.config.reboot_timeout,
            reboot_attempts: self.config.reboot_attempts,
            settle: self.config.settle,
            prometheus: PrometheusArgs::default(),
            listen: ListenAddress::Off,
            probe_listen: ListenAddress::Off,
            log_format: LogFormat::Text,
            decision_log: None,
        }
    }
}
