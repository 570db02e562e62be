//! The kubelet's loop: what its watch, its timer and its calls say, one after the other.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use dogwatch_core::name::BootId;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kube::{Client, ResourceExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::config::{Heartbeat, KubeletConfig, PodSource};
use super::duty::{Duty, NodeCall};
use super::machine::{Machine, Timing, Work};
use super::objects::MachineIdentity;
use super::{Command, Power, PowerReport, calls, objects};
use crate::seed::Stream;
use crate::world::pod_hub::{self, PodEvent, PodEvents};

/// After this a call that was not answered counts as failed (client-go's timeout in a kubelet).
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// What the API server shows on a mirror pod, and on no other.
const MIRROR: &str = "kubernetes.io/config.mirror";

type Call = Pin<Box<dyn Future<Output = Told> + Send>>;

/// A call that ended.
enum Told {
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

/// The machine as it is now.
enum State {
    Off { boots_at: Option<Instant> },
    On(Box<Running>),
}

struct Running {
    duty: Duty,
    machine: Machine,
    pods: PodEvents,
    calls: FuturesUnordered<Call>,
}

/// What reached the loop.
enum Input {
    Command(Option<Command>),
    Told(Told),
    Pod(PodEvent),
    Timer,
}

/// Everything that outlives a boot.
pub struct Shell {
    client: Client,
    config: KubeletConfig,
    identity: MachineIdentity,
    stream: Stream,
    power: watch::Sender<Power>,
}

impl Shell {
    /// A machine that does not run yet.
    pub fn new(
        client: Client,
        config: KubeletConfig,
        identity: MachineIdentity,
        stream: Stream,
        power: watch::Sender<Power>,
    ) -> Self {
        Self {
            client,
            config,
            identity,
            stream,
            power,
        }
    }

    /// Runs until nobody can command it any more.
    pub async fn run(mut self, boot: BootId, mut inbox: mpsc::UnboundedReceiver<Command>) {
        let mut state = self.start(boot, false);
        loop {
            match next(&mut state, &mut inbox).await {
                Input::Command(None) => return,
                Input::Command(Some(command)) => self.obey(command, &mut state),
                Input::Told(told) => self.told(told, &mut state),
                Input::Pod(event) => pod(event, &mut state),
                Input::Timer => self.boot_if_due(&mut state),
            }
            if let State::On(running) = &mut state {
                self.act(running);
            }
        }
    }

    fn start(&self, boot: BootId, booted: bool) -> State {
        let config = &self.config;
        let timing = Timing {
            starts_after: config.starts_after,
            stops_after: config.stops_after,
        };
        let mut running = Running {
            duty: Duty::new(
                boot.clone(),
                config.heartbeat.clone(),
                !config.static_pods.is_empty(),
                Instant::now(),
                config.ready_after,
                config.clock.now(),
            ),
            machine: Machine::new(timing, booted),
            pods: match &config.pods {
                PodSource::Own => pod_hub::of_node(&self.client, &config.node),
                PodSource::Shared(hub) => hub.of_node(&config.node),
            },
            calls: FuturesUnordered::new(),
        };
        self.report(Power::On(boot));
        self.act(&mut running);
        State::On(Box::new(running))
    }

    fn report(&self, power: Power) {
        if let Heartbeat::Quiet(reports) = &self.config.heartbeat {
            // Without controllers nobody wants to know.
            let _ = reports.send(PowerReport {
                node: self.config.node.clone(),
                power: power.clone(),
            });
        }
        self.power.send_replace(power);
    }

    fn obey(&mut self, command: Command, state: &mut State) {
        let boots_at = match command {
            Command::PowerOn(boot) => {
                *state = self.start(boot, true);
                return;
            }
            Command::PowerOff => None,
            Command::Reboot(time) => {
                Some(Instant::now() + time.unwrap_or(self.config.reboot_takes))
            }
        };
        // Dropping what ran drops the calls under way, answered or not: the plug is pulled.
        *state = State::Off { boots_at };
        self.report(Power::Off);
    }

    fn boot_if_due(&mut self, state: &mut State) {
        if let State::Off { boots_at: Some(at) } = state
            && *at <= Instant::now()
        {
            let boot = self.stream.boot_id();
            *state = self.start(boot, true);
        }
    }

