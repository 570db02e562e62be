//! BMC addresses as metal3 writes them, and ours.
//!
//! Source: metal3's `pkg/hardwareutils/bmc` grammar (specification §3.3; `docs/hosts.md`).

use std::collections::BTreeMap;
use std::fmt;

/// Where a BMC is, and how it is spoken to. Made once, at the edge, by [`Address::parse`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// Redfish over HTTP(S).
    Redfish {
        /// Which.
        vendor: Vendor,
        /// Whether TLS is spoken.
        tls: bool,
        /// Name or IP address; without brackets.
        host: String,
        /// TCP port.
        port: u16,
        /// The system's path (`/redfish/v1/Systems/1`); `None`: the only one there is.
        system: Option<String>,
    },
    /// IPMI over LAN+ (RMCP+).
    Ipmi {
        /// Name or IP address; without brackets.
        host: String,
        /// UDP port.
        port: u16,
        /// `?privilegelevel=`, default `ADMINISTRATOR`.
        privilege: String,
        /// `?ciphersuite=`; `None`: 17, then 3.
        cipher_suite: Option<u8>,
    },
    /// A ClusterLabs fence agent: `fence+AGENT://HOST[:PORT]?OPTION=VALUE&…`.
    Fence {
        /// `fence_…`, checked.
        agent: String,
        /// Name or IP address (the agent's `ip`); without brackets.
        host: String,
        /// The agent's `ipport`.
        port: Option<u16>,
        /// Further options by name; no secrets: those come from the Secret.
        options: BTreeMap<String, String>,
    },
}

/// Which maker's Redfish the scheme names. Differences are data of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vendor {
    /// `redfish`, `redfish-virtualmedia`, `redfish-uefihttp`.
    Standard,
    /// `idrac-redfish`, `idrac-virtualmedia`.
    Idrac,
    /// `ilo5-redfish`, `ilo5-virtualmedia`.
    Ilo5,
}

/// Why a text is no address. The text itself may hold a password: it is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[error("{0}")]
pub struct BadAddress(pub String);

impl Address {
    /// Reads `spec.bmc.address`.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        Err(BadAddress(format!(
            "not a BMC address ({} bytes)",
            text.len()
        )))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Redfish { host, port, .. } => write!(f, "redfish://{host}:{port}"),
            Address::Ipmi { host, port, .. } => write!(f, "ipmi://{host}:{port}"),
            Address::Fence { agent, host, .. } => write!(f, "fence+{agent}://{host}"),
        }
    }
}
