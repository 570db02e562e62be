//! The way to one host's BMCs: their drivers, and the Secrets that these were made with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::{Bmc as Driver, Credentials, Options, connect};
use dogwatch_core::power::{Access, Address, Cost, Device, Fault, Level, reason};
use futures::future::join_all;

use super::lanes::{Bmc, Errand, Lanes};

/// Makes the driver for an address. Nothing is sent yet.
pub type Connect =
    Arc<dyn Fn(&Address, &Credentials, bool) -> Result<Arc<dyn Driver>, Fault> + Send + Sync>;

/// The real drivers: IPMI by this program, fence agents from this folder.
pub fn drivers(ipmitool: PathBuf, fence_agents: PathBuf) -> Connect {
    let options = Options {
        ipmitool,
        fence_agents,
        ..Options::default()
    };
    Arc::new(move |address, credentials, verify| connect(address, credentials, verify, &options))
}

/// How long one goodbye may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);
/// How long all of a process may take, of the time that it has to finish
/// ([`crate::run::FINISH_WITHIN`]).
const CLOSE_ALL_WITHIN: Duration = Duration::from_secs(5);

/// What a look at a Secret found.
#[derive(Debug, Clone)]
pub(super) enum Secret {
    /// It is there and whole.
    There {
        /// Its resourceVersion, and its UID: another Secret of that name is another Secret.
        version: String,
        /// What it holds.
        credentials: Credentials,
    },
    /// It is of no use: a reason of `core::power::reason`, and a sentence.
    Missing {
        /// One word.
        reason: &'static str,
        /// What to do.
        message: String,
    },
    /// It could not be read now; what is known of it stays.
    NotRead,
}

/// All levels of one host.
#[derive(Default)]
pub(super) struct Links {
    levels: Vec<Vec<Link>>,
}

/// One device.
struct Link {
    device: Device,
    bmc: Option<Arc<Bmc>>,
    version: Option<String>,
    way: Way,
}

enum Way {
    NotYet,
    Missing {
        reason: &'static str,
        message: String,
    },
    Open(Arc<dyn Driver>),
}

/// One level as it can be spoken to now.
#[derive(Clone)]
pub(super) struct OpenLevel {
    /// What they are for others who share them.
    pub(super) bmcs: Vec<Arc<Bmc>>,
    /// Their drivers, in the same order.
    pub(super) drivers: Vec<Arc<dyn Driver>>,
    /// How dear a call is.
    pub(super) cost: Cost,
}

impl Links {
    /// Follows the host's specification. Whether anything changed: what was found out with the old
    /// ones means nothing then.
    pub(super) fn follow(&mut self, spec: &[Level], lanes: &Lanes) -> bool {
        if self.is_for(spec) {
            return false;
        }
        self.drop_all();
        let levels = spec.iter();
        let link = |device: &Device| Link::new(device.clone(), lanes);
        self.levels = levels
            .map(|level| level.devices.iter().map(link).collect())
            .collect();
        true
    }

    fn is_for(&self, spec: &[Level]) -> bool {
        let is_for = |links: &[Link], level: &Level| {
            let devices = links.iter().map(|link| &link.device);
            devices.eq(&level.devices)
        };
        let mut levels = self.levels.iter().zip(spec);
        self.levels.len() == spec.len() && levels.all(|(links, level)| is_for(links, level))
    }

