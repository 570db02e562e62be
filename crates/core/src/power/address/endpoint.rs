//! Which BMC an address means, whatever the way to it.

use super::Address;
use super::text::{bracketed, decoded};

/// A BMC, and what hangs on it. Two addresses may mean the same power though they are not the same
/// text: another scheme, another driver, a system that one of them names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The BMC: its host, and its port where that is not its protocol's own. So `ipmi://h` and
    /// `redfish://h` are one BMC, and virtual ones on the ports of one machine are many.
    place: String,
    /// The system, outlet or virtual machine behind it; `None`: the only one, or not named.
    part: Option<String>,
}

/// What names an outlet or a virtual machine, in the order in which it is looked for.
const PARTS: [&str; 5] = ["plug", "port", "uuid", "domain", "systems_uri"];

impl Endpoint {
    pub(super) fn of(address: &Address) -> Self {
        Self {
            place: place(address),
            part: part(address),
        }
    }

    /// What is equal where two endpoints can overlap at all: for an index.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether both may be the same host's power.
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_same = match (&self.part, &other.part) {
            (Some(one), Some(other)) => one == other,
            (Some(_), None) | (None, Some(_) | None) => true,
        };
        self.place == other.place && is_same
    }
}

fn place(address: &Address) -> String {
    let host = bracketed(address.host());
    match (address, address.uncommon_port()) {
        // A cloud: its service is one place.
        (Address::Fence { agent, .. }, _) if host.is_empty() => format!("{agent}:"),
        (_, Some(port)) => format!("{host}:{port}"),
        (_, None) => host,
    }
}

fn part(address: &Address) -> Option<String> {
    match address {
        Address::Redfish { system, .. } => system.as_deref().map(one_spelling),
        Address::Ipmi { .. } => None,
        Address::Fence { options, .. } => PARTS
            .iter()
            .find_map(|name| options.get(*name))
            .map(|part| one_spelling(part)),
    }
}

fn one_spelling(path: &str) -> String {
    let plain = decoded(path).unwrap_or_else(|| path.to_owned());
    plain.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_addresses_of_one_power_overlap() {
        for (one, other, overlap) in [
            ("ipmi://h", "ipmi://H?ciphersuite=3", true),
            ("ipmi://h", "redfish://h/redfish/v1/Systems/1", true),
            ("redfish+http://h", "idrac-redfish://h", true),
            ("redfish://h/redfish/v1/Systems/1", "redfish://h", true),
            (
                "redfish://h/redfish/v1/Systems/1/",
                "ilo5-redfish://h/redfish/v1/Systems/%31",
                true,
            ),
            (
                "redfish://h/redfish/v1/Systems/1",
                "redfish://h/redfish/v1/Systems/2",
                false,
            ),
            ("ipmi://[2001:db8::1]", "ipmi://[2001:0db8:0::1]", true),
            ("ipmi://127.0.0.1:6230", "ipmi://127.0.0.1:6231", false),
            ("ipmi://127.0.0.1:6230", "ipmi://127.0.0.1", false),
            ("redfish://h:443", "redfish://h", true),
            (
                "fence+fence_apc://p?plug=1",
                "fence+fence_apc_snmp://p?port=1",
                true,
            ),
            (
                "fence+fence_apc://p?plug=1",
                "fence+fence_apc://p?plug=2",
                false,
            ),
            (
                "fence+fence_apc://p?plug=1",
                "fence+fence_apc://q?plug=1",
                false,
            ),
            (
                "fence+fence_redfish://h?systems-uri=%2Fredfish%2Fv1%2FSystems%2F1",
                "redfish://h/redfish/v1/Systems/1",
                true,
            ),
            (
                "fence+fence_aws://?plug=i-1",
                "fence+fence_aws://?plug=i-1",
                true,
            ),
            (
                "fence+fence_aws://?plug=i-1",
                "fence+fence_gce://?plug=i-1",
                false,
            ),
        ] {
            let [a, b] = [one, other].map(|text| Address::parse(text).unwrap().endpoint());
            assert_eq!(a.overlaps(&b), overlap, "{one} {other}");
            assert_eq!(b.overlaps(&a), overlap, "{other} {one}");
            assert!(!overlap || a.place() == b.place(), "{one} {other}");
        }
    }
}
