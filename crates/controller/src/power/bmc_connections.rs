//! The connections to one host's BMCs: their drivers, and the Secrets that the drivers were made
//! with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::{Bmc as Driver, Credentials, DriverOptions, connect_driver};
use dogwatch_core::power::{
    BmcAddress, BmcFault, CallCost, LevelAccess, PowerDevice, PowerLevel, PowerReason,
};
use futures::future::join_all;

use super::bmc_concurrency::{BmcConcurrency, Priority, SharedBmc};

/// Makes the driver for an address, and sends nothing yet.
pub type ConnectDriver =
    Arc<dyn Fn(&BmcAddress, &Credentials, bool) -> Result<Arc<dyn Driver>, BmcFault> + Send + Sync>;

/// The real drivers. `ipmitool` is the program, `fence_agents` the folder of the agents.
pub fn driver_connector(ipmitool: PathBuf, fence_agents: PathBuf) -> ConnectDriver {
    let options = DriverOptions {
        ipmitool,
        fence_agents,
        ..DriverOptions::default()
    };
    Arc::new(move |address, credentials, verify| {
        connect_driver(address, credentials, verify, &options)
    })
}

/// How long closing one connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long closing all connections of one host may take, out of the time that the process has to
/// finish ([`crate::run::FINISH_TIMEOUT`]).
const CLOSE_ALL_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(super) enum BmcSecretState {
    /// The Secret exists and is complete.
    Found {
        /// The Secret's resourceVersion and UID, so that a new Secret of the same name is noticed.
        version: String,
        credentials: Credentials,
    },
    /// The Secret cannot be used.
    Missing {
        reason: PowerReason,
        /// Says what to do.
        message: String,
    },
    /// The Secret could not be read now; the known credentials stay in use.
    NotRead,
}

#[derive(Default)]
pub(super) struct BmcConnections {
    levels: Vec<Vec<BmcConnection>>,
}

struct BmcConnection {
    device: PowerDevice,
    bmc: Option<Arc<SharedBmc>>,
    way: ConnectionState,
}

enum ConnectionState {
    NotYet,
    Missing {
        reason: PowerReason,
        message: String,
    },
    Open(OpenConnection),
}

struct OpenConnection {
    /// The version of the Secret that the driver was made with.
    version: String,
    driver: Arc<dyn Driver>,
}

/// A level whose devices all have a driver.
#[derive(Clone)]
pub(super) struct OpenLevel {
    /// For the limits on calls that hosts share.
    pub(super) bmcs: Vec<Arc<SharedBmc>>,
    /// In the same order as `bmcs`.
    pub(super) drivers: Vec<Arc<dyn Driver>>,
    pub(super) cost: CallCost,
}

impl BmcConnections {
    /// Adopts the host's specification. Returns whether anything changed: what was learnt over the
    /// old connections is then void.
    pub(super) fn follow_spec(&mut self, spec: &[PowerLevel], lanes: &BmcConcurrency) -> bool {
        if self.matches_spec(spec) {
            return false;
        }
        self.drop_all();
        let levels = spec.iter();
        let link = |device: &PowerDevice| BmcConnection::new(device.clone(), lanes);
        self.levels = levels
            .map(|level| level.devices.iter().map(link).collect())
            .collect();
        true
    }

    fn matches_spec(&self, spec: &[PowerLevel]) -> bool {
        let is_for = |links: &[BmcConnection], level: &PowerLevel| {
            let devices = links.iter().map(|link| &link.device);
            devices.eq(&level.devices)
        };
        let mut levels = self.levels.iter().zip(spec);
        self.levels.len() == spec.len() && levels.all(|(links, level)| is_for(links, level))
    }