    fn told(&self, told: Told, state: &mut State) {
        let State::On(running) = state else { return };
        let now = Instant::now();
        match told {
            Told::Pod { uid, taken } => running.machine.told(&uid, taken, now),
            Told::Node { call, taken, uid } => {
                if call == NodeCall::Register {
                    running.duty.node_uid = uid;
                }
                running
                    .duty
                    .ended(call, taken, now, self.config.clock.now());
            }
        }
    }

    /// Starts every call that is due.
    fn act(&self, running: &mut Running) {
        let now = Instant::now();
        if let Some(call) = running.duty.due(now) {
            running.calls.push(self.node_call(call, &running.duty));
        }
        for work in running.machine.due(now) {
            running.calls.push(self.pod_call(work));
        }
    }

    fn pod_call(&self, work: Work) -> Call {
        let client = self.client.clone();
        let wall = self.config.clock.now();
        Box::pin(async move {
            let taken = in_time(calls::tell(&client, &work, wall)).await.is_some();
            Told::Pod {
                uid: work.uid,
                taken,
            }
        })
    }

    fn node_call(&self, call: NodeCall, duty: &Duty) -> Call {
        let client = self.client.clone();
        let config = self.config.clone();
        let now = config.clock.now();
        let node_uid = duty.node_uid.clone().unwrap_or_default();
        let status = match call {
            NodeCall::Register => {
                objects::node_status(&config, &self.identity, &duty.boot, false, duty.since)
            }
            NodeCall::Ready => objects::node_heartbeat(true, now, now),
            NodeCall::Check | NodeCall::Heartbeat => {
                objects::node_heartbeat(duty.is_ready(), duty.since, now)
            }
            NodeCall::Mirror | NodeCall::Renew => serde_json::Value::Null,
        };
        Box::pin(async move {
            let node = config.node.as_str();
            let outcome = in_time(async {
                match call {
                    NodeCall::Register => return calls::register(&client, &config, &status).await,
                    NodeCall::Mirror => calls::mirror(&client, &config, &node_uid).await?,
                    NodeCall::Renew => calls::renew_lease(&client, &config, now).await?,
                    NodeCall::Check => calls::check(&client, node, &status).await?,
                    NodeCall::Ready | NodeCall::Heartbeat => {
                        calls::node_status(&client, node, &status).await?;
                    }
                }
                Ok(None)
            })
            .await;
            Told::Node {
                call,
                taken: outcome.is_some(),
                uid: outcome.flatten(),
            }
        })
    }
}

/// Waits for the next thing; what was commanded comes first.
async fn next(state: &mut State, inbox: &mut mpsc::UnboundedReceiver<Command>) -> Input {
    match state {
        State::Off { boots_at } => {
            let boots_at = *boots_at;
            tokio::select! { biased;
                command = inbox.recv() => Input::Command(command),
                () = until(boots_at) => Input::Timer,
            }
        }
        State::On(running) => {
            let wake = [running.duty.wake(), running.machine.wake()];
            let wake = wake.into_iter().flatten().min();
            tokio::select! { biased;
                command = inbox.recv() => Input::Command(command),
                Some(told) = running.calls.next() => Input::Told(told),
                Some(event) = running.pods.next() => Input::Pod(event),
                () = until(wake) => Input::Timer,
            }
        }
    }
}

fn pod(event: PodEvent, state: &mut State) {
    let State::On(running) = state else { return };
    let now = Instant::now();
    match event {
        PodEvent::Listed(pods) => running.machine.relisted(&pods, now),
        PodEvent::Seen(pod) => running.machine.seen(&pod, now),
        PodEvent::Deleted(pod) => {
            if let Some(uid) = pod.uid() {
                running.machine.deleted(&uid);
            }
            if pod.annotations().contains_key(MIRROR) {
                running.duty.mirror_gone(now);
            }
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The answer, unless it failed or took too long: then it is tried again, which is all a kubelet
/// does about it.
async fn in_time<T>(call: impl Future<Output = kube::Result<T>>) -> Option<T> {
    match tokio::time::timeout(CALL_TIMEOUT, call).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a simulated kubelet's call failed");
            None
        }
        Err(_) => None,
    }
}
