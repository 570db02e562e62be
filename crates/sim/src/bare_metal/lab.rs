//! Bare-metal hosts with machines and BMCs, and an administrator's requests about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_api::DEFAULT_NAMESPACE;
use dogwatch_api::bare_metal_host::{API_VERSION, KIND, PLURAL, host_crd};
use dogwatch_core::power::{HostSnapshot, PowerConfig};
use dogwatch_kubesim::api::ApiServer;
use dogwatch_kubesim::clock::{ClusterClock, TokioClock};
use dogwatch_kubesim::machine::{MachineSpec, MachineState, SimMachine, TransitionCause};
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::KubeletHandle;
use futures::future::select_all;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::admin::{self, AdminRequestError};
use super::bmc_readings::BmcReadings;
use super::power_audit;
use super::replica_trace::ReplicaTrace;
use crate::bmc::{BmcFaultKind, BmcFleet, BmcSpec, SimBmc, SimBmcFault};
use crate::observer::{
    LEADER_LEASE, ObservedChange, ObservedKind, ObserverEntry, PromiseViolation, parse_host,
};

/// The namespace of the hosts.
pub const LAB_NAMESPACE: &str = "metal";
/// The Secret with the credentials of all BMCs.
const BMC_SECRET: &str = "bmc";
/// The port in BMC addresses; nothing listens there.
const BMC_PORT: u16 = 80;

/// Bare-metal hosts on one API server.
pub struct BareMetalLab {
    pub(super) server: ApiServer,
    pub(super) clock: Arc<TokioClock>,
    /// The BMCs and PDUs by name; a host's BMC has the host's name.
    pub bmc_fleet: BmcFleet,
    /// The power flags of every controller.
    pub config: PowerConfig,
    /// The power states that BMCs reported.
    pub readings: BmcReadings,
    /// The decision logs of its controllers.
    pub trace: ReplicaTrace,
    seed: SimulationSeed,
    machines: BTreeMap<String, LabMachine>,
}

/// A machine, and how much of its log `take_entries` has returned.
struct LabMachine {
    machine: SimMachine,
    states: watch::Receiver<MachineState>,
    reported_transitions: usize,
}