    /// The Secrets that have to be read, by name.
    pub(super) fn secrets(&self) -> Vec<String> {
        let links = self.levels.iter().flatten();
        let named = links.filter(|link| link.is_of_use());
        let mut names: Vec<String> = named.map(|link| link.device.credentials.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Takes in what was read. Whether a driver is another one now.
    pub(super) fn take(&mut self, secrets: &BTreeMap<String, Secret>, connect: &Connect) -> bool {
        let links = self.levels.iter_mut().flatten();
        let links = links.filter(|link| link.is_of_use());
        let changed = links.filter_map(|link| {
            let secret = secrets.get(&link.device.credentials)?;
            link.take(secret, connect).then_some(())
        });
        changed.count() > 0
    }

    /// Whether some Secret is of no use, or not known yet.
    pub(super) fn lacks_something(&self) -> bool {
        let mut links = self.levels.iter().flatten();
        links.any(|link| link.is_of_use() && !matches!(link.way, Way::Open(_)))
    }

    /// What the decision is told.
    pub(super) fn access(&self) -> Vec<Access> {
        self.levels
            .iter()
            .map(|level| access(level.iter()))
            .collect()
    }

    /// The level, if all of its devices can be spoken to.
    pub(super) fn open(&self, level: usize) -> Option<OpenLevel> {
        let links = self.levels.get(level)?;
        let drivers: Option<Vec<_>> = links.iter().map(Link::driver).collect();
        let drivers = drivers.filter(|drivers| !drivers.is_empty())?;
        let cost =
            drivers
                .iter()
                .map(|driver| driver.cost())
                .fold(Cost::Request, |all, one| match (all, one) {
                    (Cost::Request, Cost::Request) => Cost::Request,
                    (Cost::Process, _) | (_, Cost::Process) => Cost::Process,
                });
        Some(OpenLevel {
            bmcs: links.iter().filter_map(|link| link.bmc.clone()).collect(),
            drivers,
            cost,
        })
    }

    /// Says goodbye to all of them, each in its turn, but not for long.
    pub(super) async fn close(self, lanes: &Lanes) {
        let links = self.levels.into_iter().flatten();
        let goodbyes = links.filter_map(|link| {
            let driver = link.driver()?;
            let bmc = link.bmc?;
            Some(async move {
                let _place = lanes.enter(&[bmc], Errand::Routine, driver.cost()).await;
                driver.close(CLOSE_WITHIN).await;
            })
        });
        let all = join_all(goodbyes);
        // What is left open the BMC closes by itself.
        let _ = tokio::time::timeout(CLOSE_ALL_WITHIN, all).await;
    }

    fn drop_all(&mut self) {
        for link in self.levels.drain(..).flatten() {
            if let Way::Open(driver) = link.way {
                goodbye(driver);
            }
        }
    }
}

impl Link {
    fn new(device: Device, lanes: &Lanes) -> Self {
        let missing = |reason, message| Way::Missing { reason, message };
        let (bmc, way) = match &device.address {
            Err(bad) => (None, missing(reason::INVALID_ADDRESS, bad.to_string())),
            Ok(_) if device.credentials.is_empty() => {
                let message = "credentialsName names no Secret".to_owned();
                (None, missing(reason::NO_SECRET, message))
            }
            Ok(address) => (Some(lanes.bmc(address.endpoint().place())), Way::NotYet),
        };
        Self {
            device,
            bmc,
            version: None,
            way,
        }
    }

    /// Whether its Secret is worth reading.
    fn is_of_use(&self) -> bool {
        self.bmc.is_some()
    }

    fn driver(&self) -> Option<Arc<dyn Driver>> {
        match &self.way {
            Way::Open(driver) => Some(Arc::clone(driver)),
            Way::NotYet | Way::Missing { .. } => None,
        }
    }

    /// Whether its driver is another one, or none, now.
    fn take(&mut self, secret: &Secret, connect: &Connect) -> bool {
        let (version, way) = match secret {
            Secret::NotRead => return false,
            Secret::There { version, .. } if self.version.as_ref() == Some(version) => {
                return false;
            }
            Secret::There {
                version,
                credentials,
            } => (Some(version.clone()), self.way(credentials, connect)),
            Secret::Missing { reason, message } => {
                let (reason, message) = (*reason, message.clone());
                (None, Way::Missing { reason, message })
            }
        };
        let before = std::mem::replace(&mut self.way, way);
        self.version = version;
        match before {
            Way::Open(driver) => {
                goodbye(driver);
                true
            }
            Way::NotYet | Way::Missing { .. } => matches!(self.way, Way::Open(_)),
        }
    }

    fn way(&self, credentials: &Credentials, connect: &Connect) -> Way {
        let Ok(address) = &self.device.address else {
            return Way::NotYet;
        };
        match connect(address, credentials, self.device.verify) {
            Ok(driver) => Way::Open(driver),
            Err(fault) => Way::Missing {
                reason: fault.class.reason(),
                message: fault.message,
            },
        }
    }
}

fn access<'a>(links: impl Iterator<Item = &'a Link>) -> Access {
    let mut all = Access::Ready {
        cost: Cost::Request,
    };
    for link in links {
        match (&link.way, &all) {
            (Way::Missing { reason, message }, _) => {
                return Access::Missing {
                    reason,
                    message: message.clone(),
                };
            }
            (Way::NotYet, _) => all = Access::NotYet,
            (Way::Open(driver), Access::Ready { .. }) if driver.cost() == Cost::Process => {
                all = Access::Ready {
                    cost: Cost::Process,
                };
            }
            (Way::Open(_), _) => {}
        }
    }
    all
}

fn goodbye(driver: Arc<dyn Driver>) {
    tokio::spawn(async move { driver.close(CLOSE_WITHIN).await });
}
