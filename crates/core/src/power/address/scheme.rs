//! Address schemes: the supported ones, and those that metal3 has removed.

use super::{BadBmcAddress, RedfishVendor};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BmcScheme<'a> {
    /// One of metal3's Redfish families. They differ in how they boot a host, not in power.
    Redfish { vendor: RedfishVendor, tls: bool },
    /// `ipmi`, and metal3's alias for virtual BMCs, `libvirt`.
    Ipmi,
    /// The name of a fence agent, not yet checked.
    Fence(&'a str),
}

pub(super) const IPMI_PORT: u16 = 623;

pub(super) fn default_redfish_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

const REDFISH_SCHEMES: [(&str, RedfishVendor); 7] = [
    ("redfish", RedfishVendor::Standard),
    ("redfish-virtualmedia", RedfishVendor::Standard),
    ("redfish-uefihttp", RedfishVendor::Standard),
    ("idrac-redfish", RedfishVendor::Idrac),
    ("idrac-virtualmedia", RedfishVendor::Idrac),
    ("ilo5-redfish", RedfishVendor::Ilo5),
    ("ilo5-virtualmedia", RedfishVendor::Ilo5),
];

/// Schemes that metal3 has removed or that people try, and what to write instead.
const UNSUPPORTED_SCHEMES: [(&str, &str); 11] = [
    (
        "ilo4",
        "metal3 has removed it: write redfish:// (iLO 4 2.30 and later) or ipmi://",
    ),
    (
        "ilo4-virtualmedia",
        "metal3 has removed it: write redfish:// (iLO 4 2.30 and later) or ipmi://",
    ),
    ("ilo5", "metal3 has removed it: write ilo5-redfish://"),
    ("irmc", "metal3 has removed it: write redfish:// or ipmi://"),
    (
        "idrac",
        "metal3 has removed it (WS-Man): write idrac-redfish://",
    ),
    ("ibmc", "metal3 has removed it: write redfish://"),
    ("http", "write redfish+http://"),
    ("https", "write redfish://"),
    (
        "ipmitool",
        "write ipmi:// (Dogwatch speaks it through ipmitool)",
    ),
    ("lanplus", "write ipmi:// (it uses LAN+)"),
    ("fence", "write fence+AGENT://, like fence+fence_apc://"),
];

/// Looks up a scheme in lower case. `None`: unknown.
pub(super) fn find_scheme(name: &str) -> Option<Result<BmcScheme<'_>, BadBmcAddress>> {
    if let Some(agent) = name.strip_prefix("fence+") {
        return Some(Ok(BmcScheme::Fence(agent)));
    }
    if matches!(name, "ipmi" | "libvirt") {
        return Some(Ok(BmcScheme::Ipmi));
    }
    let (family, transport) = name.split_once('+').unwrap_or((name, "https"));
    let tls = match transport {
        "http" => false,
        "https" => true,
        _ => return None,
    };
    let spoken = REDFISH_SCHEMES.iter().find(|(known, _)| *known == family);
    if let Some((_, vendor)) = spoken {
        let vendor = *vendor;
        return Some(Ok(BmcScheme::Redfish { vendor, tls }));
    }
    let (known, instead) = UNSUPPORTED_SCHEMES
        .iter()
        .find(|(known, _)| *known == family)?;
    Some(Err(BadBmcAddress(format!(
        "{known}:// is not supported: {instead}"
    ))))
}

/// The error for an unknown name before `://` that has the form of a scheme.
pub(super) fn unknown_scheme_error(name: &str) -> BadBmcAddress {
    let shown: String = name.chars().take(40).collect();
    BadBmcAddress(format!(
        "{shown}:// is not a known scheme: write redfish://, ipmi://, one of metal3's other Redfish schemes, \
         or fence+AGENT://"
    ))
}
