//! Hosts that name one BMC: the off of one would be taken for the off of the other.

use std::collections::{BTreeMap, BTreeSet};

use super::address::Endpoint;
use super::host::{HostName, Level};

/// Which hosts name which BMCs, kept up to date one host at a time.
#[derive(Debug, Clone, Default)]
pub struct Sharing {
    of: BTreeMap<HostName, BTreeSet<Endpoint>>,
    at: BTreeMap<String, BTreeSet<HostName>>,
}

impl Sharing {
    /// A host as it stands now. The hosts whose [`Self::with`] may be another one: none where it names
    /// what it named before.
    pub fn put(&mut self, name: &HostName, levels: &[Level]) -> BTreeSet<HostName> {
        let devices = levels.iter().flat_map(|level| &level.devices);
        let addresses = devices.filter_map(|device| device.address.as_ref().ok());
        let endpoints: BTreeSet<Endpoint> = addresses.map(super::Address::endpoint).collect();
        if self.of.get(name).unwrap_or(&BTreeSet::new()) == &endpoints {
            return BTreeSet::new();
        }
        let mut touched = self.remove(name);
        for endpoint in &endpoints {
            let here = self.at.entry(endpoint.place().to_owned()).or_default();
            here.insert(name.clone());
            touched.extend(here.iter().cloned());
        }
        self.of.insert(name.clone(), endpoints);
        touched
    }

    /// A host that is gone. The hosts whose [`Self::with`] may be another one.
    pub fn remove(&mut self, name: &HostName) -> BTreeSet<HostName> {
        let mut touched = BTreeSet::new();
        for endpoint in self.of.remove(name).unwrap_or_default() {
            let Some(here) = self.at.get_mut(endpoint.place()) else {
                continue;
            };
            here.remove(name);
            touched.extend(here.iter().cloned());
            if here.is_empty() {
                self.at.remove(endpoint.place());
            }
        }
        touched
    }

    /// The other hosts that name one of its BMCs.
    pub fn with(&self, name: &HostName) -> Vec<HostName> {
        let Some(own) = self.of.get(name) else {
            return Vec::new();
        };
        let near = own
            .iter()
            .filter_map(|it| self.at.get(it.place()))
            .flatten();
        let near: BTreeSet<&HostName> = near.filter(|other| *other != name).collect();
        let shares = |other: &&&HostName| {
            let theirs = self.of.get(**other).into_iter().flatten();
            theirs
                .into_iter()
                .any(|its| own.iter().any(|ours| ours.overlaps(its)))
        };
        near.iter()
            .filter(shares)
            .map(|other| (*other).clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::{Address, Device};

    fn levels(addresses: &[&str]) -> Vec<Level> {
        let device = |text: &&str| Device {
            address: Address::parse(text),
            credentials: "s".into(),
            verify: true,
        };
        vec![Level {
            devices: addresses.iter().map(device).collect(),
        }]
    }

    fn name(name: &str) -> HostName {
        HostName::new("site", name)
    }

    #[test]
    fn who_names_one_bmc_is_told_of_the_other_and_both_when_it_ends() {
        let mut sharing = Sharing::default();
        let (a, b, c) = (name("a"), name("b"), name("c"));
        sharing.put(
            &a,
            &levels(&["redfish://h/redfish/v1/Systems/1", "not an address"]),
        );
        sharing.put(&b, &levels(&["redfish://h/redfish/v1/Systems/2"]));
        assert_eq!(sharing.with(&a), []);
        let touched = sharing.put(&c, &levels(&["fence+fence_apc://p?plug=1", "ipmi://h"]));
        assert_eq!(touched, [a.clone(), b.clone(), c.clone()].into());
        assert_eq!(sharing.with(&a), [name("c")]);
        assert_eq!(sharing.with(&c), [a.clone(), b.clone()]);
        assert_eq!(
            sharing.put(&c, &levels(&["fence+fence_apc://p?plug=1", "ipmi://h"])),
            [].into()
        );
        assert_eq!(sharing.remove(&c), [a.clone(), b].into());
        assert_eq!(sharing.with(&a), []);
        assert_eq!(sharing.with(&c), []);
    }

    #[test]
    fn one_host_may_name_a_bmc_twice() {
        let mut sharing = Sharing::default();
        sharing.put(&name("a"), &levels(&["redfish://h", "ipmi://h"]));
        assert_eq!(sharing.with(&name("a")), []);
    }
}
