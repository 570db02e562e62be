//! The BMC that an address means, whatever the protocol.

use super::BmcAddress;
use super::url_text::{bracket_host, percent_decode};

/// A BMC and the power that it controls. Two addresses may control the same power although their
/// texts differ: by scheme, by driver, or because only one of them names a system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BmcEndpoint {
    /// The BMC's host, and its port unless that is the protocol's default. So `ipmi://h` and
    /// `redfish://h` are one BMC, and virtual BMCs on several ports of one machine are many.
    location: String,
    /// The host alone, for a fence agent that has one: its default port depends on its options.
    agent_host: Option<String>,
    /// The system, outlet or virtual machine. `None`: the BMC's only one, or not named.
    system: Option<String>,
}

/// Options that name an outlet or a virtual machine, in the order in which they are tried.
const SYSTEM_OPTIONS: [&str; 5] = ["plug", "port", "uuid", "domain", "systems_uri"];

impl BmcEndpoint {
    pub(super) fn of_address(address: &BmcAddress) -> Self {
        Self {
            location: location_of_bmc(address),
            agent_host: host_of_agent(address),
            system: system_of_address(address),
        }
    }

    pub fn bmc_location(&self) -> &str {
        &self.location
    }

    /// The keys of an index: only endpoints with a common key can overlap.
    pub(in crate::power) fn index_keys(&self) -> impl Iterator<Item = &str> {
        let host = self.agent_host.as_ref();
        let host = host.filter(|host| **host != self.location);
        std::iter::once(&*self.location).chain(host.map(String::as_str))
    }

    /// Whether both endpoints may control the power of the same host.
    pub fn may_overlap(&self, other: &Self) -> bool {
        let is_same = match (&self.system, &other.system) {
            (Some(one), Some(other)) => one == other,
            (Some(_), None) | (None, Some(_) | None) => true,
        };
        (self.location == other.location || self.is_agent_beside(other)) && is_same
    }

    /// Whether both are fence agents of one host, and at least one of them uses its default port.
    fn is_agent_beside(&self, other: &Self) -> bool {
        let has_default_port = |it: &Self| it.agent_host.as_ref() == Some(&it.location);
        self.agent_host.is_some()
            && self.agent_host == other.agent_host
            && (has_default_port(self) || has_default_port(other))
    }
}

fn host_of_agent(address: &BmcAddress) -> Option<String> {
    match address {
        BmcAddress::Fence { host, .. } => Some(bracket_host(host)).filter(|host| !host.is_empty()),
        BmcAddress::Redfish { .. } | BmcAddress::Ipmi { .. } => None,
    }
}

fn location_of_bmc(address: &BmcAddress) -> String {
    let host = bracket_host(address.host());
    match (address, address.uncommon_port()) {
        // A cloud's agent has no host: its service is one location.
        (BmcAddress::Fence { agent, .. }, _) if host.is_empty() => format!("{agent}:"),
        (_, Some(port)) => format!("{host}:{port}"),
        (_, None) => host,
    }
}

fn system_of_address(address: &BmcAddress) -> Option<String> {
    match address {
        BmcAddress::Redfish { system, .. } => system.as_deref().map(normalize_path),
        BmcAddress::Ipmi { .. } => None,
        BmcAddress::Fence { options, .. } => SYSTEM_OPTIONS
            .iter()
            .find_map(|name| options.get(*name))
            .map(|part| normalize_path(part)),
    }
}

fn normalize_path(path: &str) -> String {
    let plain = percent_decode(path).unwrap_or_else(|| path.to_owned());
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
            assert_overlap(one, other, overlap);
        }
    }

    #[test]
    fn two_agents_of_one_host_overlap_unless_both_name_a_port() {
        for (one, other, overlap) in [
            (
                "fence+fence_apc://p:22?plug=2",
                "fence+fence_apc://p?plug=2",
                true,
            ),
            (
                "fence+fence_apc://p:22?plug=2",
                "fence+fence_apc://p?plug=3",
                false,
            ),
            (
                "fence+fence_apc://nat:2201?plug=2",
                "fence+fence_apc://nat:2202?plug=2",
                false,
            ),
            (
                "fence+fence_redfish://h:8443?systems-uri=%2Fredfish%2Fv1%2FSystems%2F1",
                "redfish://h:8443/redfish/v1/Systems/1",
                true,
            ),
        ] {
            assert_overlap(one, other, overlap);
        }
    }

    fn assert_overlap(one: &str, other: &str, overlap: bool) {
        let [a, b] = [one, other].map(|text| BmcAddress::parse(text).unwrap().endpoint());
        assert_eq!(a.may_overlap(&b), overlap, "{one} {other}");
        assert_eq!(b.may_overlap(&a), overlap, "{other} {one}");
        let mut keys = a.index_keys();
        let is_found = keys.any(|key| b.index_keys().any(|other| other == key));
        assert!(!overlap || is_found, "{one} {other}");
    }
}
