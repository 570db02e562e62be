//! One BMC, the machine behind it, and the real driver before it.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::redfish::Redfish;
use dogwatch_bmc::{Answer, Bmc as _, Command, Credentials, Fault, Password, Reading};
use dogwatch_core::power::Address;
use dogwatch_sim::bmc::{BmcSpec, Fault as Wrong, Machine, MachineSpec, Shape, SimBmc, Wire};
use dogwatch_sim::clock::{Clock, TokioClock};
use dogwatch_sim::seed::Seed;
use jiff::Timestamp;

/// The controller's own limit of a call (`--bmc-timeout`).
pub const CALL: Duration = Duration::from_secs(10);
pub const SECOND: Duration = Duration::from_secs(1);

pub struct Bench {
    pub clock: Arc<dyn Clock>,
    pub machine: Machine,
    pub bmc: SimBmc,
    pub driver: Redfish,
}

impl Bench {
    pub fn new(shape: Shape, is_on: bool) -> Self {
        Self::with(is_on, |spec| spec.shaped(shape))
    }

    pub fn with(is_on: bool, spec: impl FnOnce(BmcSpec) -> BmcSpec) -> Self {
        let epoch = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(epoch));
        let machine = MachineSpec::new("h1", Seed(7), Arc::clone(&clock));
        let machine = if is_on {
            Machine::running(machine)
        } else {
            Machine::off(machine)
        };
        let spec = spec(BmcSpec::new("h1-bmc", Seed(7), Arc::clone(&clock)));
        let bmc = SimBmc::of(spec, machine.clone());
        let driver = driver(&bmc, "sekret16");
        Self {
            clock,
            machine,
            bmc,
            driver,
        }
    }

    pub async fn read(&self) -> Result<Reading, Fault> {
        self.driver.read(CALL).await
    }

    pub async fn send(&self, command: Command) -> Result<Answer, Fault> {
        self.driver.send(command, CALL).await
    }

    pub fn wrong(&self, what: &str) {
        self.bmc.add(what.parse::<Wrong>().unwrap());
    }

    pub fn is_on(&self) -> bool {
        self.machine.state().is_powered()
    }
}

pub fn driver(bmc: &SimBmc, password: &str) -> Redfish {
    let address = format!("redfish+http://127.1.0.1:8000{}", bmc.path());
    let address = Address::parse(&address).unwrap();
    Redfish::over(Arc::new(Wire::to(bmc)), &address, credentials(password)).unwrap()
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
