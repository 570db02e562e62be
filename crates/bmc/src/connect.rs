//! From an address to a driver.

use std::path::PathBuf;
use std::sync::Arc;

use dogwatch_core::power::Address;

use crate::fence::{self, Fence};
use crate::ipmi::{self, Ipmi};
use crate::redfish::{Clients, Http, Redfish};
use crate::{Bmc, Credentials, Fault};

/// What drivers need beside the address. Made once; clones share what can be shared.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program `ipmitool`; a name is looked for in `PATH`.
    pub ipmitool: PathBuf,
    /// The one folder that fence agents come from.
    pub fence_agents: PathBuf,
    /// The HTTP clients of all Redfish drivers.
    pub clients: Clients,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ipmitool: PathBuf::from("ipmitool"),
            fence_agents: PathBuf::from("/usr/sbin"),
            clients: Clients::default(),
        }
    }
}

/// The driver for this address. Nothing is sent yet.
///
/// A driver remembers its session, the system, what the BMC can do, and for how long a BMC that refused
/// user and password is left alone: keep it for as long as address, credentials and `verify` stay the
/// same, and [`Bmc::close`] it after.
///
/// # Errors
/// What the Secret or the address lacks for this driver.
pub fn connect(
    address: &Address,
    credentials: &Credentials,
    verify: bool,
    options: &Options,
) -> Result<Arc<dyn Bmc>, Fault> {
    match address {
        Address::Redfish { .. } => {
            let ca = credentials.ca.as_deref();
            let exchange = Http::new(&options.clients, address, ca, verify)?;
            let driver = Redfish::over(Arc::new(exchange), address, credentials.clone())?;
            Ok(Arc::new(driver))
        }
        Address::Ipmi {
            host,
            port,
            privilege,
            cipher_suite,
        } => {
            let target = ipmi::Target {
                host: host.clone(),
                port: *port,
                privilege: privilege.clone(),
                cipher_suite: *cipher_suite,
            };
            let driver = Ipmi::new(&options.ipmitool, target, credentials)?;
            Ok(Arc::new(driver))
        }
        Address::Fence {
            agent,
            host,
            port,
            options: given,
        } => {
            let target = fence::Target {
                agent: agent.clone(),
                host: host.clone(),
                port: *port,
                options: given.clone(),
            };
            let driver = Fence::new(&options.fence_agents, target, credentials, verify)?;
            Ok(Arc::new(driver))
        }
    }
}