    /// The names of the Secrets to read.
    pub(super) fn secret_names(&self) -> Vec<String> {
        let links = self.levels.iter().flatten();
        let named = links.filter(|link| link.is_usable());
        let mut names: Vec<String> = named.map(|link| link.device.credentials.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Applies the Secrets that were read. Returns whether any driver was replaced.
    pub(super) fn apply_secrets(
        &mut self,
        secrets: &BTreeMap<String, BmcSecretState>,
        connect: &ConnectDriver,
    ) -> bool {
        let links = self.levels.iter_mut().flatten();
        let links = links.filter(|link| link.is_usable());
        let changed = links.filter_map(|link| {
            let secret = secrets.get(&link.device.credentials)?;
            link.apply_secret(secret, connect).then_some(())
        });
        changed.count() > 0
    }

    /// Whether some Secret is unusable or not known yet.
    pub(super) fn lacks_connection(&self) -> bool {
        let mut links = self.levels.iter().flatten();
        links.any(|link| link.is_usable() && !matches!(link.way, ConnectionState::Open(_)))
    }

    pub(super) fn access_by_level(&self) -> Vec<LevelAccess> {
        self.levels
            .iter()
            .map(|level| access_of(level.iter()))
            .collect()
    }

    /// The level, if all of its devices have a driver.
    pub(super) fn open_level(&self, level: usize) -> Option<OpenLevel> {
        let links = self.levels.get(level)?;
        let open: Option<Vec<_>> = links.iter().map(BmcConnection::opened).collect();
        let open = open.filter(|open| !open.is_empty())?;
        let drivers: Vec<_> = open.iter().map(|open| Arc::clone(&open.driver)).collect();
        let cost =
            drivers
                .iter()
                .map(|driver| driver.call_cost())
                .fold(CallCost::Request, |all, one| match (all, one) {
                    (CallCost::Request, CallCost::Request) => CallCost::Request,
                    (CallCost::Process, _) | (_, CallCost::Process) => CallCost::Process,
                });
        Some(OpenLevel {
            bmcs: links.iter().filter_map(|link| link.bmc.clone()).collect(),
            drivers,
            cost,
        })
    }

    /// Closes all connections one after the other, within [`CLOSE_ALL_TIMEOUT`].
    pub(super) async fn close_all(self, lanes: &BmcConcurrency) {
        let links = self.levels.into_iter().flatten();
        let goodbyes = links.filter_map(|link| {
            let driver = Arc::clone(&link.opened()?.driver);
            let bmc = link.bmc?;
            Some(async move {
                let _place = lanes
                    .acquire_call_permit(&[bmc], Priority::Routine, driver.call_cost())
                    .await;
                driver.close_session(CLOSE_TIMEOUT).await;
            })
        });
        let all = join_all(goodbyes);
        // The BMC itself ends sessions that are left open.
        let _ = tokio::time::timeout(CLOSE_ALL_TIMEOUT, all).await;
    }

    fn drop_all(&mut self) {
        for link in self.levels.drain(..).flatten() {
            if let ConnectionState::Open(open) = link.way {
                close_in_background(open.driver);
            }
        }
    }
}

impl BmcConnection {
    fn new(device: PowerDevice, lanes: &BmcConcurrency) -> Self {
        let missing = |reason, message| ConnectionState::Missing { reason, message };
        let (bmc, way) = match &device.address {
            Err(bad) => (
                None,
                missing(PowerReason::InvalidBMCAddress, bad.to_string()),
            ),
            Ok(_) if device.credentials.is_empty() => {
                let message = "spec.bmc.credentialsName names no Secret".to_owned();
                (None, missing(PowerReason::SecretNotFound, message))
            }
            Ok(address) => (
                Some(lanes.bmc_of_name(address.endpoint().bmc_location())),
                ConnectionState::NotYet,
            ),
        };
        Self { device, bmc, way }
    }

    /// Whether its Secret is worth reading.
    fn is_usable(&self) -> bool {
        self.bmc.is_some()
    }

    fn opened(&self) -> Option<&OpenConnection> {
        match &self.way {
            ConnectionState::Open(open) => Some(open),
            ConnectionState::NotYet | ConnectionState::Missing { .. } => None,
        }
    }

    /// Returns whether the driver was replaced or dropped.
    fn apply_secret(&mut self, secret: &BmcSecretState, connect: &ConnectDriver) -> bool {
        let way = match secret {
            BmcSecretState::NotRead => return false,
            // A driver that could not be made is tried again with the same Secret.
            BmcSecretState::Found { version, .. }
                if self.opened().is_some_and(|open| open.version == *version) =>
            {
                return false;
            }
            BmcSecretState::Found {
                version,
                credentials,
            } => self.connect_with(version, credentials, connect),
            BmcSecretState::Missing { reason, message } => {
                let (reason, message) = (*reason, message.clone());
                ConnectionState::Missing { reason, message }
            }
        };
        match std::mem::replace(&mut self.way, way) {
            ConnectionState::Open(open) => {
                close_in_background(open.driver);
                true
            }
            ConnectionState::NotYet | ConnectionState::Missing { .. } => {
                matches!(self.way, ConnectionState::Open(_))
            }
        }
    }

    fn connect_with(
        &self,
        version: &str,
        credentials: &Credentials,
        connect: &ConnectDriver,
    ) -> ConnectionState {
        let Ok(address) = &self.device.address else {
            return ConnectionState::NotYet;
        };
        match connect(address, credentials, self.device.verify) {
            Ok(driver) => ConnectionState::Open(OpenConnection {
                version: version.to_owned(),
                driver,
            }),
            Err(fault) => ConnectionState::Missing {
                reason: fault.class.power_reason(),
                message: fault.message,
            },
        }
    }
}

fn access_of<'a>(links: impl Iterator<Item = &'a BmcConnection>) -> LevelAccess {
    let mut all = LevelAccess::Ready {
        cost: CallCost::Request,
    };
    for link in links {
        match (&link.way, &all) {
            (ConnectionState::Missing { reason, message }, _) => {
                return LevelAccess::Missing {
                    reason: *reason,
                    message: message.clone(),
                };
            }
            (ConnectionState::NotYet, _) => all = LevelAccess::NotYet,
            (ConnectionState::Open(open), LevelAccess::Ready { .. })
                if open.driver.call_cost() == CallCost::Process =>
            {
                all = LevelAccess::Ready {
                    cost: CallCost::Process,
                };
            }
            (ConnectionState::Open(_), _) => {}
        }
    }
    all
}

fn close_in_background(driver: Arc<dyn Driver>) {
    tokio::spawn(async move { driver.close_session(CLOSE_TIMEOUT).await });
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use dogwatch_bmc::{BmcInfo, CommandAnswer, Password, PowerCommand, PowerReading};
    use dogwatch_core::power::FaultClass;
    use futures::FutureExt as _;
    use futures::future::BoxFuture;

    use super::*;

    struct IdleDriver;

    impl Driver for IdleDriver {
        fn read_power(&self, _: Duration) -> BoxFuture<'_, Result<PowerReading, BmcFault>> {
            async { Ok(PowerReading::On) }.boxed()
        }

        fn send_command(
            &self,
            _: PowerCommand,
            _: Duration,
        ) -> BoxFuture<'_, Result<CommandAnswer, BmcFault>> {
            async { Ok(CommandAnswer::Accepted) }.boxed()
        }

