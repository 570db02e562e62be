//! Hosts, their machines and BMCs, and a person's hand on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_api::DEFAULT_NAMESPACE;
use dogwatch_api::bare_metal_host::{API_VERSION, KIND, PLURAL, crd};
use dogwatch_core::power::{Config, Host};
use futures::future::select_all;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::admin::{self, Refused};
use super::readings::Readings;
use super::truth;
use crate::api::ApiServer;
use crate::bmc::{BmcSpec, Cause, Machine, MachineSpec, Park, SimBmc, State};
use crate::chronicle::{Change, Entry, Kind, LEAD, Violation, host_of};
use crate::clock::{Clock, TokioClock};
use crate::seed::Seed;
use crate::world::KubeletHandle;

/// Where the hosts are.
pub const NAMESPACE: &str = "metal";
/// The Secret of all BMCs.
const SECRET: &str = "bmc";
/// The port in addresses: nobody listens there.
const PORT: u16 = 80;

/// Hosts on one API server.
pub struct Yard {
    pub(super) server: ApiServer,
    pub(super) clock: Arc<TokioClock>,
    /// The BMCs and PDUs, each by its name: a host's BMC is named after the host.
    pub park: Park,
    /// What every controller is told.
    pub config: Config,
    /// What BMCs said.
    pub readings: Readings,
    seed: Seed,
    machines: BTreeMap<String, Standing>,
}

/// A machine, and how far it was told of.
struct Standing {
    machine: Machine,
    states: watch::Receiver<State>,
    told: usize,
}

