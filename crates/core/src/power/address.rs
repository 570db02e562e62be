//! BMC addresses: metal3's forms, and Dogwatch's own form for fence agents.
//!
//! Source: metal3's `pkg/hardwareutils/bmc` grammar (specification §3.3; `docs/hosts.md`).

mod endpoint;
mod fence;
mod parse;
mod scheme;
#[cfg(test)]
mod tests;
mod url_text;

use std::collections::BTreeMap;
use std::fmt;

pub use endpoint::BmcEndpoint;
use url_text::bracket_host;

/// Where a BMC is and which protocol it speaks. Made once, at the edge, by [`BmcAddress::parse`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BmcAddress {
    Redfish {
        vendor: RedfishVendor,
        tls: bool,
        /// Name or IP address, without brackets, in lower case.
        host: String,
        port: u16,
        /// The system's path (`/redfish/v1/Systems/1`), percent-encoded as written. `None`: the
        /// BMC's only system.
        system: Option<String>,
    },
    /// IPMI over LAN+ (RMCP+).
    Ipmi {
        /// Name or IP address, without brackets, in lower case.
        host: String,
        /// UDP port.
        port: u16,
        /// `?privilegelevel=`; the default is `ADMINISTRATOR`.
        privilege: String,
        /// `?ciphersuite=`. `None`: the driver tries 17, then 3.
        cipher_suite: Option<u8>,
    },
    /// A ClusterLabs fence agent: `fence+AGENT://HOST[:PORT]?OPTION=VALUE&…`.
    Fence {
        /// `fence_…`, already checked.
        agent: String,
        /// Name or IP address (the agent's `ip`), without brackets, in lower case. Empty for agents
        /// of clouds: they know where their service is and take no `ip`.
        host: String,
        /// The agent's `ipport`.
        port: Option<u16>,
        /// Further options by name, spelled with `_`. No secrets: those come from the Secret. No
        /// value contains a control character.
        options: BTreeMap<String, String>,
    },
}

/// The vendor that a Redfish scheme names. The driver treats vendor differences as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RedfishVendor {
    /// `redfish`, `redfish-virtualmedia`, `redfish-uefihttp`.
    Standard,
    /// `idrac-redfish`, `idrac-virtualmedia`.
    Idrac,
    /// `ilo5-redfish`, `ilo5-virtualmedia`.
    Ilo5,
}

/// Why a text is not an address. The text may hold a password, so the message does not repeat it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[error("{0}")]
pub struct BadBmcAddress(pub String);

impl BmcAddress {
    /// Reads `spec.bmc.address`: `SCHEME://HOST…`, `SCHEME:HOST…`, or a host alone, which means
    /// IPMI.
    ///
    /// # Errors
    /// Says what is wrong and what to write instead.
    pub fn parse(text: &str) -> Result<Self, BadBmcAddress> {
        parse::parse_address(text)
    }

    /// Used to find hosts that name the same BMC.
    pub fn endpoint(&self) -> BmcEndpoint {
        BmcEndpoint::of_address(self)
    }

    /// Name or IP address, without brackets; empty for the fence agent of a cloud.
    pub fn host(&self) -> &str {
        match self {
            BmcAddress::Redfish { host, .. }
            | BmcAddress::Ipmi { host, .. }
            | BmcAddress::Fence { host, .. } => host,
        }
    }

    /// The port, unless it is the protocol's default.
    fn uncommon_port(&self) -> Option<u16> {
        let (port, common) = match self {
            BmcAddress::Redfish { tls, port, .. } => (*port, scheme::default_redfish_port(*tls)),
            BmcAddress::Ipmi { port, .. } => (*port, scheme::IPMI_PORT),
            BmcAddress::Fence { port, .. } => return *port,
        };
        (port != common).then_some(port)
    }
}

impl RedfishVendor {
    fn scheme_name(self) -> &'static str {
        match self {
            RedfishVendor::Standard => "redfish",
            RedfishVendor::Idrac => "idrac-redfish",
            RedfishVendor::Ilo5 => "ilo5-redfish",
        }
    }
}

/// The shortest form; [`BmcAddress::parse`] reads it back to the same value.
impl fmt::Display for BmcAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BmcAddress::Redfish { vendor, tls, .. } => {
                write!(
                    f,
                    "{}{}://",
                    vendor.scheme_name(),
                    if *tls { "" } else { "+http" }
                )?;
            }
            BmcAddress::Ipmi { .. } => f.write_str("ipmi://")?,
            BmcAddress::Fence { agent, .. } => write!(f, "fence+{agent}://")?,
        }
        f.write_str(&bracket_host(self.host()))?;
        if let Some(port) = self.uncommon_port() {
            write!(f, ":{port}")?;
        }
        match self {
            BmcAddress::Redfish { system, .. } => {
                f.write_str(system.as_deref().unwrap_or_default())
            }
            BmcAddress::Ipmi {
                privilege,
                cipher_suite,
                ..
            } => f.write_str(&url_text::format_query(&parse::ipmi_query(
                privilege,
                *cipher_suite,
            ))),
            BmcAddress::Fence { options, .. } => f.write_str(&url_text::format_query(options)),
        }
    }
}
