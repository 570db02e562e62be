//! BMC addresses as metal3 writes them, and ours.
//!
//! Source: metal3's `pkg/hardwareutils/bmc` grammar (specification §3.3; `docs/hosts.md`).

mod endpoint;
mod fence;
mod parse;
mod scheme;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::fmt;

pub use endpoint::Endpoint;
use text::bracketed;

/// Where a BMC is, and how it is spoken to. Made once, at the edge, by [`Address::parse`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// Redfish over HTTP(S).
    Redfish {
        /// Which.
        vendor: Vendor,
        /// Whether TLS is spoken.
        tls: bool,
        /// Name or IP address; without brackets, in lower case.
        host: String,
        /// TCP port.
        port: u16,
        /// The system's path (`/redfish/v1/Systems/1`), percent-encoded as it was written; `None`: the
        /// only one there is.
        system: Option<String>,
    },
    /// IPMI over LAN+ (RMCP+).
    Ipmi {
        /// Name or IP address; without brackets, in lower case.
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
        /// Name or IP address (the agent's `ip`); without brackets, in lower case. Empty for the agents
        /// of clouds, which know where their service is and want no `ip`.
        host: String,
        /// The agent's `ipport`.
        port: Option<u16>,
        /// Further options by name, spelt with `_`; no secrets: those come from the Secret. No value
        /// has a control character.
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
    /// Reads `spec.bmc.address`: `SCHEME://HOST…`, `SCHEME:HOST…`, or a host alone, which is IPMI's.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        parse::parse(text)
    }

    /// Where it is, so that two hosts which name one BMC are found out.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::of(self)
    }

    /// Name or IP address, without brackets; empty for a cloud's agent.
    pub fn host(&self) -> &str {
        match self {
            Address::Redfish { host, .. }
            | Address::Ipmi { host, .. }
            | Address::Fence { host, .. } => host,
        }
    }

    /// The port, where it is not the protocol's own.
    fn uncommon_port(&self) -> Option<u16> {
        let (port, common) = match self {
            Address::Redfish { tls, port, .. } => (*port, scheme::redfish_port(*tls)),
            Address::Ipmi { port, .. } => (*port, scheme::IPMI_PORT),
            Address::Fence { port, .. } => return *port,
        };
        (port != common).then_some(port)
    }
}

impl Vendor {
    /// The scheme's word.
    fn word(self) -> &'static str {
        match self {
            Vendor::Standard => "redfish",
            Vendor::Idrac => "idrac-redfish",
            Vendor::Ilo5 => "ilo5-redfish",
        }
    }
}

/// In its shortest form, which [`Address::parse`] reads back to the same value.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Redfish { vendor, tls, .. } => {
                write!(f, "{}{}://", vendor.word(), if *tls { "" } else { "+http" })?;
            }
            Address::Ipmi { .. } => f.write_str("ipmi://")?,
            Address::Fence { agent, .. } => write!(f, "fence+{agent}://")?,
        }
        f.write_str(&bracketed(self.host()))?;
        if let Some(port) = self.uncommon_port() {
            write!(f, ":{port}")?;
        }
        match self {
            Address::Redfish { system, .. } => f.write_str(system.as_deref().unwrap_or_default()),
            Address::Ipmi {
                privilege,
                cipher_suite,
                ..
            } => f.write_str(&text::query(&parse::ipmi_query(privilege, *cipher_suite))),
            Address::Fence { options, .. } => f.write_str(&text::query(options)),
        }
    }
}
