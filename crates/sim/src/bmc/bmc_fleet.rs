//! Many simulated BMCs, each at its own loopback address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard};

use dogwatch_kubesim::clock::ClusterClock;
use dogwatch_kubesim::machine::{MachineSpec, SimMachine};
use dogwatch_kubesim::world::SimulatedCluster;

use super::in_process_transport::InProcessTransport;
use super::sim_bmc::{BmcSpec, SimBmc};

/// The first address that the fleet gives out; 127.0.0.1 stays free.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 1);

/// BMCs by address. Clones share the same fleet.
///
/// Linux routes all of 127.0.0.0/8 to the machine itself without any setup, so one listener serves
/// ten thousand BMCs that a client takes for ten thousand endpoints. In process, the same addresses
/// lead to [`InProcessTransport`]s.
#[derive(Clone, Default)]
pub struct BmcFleet(Arc<Mutex<BTreeMap<Ipv4Addr, SimBmc>>>);

impl BmcFleet {
    /// Makes a machine with a BMC for each node of a cluster, named after the node. `change` may
    /// adjust both specs. A boot takes as long as a reboot of the cluster's nodes.
    pub fn for_cluster(
        cluster: &SimulatedCluster,
        clock: &Arc<dyn ClusterClock>,
        mut change: impl FnMut(&str, &mut MachineSpec, &mut BmcSpec),
    ) -> Self {
        let park = Self::default();
        let seed = cluster.spec().seed;
        for (node, kubelet) in cluster.kubelets() {
            let mut machine = MachineSpec::new(node, seed, Arc::clone(clock));
            machine.boots_after = cluster.spec().reboot_takes;
            let mut bmc = BmcSpec::new(node, seed, Arc::clone(clock));
            change(node, &mut machine, &mut bmc);
            park.add_bmc(SimBmc::for_machine(
                bmc,
                SimMachine::under_kubelet(kubelet, machine),
            ));
        }
        park
    }

    /// Puts the BMC at the next free address and returns that address.
    pub fn add_bmc(&self, bmc: SimBmc) -> Ipv4Addr {
        let mut park = self.lock_bmcs();
        let last = park.last_key_value();
        let next = last.map_or(FIRST_ADDRESS, |(last, _)| {
            Ipv4Addr::from(u32::from(*last) + 1)
        });
        park.insert(next, bmc);
        next
    }

    pub fn bmc_at_address(&self, address: IpAddr) -> Option<SimBmc> {
        match address {
            IpAddr::V4(address) => self.lock_bmcs().get(&address).cloned(),
            IpAddr::V6(_) => None,
        }
    }

    pub fn find_bmc(&self, name: &str) -> Option<SimBmc> {
        let park = self.lock_bmcs();
        park.values().find(|bmc| bmc.name() == name).cloned()
    }

    pub fn list_bmcs(&self) -> Vec<(Ipv4Addr, SimBmc)> {
        let all = self.lock_bmcs();
        all.iter().map(|(at, bmc)| (*at, bmc.clone())).collect()
    }

    /// Returns the in-process transport to the BMC at this host part of an address.
    pub fn transport_to_host(&self, host: &str) -> Option<InProcessTransport> {
        self.bmc_at_address(host.parse().ok()?)
            .map(|bmc| InProcessTransport::to_bmc(&bmc))
    }

    /// Returns the value for `spec.bmc.address` of the BMC of this name.
    pub fn bmc_address(&self, name: &str, port: u16) -> Option<String> {
        let park = self.lock_bmcs();
        let (at, bmc) = park.iter().find(|(_, bmc)| bmc.name() == name)?;
        Some(format!("redfish+http://{at}:{port}{}", bmc.system_path()))
    }

    fn lock_bmcs(&self) -> MutexGuard<'_, BTreeMap<Ipv4Addr, SimBmc>> {
        self.0.lock().expect("nothing panics while it is asked")
    }
}