        fn describe_device(&self, _: Duration) -> BoxFuture<'_, Result<BmcInfo, BmcFault>> {
            async { Ok(BmcInfo::default()) }.boxed()
        }

        fn call_cost(&self) -> CallCost {
            CallCost::Request
        }

        fn close_session(&self, _: Duration) -> BoxFuture<'_, ()> {
            async {}.boxed()
        }
    }

    /// The first `failures` drivers cannot be made.
    fn failing_connector(failures: usize) -> ConnectDriver {
        let made = AtomicUsize::new(0);
        Arc::new(move |_: &BmcAddress, _: &Credentials, _| {
            if made.fetch_add(1, Ordering::Relaxed) < failures {
                let text = "no file for ca.crt could be written";
                return Err(BmcFault::without_effect(FaultClass::Refused, text));
            }
            Ok(Arc::new(IdleDriver) as Arc<dyn Driver>)
        })
    }

    fn secret_of_version(version: &str) -> BTreeMap<String, BmcSecretState> {
        let secret = BmcSecretState::Found {
            version: version.into(),
            credentials: Credentials {
                username: "admin".into(),
                password: Password::new("sekret16"),
                ca: None,
            },
        };
        [("bmc".to_owned(), secret)].into()
    }

    fn connections_of_one_host() -> BmcConnections {
        let device = PowerDevice {
            address: BmcAddress::parse("redfish://h"),
            credentials: "bmc".into(),
            verify: true,
        };
        let spec = [PowerLevel {
            devices: vec![device],
        }];
        let mut connections = BmcConnections::default();
        connections.follow_spec(&spec, &BmcConcurrency::new(NonZeroUsize::MIN));
        connections
    }

    #[test]
    fn a_driver_that_could_not_be_made_is_made_from_the_same_secret_the_next_time() {
        let (mut connections, connect) = (connections_of_one_host(), failing_connector(2));
        let secrets = secret_of_version("1");
        for _ in 0..2 {
            let is_replaced = connections.apply_secrets(&secrets, &connect);
            assert!(!is_replaced, "what is known of the BMC stays known");
            assert!(connections.open_level(0).is_none() && connections.lacks_connection());
        }
        assert!(connections.apply_secrets(&secrets, &connect));
        assert!(connections.open_level(0).is_some());
    }

    #[tokio::test]
    async fn a_driver_that_was_made_is_kept_until_its_secret_changes() {
        let (mut connections, connect) = (connections_of_one_host(), failing_connector(0));
        for (version, is_replaced) in [("1", true), ("1", false), ("2", true)] {
            let secrets = secret_of_version(version);
            let answer = connections.apply_secrets(&secrets, &connect);
            assert_eq!(answer, is_replaced, "{version}");
        }
    }
}
