//! Makes the driver for an address.

use std::path::PathBuf;
use std::sync::Arc;

use dogwatch_core::power::BmcAddress;

use crate::fence::{self, FenceDriver};
use crate::ipmi::{self, IpmiDriver};
use crate::redfish::{HttpTransport, RedfishDriver, SharedHttpClients};
use crate::{Bmc, BmcFault, Credentials};

/// What drivers need beside the address. Clones share the HTTP clients.
#[derive(Debug, Clone)]
pub struct DriverOptions {
    /// The program `ipmitool`; a plain name is looked up in `PATH`.
    pub ipmitool: PathBuf,
    /// The only folder from which fence agents are run.
    pub fence_agents: PathBuf,
    pub clients: SharedHttpClients,
}

impl Default for DriverOptions {
    fn default() -> Self {
        Self {
            ipmitool: PathBuf::from("ipmitool"),
            fence_agents: PathBuf::from("/usr/sbin"),
            clients: SharedHttpClients::default(),
        }
    }
}

/// Makes the driver for this address. It sends nothing yet.
///
/// A driver remembers its session, the system, what the BMC can do, and how long to wait after a
/// BMC refused user and password. Keep the driver as long as address, credentials and `verify` stay
/// the same, then call [`Bmc::close_session`].
///
/// # Errors
/// The Secret or the address lacks something that the driver needs.
pub fn connect_driver(
    address: &BmcAddress,
    credentials: &Credentials,
    verify: bool,
    options: &DriverOptions,
) -> Result<Arc<dyn Bmc>, BmcFault> {
    match address {
        BmcAddress::Redfish { .. } => {
            let ca = credentials.ca.as_deref();
            let exchange = HttpTransport::new(&options.clients, address, ca, verify)?;
            let driver =
                RedfishDriver::over_transport(Arc::new(exchange), address, credentials.clone())?;
            Ok(Arc::new(driver))
        }
        BmcAddress::Ipmi {
            host,
            port,
            privilege,
            cipher_suite,
        } => {
            let target = ipmi::IpmiTarget {
                host: host.clone(),
                port: *port,
                privilege: privilege.clone(),
                cipher_suite: *cipher_suite,
            };
            let driver = IpmiDriver::new(&options.ipmitool, target, credentials)?;
            Ok(Arc::new(driver))
        }
        BmcAddress::Fence {
            agent,
            host,
            port,
            options: given,
        } => {
            let target = fence::FenceTarget {
                agent: agent.clone(),
                host: host.clone(),
                port: *port,
                options: given.clone(),
            };
            let driver = FenceDriver::new(&options.fence_agents, target, credentials, verify)?;
            Ok(Arc::new(driver))
        }
    }
}