impl BareMetalLab {
    /// Opens a lab without hosts; installs the CRD and creates the Secret.
    ///
    /// # Errors
    /// The API server has a lab already.
    pub fn open_lab(
        server: &ApiServer,
        clock: &Arc<TokioClock>,
        seed: SimulationSeed,
        config: PowerConfig,
    ) -> Result<Self, AdminRequestError> {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        admin::create_object(server, definitions, &host_crd())?;
        for name in [LAB_NAMESPACE, DEFAULT_NAMESPACE] {
            admin::ensure_namespace(server, name)?;
        }
        let spec = BmcSpec::new("", seed, Arc::clone(clock) as Arc<dyn ClusterClock>);
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": BMC_SECRET },
            "data": { "username": byte_string(spec.username), "password": byte_string(spec.password) } });
        let secrets = format!("/api/v1/namespaces/{LAB_NAMESPACE}/secrets");
        admin::create_object(server, &secrets, &secret)?;
        // The Lease as a controller leaves it after a clean stop, so that the next one need not
        // wait for its expiry.
        let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": LEADER_LEASE }, "spec": { "leaseDurationSeconds": 1 } });
        let group = "/apis/coordination.k8s.io/v1";
        let leases = format!("{group}/namespaces/{DEFAULT_NAMESPACE}/leases");
        admin::create_object(server, &leases, &lease)?;
        Ok(Self {
            server: server.clone(),
            clock: Arc::clone(clock),
            bmc_fleet: BmcFleet::default(),
            config,
            readings: BmcReadings::default(),
            trace: ReplicaTrace::default(),
            seed,
            machines: BTreeMap::new(),
        })
    }

    /// Adds a machine, its BMC and its BareMetalHost. The machine runs under a kubelet, or without
    /// a node.
    ///
    /// # Errors
    /// A host of that name exists already.
    pub fn add_host(
        &mut self,
        name: &str,
        kubelet: Option<&KubeletHandle>,
        change: impl FnOnce(&mut MachineSpec, &mut BmcSpec),
    ) -> Result<(), AdminRequestError> {
        let clock = || Arc::clone(&self.clock) as Arc<dyn ClusterClock>;
        let mut machine = MachineSpec::new(name, self.seed, clock());
        let mut bmc = BmcSpec::new(name, self.seed, clock());
        change(&mut machine, &mut bmc);
        let machine = match kubelet {
            Some(kubelet) => SimMachine::under_kubelet(kubelet, machine),
            None => SimMachine::running_first_boot(machine),
        };
        self.bmc_fleet
            .add_bmc(SimBmc::for_machine(bmc, machine.clone()));
        let states = machine.watch_state();
        let standing = LabMachine {
            machine,
            states,
            reported_transitions: 0,
        };
        self.machines.insert(name.to_owned(), standing);
        let host = json!({
            "apiVersion": API_VERSION, "kind": KIND, "metadata": { "name": name },
            "spec": { "online": true, "bmc": self.device_reference(name) },
        });
        admin::create_object(&self.server, &hosts_path(), &host)
    }

    fn device_reference(&self, name: &str) -> Value {
        json!({ "address": self.bmc_fleet.bmc_address(name, BMC_PORT), "credentialsName": BMC_SECRET })
    }

    /// Sends a JSON merge patch of a host.
    ///
    /// # Errors
    /// The API server refused it.
    pub fn patch_host(&self, host: &str, patch: &Value) -> Result<(), AdminRequestError> {
        admin::patch_object(&self.server, &format!("{}/{host}", hosts_path()), patch)
    }

    /// Sends a JSON merge patch of a Node.
    ///
    /// # Errors
    /// The API server refused it.
    pub fn patch_node(&self, node: &str, patch: &Value) -> Result<(), AdminRequestError> {
        admin::patch_object(&self.server, &format!("/api/v1/nodes/{node}"), patch)
    }

    /// Sets an annotation of a host; `None` removes it.
    ///
    /// # Errors
    /// The API server refused it.
    pub fn annotate_host(
        &self,
        host: &str,
        name: &str,
        value: Option<&str>,
    ) -> Result<(), AdminRequestError> {
        self.patch_host(
            host,
            &json!({ "metadata": { "annotations": { name: value } } }),
        )
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn machine_of_host(&self, host: &str) -> Option<SimMachine> {
        let standing = self.machines.get(host)?;
        Some(standing.machine.clone())
    }

    pub fn list_hosts(&self) -> impl Iterator<Item = (&str, &SimMachine)> {
        let all = self.machines.iter();
        all.map(|(name, standing)| (name.as_str(), &standing.machine))
    }

    /// Waits until a machine changes its state. Cancel-safe: no change is lost.
    pub async fn wait_for_change(&mut self) {
        let states = self.machines.values_mut().map(|one| &mut one.states);
        let changes: Vec<_> = states.map(|states| Box::pin(states.changed())).collect();
        if changes.is_empty() {
            return std::future::pending().await;
        }
        let (_, _, _) = select_all(changes).await;
    }

    /// Returns what the machines did since the last call.
    pub fn take_entries(&mut self) -> Vec<ObserverEntry> {
        let mut news = Vec::new();
        for (name, standing) in &mut self.machines {
            standing.states.mark_unchanged();
            let log = standing.machine.transition_log();
            for change in &log.transitions[standing.reported_transitions..] {
                news.push(ObserverEntry::from_line(
                    name,
                    describe_transition(&change.to, &change.cause),
                ));
            }
            standing.reported_transitions = log.transitions.len();
        }
        news
    }

    /// Compares a change of a host with its machine's log.
    pub fn judge_change(&self, change: &ObservedChange) -> Vec<PromiseViolation> {
        let after = change.after.as_ref().and_then(parse_host);
        let (ObservedKind::Host, Some(after)) = (change.kind, after) else {
            return Vec::new();
        };
        // A proof made of a BMC's lies is on the status for good reason. What is forbidden then is
        // a release, and each release is judged by the writes that follow it.
        if self.has_lying_bmc(&after.name.name) {
            return Vec::new();
        }
        let before = change.before.as_ref().and_then(parse_host);
        let machine = self.machine_of_host(&after.name.name);
        let broken = machine.and_then(|machine| {
            power_audit::find_false_proof(before.as_ref(), &after, &machine.transition_log())
        });
        broken.into_iter().collect()
    }

    /// Whether the script makes this host's BMC answer every reading with a fixed power state.
    fn has_lying_bmc(&self, host: &str) -> bool {
        let faults = self.bmc_fleet.find_bmc(host).map(|bmc| bmc.active_faults());
        let lies = |fault: &SimBmcFault| {
            fault.times.is_none() && matches!(fault.kind, BmcFaultKind::PowerState(_))
        };
        faults.is_some_and(|faults| faults.iter().any(lies))
    }

    /// Compares a host's present status with its machine.
    pub fn judge_host(&self, host: &HostSnapshot) -> Option<PromiseViolation> {
        if self.has_lying_bmc(&host.name.name) {
            return None;
        }
        power_audit::find_stale_proof(host, &self.machine_of_host(&host.name.name)?)
    }
}

fn describe_transition(state: &MachineState, cause: &TransitionCause) -> String {
    let word = match state {
        MachineState::Off => "has no power",
        MachineState::Booting { .. } => "boots",
        MachineState::Running { .. } => "runs",
        MachineState::ShuttingDown { .. } => "shuts down",
    };
    match cause {
        TransitionCause::Done => format!("the machine {word}"),
        TransitionCause::Device(_)
        | TransitionCause::Reboot
        | TransitionCause::Hand
        | TransitionCause::Nobody => {
            format!("the machine {word}, {cause}")
        }
    }
}

fn byte_string(text: String) -> ByteString {
    ByteString(text.into_bytes())
}

fn hosts_path() -> String {
    format!("/apis/{API_VERSION}/namespaces/{LAB_NAMESPACE}/{PLURAL}")
}