impl Yard {
    /// None yet; their kind is installed, and the Secret is there.
    ///
    /// # Errors
    /// The API server has one already.
    pub fn open(
        server: &ApiServer,
        clock: &Arc<TokioClock>,
        seed: Seed,
        config: Config,
    ) -> Result<Self, Refused> {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        admin::create(server, definitions, &crd())?;
        for name in [NAMESPACE, DEFAULT_NAMESPACE] {
            admin::ensure_namespace(server, name)?;
        }
        let spec = BmcSpec::new("", seed, Arc::clone(clock) as Arc<dyn Clock>);
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": SECRET },
            "data": { "username": encoded(spec.username), "password": encoded(spec.password) } });
        let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
        admin::create(server, &secrets, &secret)?;
        // As a controller that ended well leaves it: the next one need not wait for it to run out.
        let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": LEAD }, "spec": { "leaseDurationSeconds": 1 } });
        let group = "/apis/coordination.k8s.io/v1";
        let leases = format!("{group}/namespaces/{DEFAULT_NAMESPACE}/leases");
        admin::create(server, &leases, &lease)?;
        Ok(Self {
            server: server.clone(),
            clock: Arc::clone(clock),
            park: Park::default(),
            config,
            readings: Readings::default(),
            seed,
            machines: BTreeMap::new(),
        })
    }

    /// Puts up a machine with its BMC, and its host: under a kubelet, or one that runs for itself.
    ///
    /// # Errors
    /// There is one of that name.
    pub fn add(
        &mut self,
        name: &str,
        kubelet: Option<&KubeletHandle>,
        change: impl FnOnce(&mut MachineSpec, &mut BmcSpec),
    ) -> Result<(), Refused> {
        let clock = || Arc::clone(&self.clock) as Arc<dyn Clock>;
        let mut machine = MachineSpec::new(name, self.seed, clock());
        let mut bmc = BmcSpec::new(name, self.seed, clock());
        change(&mut machine, &mut bmc);
        let machine = match kubelet {
            Some(kubelet) => Machine::under(kubelet, machine),
            None => Machine::running(machine),
        };
        self.park.add(SimBmc::of(bmc, machine.clone()));
        let states = machine.watch();
        let standing = Standing {
            machine,
            states,
            told: 0,
        };
        self.machines.insert(name.to_owned(), standing);
        let host = json!({
            "apiVersion": API_VERSION, "kind": KIND, "metadata": { "name": name },
            "spec": { "online": true, "bmc": self.device(name) },
        });
        admin::create(&self.server, &hosts(), &host)
    }

    /// A PDU of this name whose one outlet feeds the host: its next level.
    ///
    /// # Errors
    /// There is no such host.
    ///
    /// # Panics
    /// The host has no machine here.
    pub fn add_outlet(&self, name: &str, host: &str) -> Result<(), Refused> {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let spec = BmcSpec::new(name, self.seed, clock);
        let machine = self.machine(host).expect("a host has a machine");
        self.park.add(SimBmc::strip(spec, machine));
        let level = json!({ "devices": [self.device(name)] });
        self.change(host, &json!({ "spec": { "power": { "levels": [level] } } }))
    }

    fn device(&self, name: &str) -> Value {
        json!({ "address": self.park.address(name, PORT), "credentialsName": SECRET })
    }

    /// A JSON merge patch of a host.
    ///
    /// # Errors
    /// What the API server says.
    pub fn change(&self, host: &str, patch: &Value) -> Result<(), Refused> {
        admin::patch(&self.server, &format!("{}/{host}", hosts()), patch)
    }

    /// The same of its status.
    ///
    /// # Errors
    /// What the API server says.
    pub fn change_status(&self, host: &str, patch: &Value) -> Result<(), Refused> {
        let path = format!("{}/{host}/status", hosts());
        admin::patch(&self.server, &path, &json!({ "status": patch }))
    }

    /// A JSON merge patch of a Node.
    ///
    /// # Errors
    /// What the API server says.
    pub fn change_node(&self, node: &str, patch: &Value) -> Result<(), Refused> {
        admin::patch(&self.server, &format!("/api/v1/nodes/{node}"), patch)
    }

    /// Sets an annotation of a host; `None` takes it away.
    ///
    /// # Errors
    /// What the API server says.
    pub fn annotate(&self, host: &str, name: &str, value: Option<&str>) -> Result<(), Refused> {
        self.change(
            host,
            &json!({ "metadata": { "annotations": { name: value } } }),
        )
    }

    /// Deletes a host; its machine stays.
    ///
    /// # Errors
    /// What the API server says.
    pub fn delete(&self, host: &str) -> Result<(), Refused> {
        admin::delete(&self.server, &format!("{}/{host}", hosts()))
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A host's machine.
    pub fn machine(&self, host: &str) -> Option<Machine> {
        let standing = self.machines.get(host)?;
        Some(standing.machine.clone())
    }

    /// All hosts, by name.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, &Machine)> {
        let all = self.machines.iter();
        all.map(|(name, standing)| (name.as_str(), &standing.machine))
    }

    /// Waits until a machine does something else. Losing the future loses nothing.
    pub async fn changed(&mut self) {
        let states = self.machines.values_mut().map(|one| &mut one.states);
        let changes: Vec<_> = states.map(|states| Box::pin(states.changed())).collect();
        if changes.is_empty() {
            return std::future::pending().await;
        }
        let (_, _, _) = select_all(changes).await;
    }

    /// What the machines did since the last time.
    pub fn news(&mut self) -> Vec<Entry> {
        let mut news = Vec::new();
        for (name, standing) in &mut self.machines {
            standing.states.mark_unchanged();
            let log = standing.machine.log();
            for change in &log.transitions[standing.told..] {
                news.push(Entry::line(name, deed(&change.to, &change.cause)));
            }
            standing.told = log.transitions.len();
        }
        news
    }

    /// Holds a change of a host against what its machine did.
    pub fn judge(&self, change: &Change) -> Vec<Violation> {
        let after = change.after.as_ref().and_then(host_of);
        let (Kind::Host, Some(after)) = (change.kind, after) else {
            return Vec::new();
        };
        let before = change.before.as_ref().and_then(host_of);
        let machine = self.machine(&after.name.name);
        let broken =
            machine.and_then(|machine| truth::false_proof(before.as_ref(), &after, &machine.log()));
        broken.into_iter().collect()
    }

    /// Holds what is said of a host now against what its machine does.
    pub fn judge_now(&self, host: &Host) -> Option<Violation> {
        truth::stale_proof(host, &self.machine(&host.name.name)?)
    }
}

fn deed(state: &State, cause: &Cause) -> String {
    let word = match state {
        State::Off => "has no power",
        State::Booting { .. } => "boots",
        State::Running { .. } => "runs",
        State::ShuttingDown { .. } => "shuts down",
    };
    match cause {
        Cause::Done => format!("the machine {word}"),
        Cause::Device(_) | Cause::Reboot | Cause::Hand | Cause::Nobody => {
            format!("the machine {word}, {cause}")
        }
    }
}

fn encoded(text: String) -> ByteString {
    ByteString(text.into_bytes())
}

fn hosts() -> String {
    format!("/apis/{API_VERSION}/namespaces/{NAMESPACE}/{PLURAL}")
}
