//! The kubelet's loop: handles its watch, its timers and its calls one after the other.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kube::{Client, ResourceExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::config::{KubeletConfig, KubeletHeartbeat, PodSource};
use super::machine::{MachinePods, PodReport, PodTiming};
use super::node_duties::{NodeCall, NodeDuties};
use super::objects::MachineIdentity;
use super::{MachineCommand, MachinePower, PowerReport, api_calls, objects};
use crate::seed::RandomStream;
use crate::world::pod_hub::{self, PodEvent, PodEvents};

/// A call without an answer counts as failed after this time (client-go's timeout in a kubelet).
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The annotation that the API server shows on mirror pods only.
const MIRROR_POD_ANNOTATION: &str = "kubernetes.io/config.mirror";

type PendingCall = Pin<Box<dyn Future<Output = CallOutcome> + Send>>;

enum CallOutcome {
    Pod {
        uid: String,
        taken: bool,
    },
    Node {
        call: NodeCall,
        taken: bool,
        uid: Option<String>,
    },
}

enum KubeletState {
    Off { boots_at: Option<Instant> },
    On(Box<RunningKubelet>),
}

struct RunningKubelet {
    duty: NodeDuties,
    machine: MachinePods,
    pods: PodEvents,
    calls: FuturesUnordered<PendingCall>,
}

enum KubeletInput {
    Command(Option<MachineCommand>),
    Told(CallOutcome),
    Pod(PodEvent),
    Timer,
}

/// Everything that outlives a boot.
pub struct KubeletLoop {
    client: Client,
    config: KubeletConfig,
    identity: MachineIdentity,
    stream: RandomStream,
    power: watch::Sender<MachinePower>,
}

impl KubeletLoop {
    /// A machine that is not running yet.
    pub fn new(
        client: Client,
        config: KubeletConfig,
        identity: MachineIdentity,
        stream: RandomStream,
        power: watch::Sender<MachinePower>,
    ) -> Self {
        Self {
            client,
            config,
            identity,
            stream,
            power,
        }
    }

    /// Runs until all handles are dropped.
    pub async fn run(mut self, boot: String, mut inbox: mpsc::UnboundedReceiver<MachineCommand>) {
        let mut state = self.start_boot(boot, false);
        loop {
            match next_input(&mut state, &mut inbox).await {
                KubeletInput::Command(None) => return,
                KubeletInput::Command(Some(command)) => self.execute_command(command, &mut state),
                KubeletInput::Told(told) => self.on_call_ended(told, &mut state),
                KubeletInput::Pod(event) => on_pod_event(event, &mut state),
                KubeletInput::Timer => self.boot_if_due(&mut state),
            }
            if let KubeletState::On(running) = &mut state {
                self.start_due_calls(running);
            }
        }
    }

    fn start_boot(&self, boot: String, booted: bool) -> KubeletState {
        let config = &self.config;
        let timing = PodTiming {
            starts_after: config.starts_after,
            stops_after: config.stops_after,
        };
        let mut running = RunningKubelet {
            duty: NodeDuties::new(
                boot.clone(),
                config.heartbeat.clone(),
                !config.static_pods.is_empty(),
                Instant::now(),
                config.ready_after,
                config.clock.now(),
            ),
            machine: MachinePods::new(timing, booted),
            pods: match &config.pods {
                PodSource::Own => pod_hub::watch_pods_of_node(&self.client, &config.node),
                PodSource::Shared(hub) => hub.subscribe_node(&config.node),
            },
            calls: FuturesUnordered::new(),
        };
        self.report_power(MachinePower::On(boot));
        self.start_due_calls(&mut running);
        KubeletState::On(Box::new(running))
    }

    fn report_power(&self, power: MachinePower) {
        if let KubeletHeartbeat::Quiet(reports) = &self.config.heartbeat {
            // Without controllers nobody receives the report.
            let _ = reports.send(PowerReport {
                node: self.config.node.clone(),
                power: power.clone(),
            });
        }
        self.power.send_replace(power);
    }

    fn execute_command(&mut self, command: MachineCommand, state: &mut KubeletState) {
        let boots_at = match command {
            MachineCommand::PowerOn(boot) => {
                *state = self.start_boot(boot, true);
                return;
            }
            MachineCommand::PowerOff => None,
            MachineCommand::Reboot(time) => {
                Some(Instant::now() + time.unwrap_or(self.config.reboot_takes))
            }
        };
        // Dropping the running kubelet drops the calls under way, answered or not, like a power
        // cut.
        *state = KubeletState::Off { boots_at };
        self.report_power(MachinePower::Off);
    }

    fn boot_if_due(&mut self, state: &mut KubeletState) {
        if let KubeletState::Off { boots_at: Some(at) } = state
            && *at <= Instant::now()
        {
            let boot = self.stream.next_boot_id();
            *state = self.start_boot(boot, true);
        }
    }

