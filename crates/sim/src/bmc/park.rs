//! Many BMCs, each at an address of its own.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard};

use dogwatch_core::name::NodeName;

use super::machine::{Machine, MachineSpec};
use super::simulated::{BmcSpec, SimBmc};
use super::wire::Wire;
use crate::clock::Clock;
use crate::world::Cluster;

/// The first address that is given: loopback has sixteen million, and 127.0.0.1 stays free.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 1);

/// BMCs by their addresses. Clones are the same park.
///
/// All of 127.0.0.0/8 is the machine itself, on Linux without any set-up: so one listener serves ten
/// thousand BMCs that a client takes for ten thousand endpoints. In process the same addresses lead
/// to [`Wire`]s.
#[derive(Clone, Default)]
pub struct Park(Arc<Mutex<BTreeMap<Ipv4Addr, SimBmc>>>);

impl Park {
    /// A machine and its BMC under each node of a cluster, named after the node, each BMC as the spec
    /// is changed for it. A boot takes what a reboot of the cluster's nodes takes.
    pub fn under(
        cluster: &Cluster,
        clock: &Arc<dyn Clock>,
        mut change: impl FnMut(&NodeName, &mut MachineSpec, &mut BmcSpec),
    ) -> Self {
        let park = Self::default();
        let seed = cluster.spec().seed;
        for (node, kubelet) in cluster.kubelets() {
            let mut machine = MachineSpec::new(node.as_str(), seed, Arc::clone(clock));
            machine.boots_after = cluster.spec().reboot_takes;
            let mut bmc = BmcSpec::new(node.as_str(), seed, Arc::clone(clock));
            change(node, &mut machine, &mut bmc);
            park.add(SimBmc::of(bmc, Machine::under(kubelet, machine)));
        }
        park
    }

    /// Puts it at the next free address.
    pub fn add(&self, bmc: SimBmc) -> Ipv4Addr {
        let mut park = self.park();
        let last = park.last_key_value();
        let next = last.map_or(FIRST, |(last, _)| Ipv4Addr::from(u32::from(*last) + 1));
        park.insert(next, bmc);
        next
    }

    /// Which one is there.
    pub fn at(&self, address: IpAddr) -> Option<SimBmc> {
        match address {
            IpAddr::V4(address) => self.park().get(&address).cloned(),
            IpAddr::V6(_) => None,
        }
    }

    /// The one of this name.
    pub fn named(&self, name: &str) -> Option<SimBmc> {
        let park = self.park();
        park.values().find(|bmc| bmc.name() == name).cloned()
    }

    /// All of them.
    pub fn all(&self) -> Vec<(Ipv4Addr, SimBmc)> {
        let all = self.park();
        all.iter().map(|(at, bmc)| (*at, bmc.clone())).collect()
    }

    /// The way to the BMC at this host of an address, in process.
    pub fn wire(&self, host: &str) -> Option<Wire> {
        self.at(host.parse().ok()?).map(|bmc| Wire::to(&bmc))
    }

    /// `spec.bmc.address` of the BMC of this name.
    pub fn address(&self, name: &str, port: u16) -> Option<String> {
        let park = self.park();
        let (at, bmc) = park.iter().find(|(_, bmc)| bmc.name() == name)?;
        Some(format!("redfish+http://{at}:{port}{}", bmc.path()))
    }

    fn park(&self) -> MutexGuard<'_, BTreeMap<Ipv4Addr, SimBmc>> {
        self.0.lock().expect("nothing panics while it is asked")
    }
}
