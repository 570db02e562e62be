//! A simulated BMC and its machine, with the real driver connected.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::redfish::RedfishDriver;
use dogwatch_bmc::{
    Bmc as _, BmcFault, CommandAnswer, Credentials, Password, PowerCommand, PowerReading,
};
use dogwatch_core::power::BmcAddress;
use dogwatch_kubesim::clock::{ClusterClock, TokioClock};
use dogwatch_kubesim::machine::{MachineSpec, SimMachine};
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_sim::bmc::{BmcSpec, InProcessTransport, MakerProfile, SimBmc, SimBmcFault as Wrong};
use jiff::Timestamp;

/// The controller's own time limit of a call (`--bmc-timeout`).
pub const CALL: Duration = Duration::from_secs(10);
pub const SECOND: Duration = Duration::from_secs(1);

pub struct Bench {
    pub clock: Arc<dyn ClusterClock>,
    pub machine: SimMachine,
    pub bmc: SimBmc,
    pub driver: RedfishDriver,
}

impl Bench {
    pub fn new(shape: MakerProfile, is_on: bool) -> Self {
        Self::with(is_on, |spec| spec.with_profile(shape))
    }

    pub fn with(is_on: bool, spec: impl FnOnce(BmcSpec) -> BmcSpec) -> Self {
        let epoch = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
        let clock: Arc<dyn ClusterClock> = Arc::new(TokioClock::starting_at(epoch));
        let machine = MachineSpec::new("h1", SimulationSeed(7), Arc::clone(&clock));
        let machine = if is_on {
            SimMachine::running_first_boot(machine)
        } else {
            SimMachine::powered_off(machine)
        };
        let spec = spec(BmcSpec::new(
            "h1-bmc",
            SimulationSeed(7),
            Arc::clone(&clock),
        ));
        let bmc = SimBmc::for_machine(spec, machine.clone());
        let driver = driver(&bmc, "sekret16");
        Self {
            clock,
            machine,
            bmc,
            driver,
        }
    }

    pub async fn read(&self) -> Result<PowerReading, BmcFault> {
        self.driver.read_power(CALL).await
    }

    pub async fn send(&self, command: PowerCommand) -> Result<CommandAnswer, BmcFault> {
        self.driver.send_command(command, CALL).await
    }

    pub fn wrong(&self, what: &str) {
        self.bmc.add_fault(what.parse::<Wrong>().unwrap());
    }

    pub fn is_on(&self) -> bool {
        self.machine.power_state().is_powered()
    }
}

pub fn driver(bmc: &SimBmc, password: &str) -> RedfishDriver {
    let address = format!("redfish+http://127.1.0.1:8000{}", bmc.system_path());
    let address = BmcAddress::parse(&address).unwrap();
    RedfishDriver::over_transport(
        Arc::new(InProcessTransport::to_bmc(bmc)),
        &address,
        credentials(password),
    )
    .unwrap()
}

pub fn credentials(password: &str) -> Credentials {
    Credentials {
        username: "admin".into(),
        password: Password::new(password),
        ca: None,
    }
}

pub async fn after(time: Duration) {
    tokio::time::sleep(time).await;
}
