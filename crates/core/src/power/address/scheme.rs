//! Schemes: those that are spoken, and those that metal3 once had.

use super::{BadAddress, Vendor};

/// What a scheme says, before anything else is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme<'a> {
    /// One of metal3's Redfish families; they differ in how a host is booted, not in its power.
    Redfish {
        /// Whose.
        vendor: Vendor,
        /// Whether TLS is spoken.
        tls: bool,
    },
    /// `ipmi`, and metal3's alias for virtual BMCs, `libvirt`.
    Ipmi,
    /// A fence agent of this name, not yet checked.
    Fence(&'a str),
}

/// IPMI's own UDP port.
pub(super) const IPMI_PORT: u16 = 623;

/// HTTP's own TCP port.
pub(super) fn redfish_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

const REDFISH: [(&str, Vendor); 7] = [
    ("redfish", Vendor::Standard),
    ("redfish-virtualmedia", Vendor::Standard),
    ("redfish-uefihttp", Vendor::Standard),
    ("idrac-redfish", Vendor::Idrac),
    ("idrac-virtualmedia", Vendor::Idrac),
    ("ilo5-redfish", Vendor::Ilo5),
    ("ilo5-virtualmedia", Vendor::Ilo5),
];

/// Schemes that metal3 has removed, or that people try: and what to write in their place.
const INSTEAD: [(&str, &str); 11] = [
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
        "write ipmi:// (it is spoken by means of ipmitool)",
    ),
    ("lanplus", "write ipmi:// (LAN+ is what it speaks)"),
    ("fence", "write fence+AGENT://, like fence+fence_apc://"),
];

/// The scheme of this name, in lower case; `None`: nobody knows it.
pub(super) fn find(name: &str) -> Option<Result<Scheme<'_>, BadAddress>> {
    if let Some(agent) = name.strip_prefix("fence+") {
        return Some(Ok(Scheme::Fence(agent)));
    }
    if matches!(name, "ipmi" | "libvirt") {
        return Some(Ok(Scheme::Ipmi));
    }
    let (family, transport) = name.split_once('+').unwrap_or((name, "https"));
    let tls = match transport {
        "http" => false,
        "https" => true,
        _ => return None,
    };
    let spoken = REDFISH.iter().find(|(known, _)| *known == family);
    if let Some((_, vendor)) = spoken {
        let vendor = *vendor;
        return Some(Ok(Scheme::Redfish { vendor, tls }));
    }
    let (known, instead) = INSTEAD.iter().find(|(known, _)| *known == family)?;
    Some(Err(BadAddress(format!(
        "{known}:// is not supported: {instead}"
    ))))
}

/// What to say of one that nobody knows. It has the form of a scheme, and stood before `://`.
pub(super) fn unknown(name: &str) -> BadAddress {
    let shown: String = name.chars().take(40).collect();
    BadAddress(format!(
        "{shown}:// is not a known scheme: write redfish://, ipmi://, one of metal3's other Redfish schemes, \
         or fence+AGENT://"
    ))
}
