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