    fn on_call_ended(&self, told: CallOutcome, state: &mut KubeletState) {
        let KubeletState::On(running) = state else {
            return;
        };
        let now = Instant::now();
        match told {
            CallOutcome::Pod { uid, taken } => running.machine.on_report_ended(&uid, taken, now),
            CallOutcome::Node { call, taken, uid } => {
                if call == NodeCall::Register {
                    running.duty.node_uid = uid;
                }
                running
                    .duty
                    .on_call_ended(call, taken, now, self.config.clock.now());
            }
        }
    }

    /// Starts every call that is due.
    fn start_due_calls(&self, running: &mut RunningKubelet) {
        let now = Instant::now();
        if let Some(call) = running.duty.next_due_call(now) {
            running.calls.push(self.node_call(call, &running.duty));
        }
        for work in running.machine.due_reports(now) {
            running.calls.push(self.pod_call(work));
        }
    }

    fn pod_call(&self, work: PodReport) -> PendingCall {
        let client = self.client.clone();
        let wall = self.config.clock.now();
        Box::pin(async move {
            let taken = with_timeout(api_calls::report_pod(&client, &work, wall))
                .await
                .is_some();
            CallOutcome::Pod {
                uid: work.uid,
                taken,
            }
        })
    }

    fn node_call(&self, call: NodeCall, duty: &NodeDuties) -> PendingCall {
        let client = self.client.clone();
        let config = self.config.clone();
        let now = config.clock.now();
        let node_uid = duty.node_uid.clone().unwrap_or_default();
        let status = match call {
            NodeCall::Register => {
                objects::node_status_patch(&config, &self.identity, &duty.boot, false, duty.since)
            }
            NodeCall::Ready => objects::node_heartbeat(true, now, now),
            NodeCall::Check | NodeCall::Heartbeat => {
                objects::node_heartbeat(duty.is_ready(), duty.since, now)
            }
            NodeCall::Mirror | NodeCall::Renew => serde_json::Value::Null,
        };
        Box::pin(async move {
            let node = config.node.as_str();
            let outcome = with_timeout(async {
                match call {
                    NodeCall::Register => {
                        return api_calls::register_node(&client, &config, &status).await;
                    }
                    NodeCall::Mirror => {
                        api_calls::create_mirror_pods(&client, &config, &node_uid).await?;
                    }
                    NodeCall::Renew => api_calls::renew_lease(&client, &config, now).await?,
                    NodeCall::Check => {
                        api_calls::correct_node_status(&client, node, &status).await?;
                    }
                    NodeCall::Ready | NodeCall::Heartbeat => {
                        api_calls::patch_node_status(&client, node, &status).await?;
                    }
                }
                Ok(None)
            })
            .await;
            CallOutcome::Node {
                call,
                taken: outcome.is_some(),
                uid: outcome.flatten(),
            }
        })
    }
}

/// Waits for the next input; commands come first.
async fn next_input(
    state: &mut KubeletState,
    inbox: &mut mpsc::UnboundedReceiver<MachineCommand>,
) -> KubeletInput {
    match state {
        KubeletState::Off { boots_at } => {
            let boots_at = *boots_at;
            tokio::select! { biased;
                command = inbox.recv() => KubeletInput::Command(command),
                () = sleep_until_or_forever(boots_at) => KubeletInput::Timer,
            }
        }
        KubeletState::On(running) => {
            let wake = [running.duty.wake_at(), running.machine.wake_at()];
            let wake = wake.into_iter().flatten().min();
            tokio::select! { biased;
                command = inbox.recv() => KubeletInput::Command(command),
                Some(told) = running.calls.next() => KubeletInput::Told(told),
                Some(event) = running.pods.next() => KubeletInput::Pod(event),
                () = sleep_until_or_forever(wake) => KubeletInput::Timer,
            }
        }
    }
}

fn on_pod_event(event: PodEvent, state: &mut KubeletState) {
    let KubeletState::On(running) = state else {
        return;
    };
    let now = Instant::now();
    match event {
        PodEvent::Listed(pods) => running.machine.on_relist(&pods, now),
        PodEvent::Observed(pod) => running.machine.on_pod_observed(&pod, now),
        PodEvent::Deleted(pod) => {
            if let Some(uid) = pod.uid() {
                running.machine.on_pod_deleted(&uid);
            }
            if pod.annotations().contains_key(MIRROR_POD_ANNOTATION) {
                running.duty.on_mirror_deleted(now);
            }
        }
    }
}

async fn sleep_until_or_forever(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The answer, unless the call failed or timed out. Then the kubelet retries later, and does
/// nothing else about it.
async fn with_timeout<T>(call: impl Future<Output = kube::Result<T>>) -> Option<T> {
    match tokio::time::timeout(CALL_TIMEOUT, call).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a simulated kubelet's call failed");
            None
        }
        Err(_) => None,
    }
}
