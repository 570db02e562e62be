//! Hosts that name one BMC: the off of one would be taken for the off of the other. The one that was there first keeps
//! it; the others do nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::address::Endpoint;
use super::host::{HostName, Level};
use super::seniority::Seniority;

/// Which hosts name which BMCs, kept up to date one host at a time.
#[derive(Debug, Clone, Default)]
pub struct Sharing {
    of: BTreeMap<HostName, Claims>,
    at: BTreeMap<String, BTreeSet<HostName>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Claims {
    seniority: Seniority,
    endpoints: BTreeSet<Endpoint>,
}

impl Sharing {
    /// A host as it stands now. The hosts whose [`Self::before`] may be another one: none where it names
    /// what it named before.
    pub fn put(
        &mut self,
        name: &HostName,
        seniority: Seniority,
        levels: &[Level],
    ) -> BTreeSet<HostName> {
        let devices = levels.iter().flat_map(|level| &level.devices);
        let addresses = devices.filter_map(|device| device.address.as_ref().ok());
        let claims = Claims {
            seniority,
            endpoints: addresses.map(super::Address::endpoint).collect(),
        };
        if self.of.get(name) == Some(&claims) {
            return BTreeSet::new();
        }
        let mut touched = self.remove(name);
        for endpoint in &claims.endpoints {
            let here = self.at.entry(endpoint.place().to_owned()).or_default();
            here.insert(name.clone());
            touched.extend(here.iter().cloned());
        }
        self.of.insert(name.clone(), claims);
        touched
    }

    /// A host that is gone. The hosts whose [`Self::before`] may be another one.
    pub fn remove(&mut self, name: &HostName) -> BTreeSet<HostName> {
        let mut touched = BTreeSet::new();
        let claims = self.of.remove(name);
        let endpoints = claims.map(|claims| claims.endpoints);
        for endpoint in endpoints.unwrap_or_default() {
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

    /// The other hosts that name one of its BMCs and go before it: they keep it.
    pub fn before(&self, name: &HostName) -> Vec<HostName> {
        let Some(own) = self.of.get(name) else {
            return Vec::new();
        };
        let places = own.endpoints.iter();
        let near = places.filter_map(|it| self.at.get(it.place())).flatten();
        let near: BTreeSet<&HostName> = near.filter(|other| *other != name).collect();
        let goes_before = |other: &&&HostName| {
            let theirs = self.of.get(**other);
            theirs.is_some_and(|theirs| theirs.seniority < own.seniority && theirs.overlap(own))
        };
        let before = near.iter().filter(goes_before);
        before.map(|other| (*other).clone()).collect()
    }
}

impl Claims {
    fn overlap(&self, other: &Self) -> bool {
        let mut all = self.endpoints.iter();
        all.any(|its| other.endpoints.iter().any(|theirs| theirs.overlaps(its)))
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;
    use crate::power::tests::world::host;
    use crate::power::{Address, Device, OwnerRules};

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

    /// Of a host that was created at this second.
    fn age(second: i64) -> Seniority {
        aged("site", second, "u")
    }

    fn aged(namespace: &str, second: i64, uid: &str) -> Seniority {
        let mut host = host(&[], true);
        host.name.namespace = namespace.into();
        host.created = jiff::Timestamp::from_second(second).ok();
        host.uid = uid.into();
        let ours = OwnerRules {
            host_namespaces: ["ours".to_owned()].into(),
            ..OwnerRules::default()
        };
        Seniority::of(&host, &ours)
    }

    #[test]
    fn who_names_one_bmc_later_is_told_of_the_earlier_and_not_the_other_way_round() {
        let mut sharing = Sharing::default();
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let one = "redfish://h/redfish/v1/Systems/1";
        sharing.put(&a, age(2), &levels(&[one, "not an address"]));
        let two = "redfish://h/redfish/v1/Systems/2";
        sharing.put(&b, age(1), &levels(&[two]));
        assert_eq!(sharing.before(&a), []);
        let both = levels(&["fence+fence_apc://p?plug=1", "ipmi://h"]);
        let touched = sharing.put(&c, age(3), &both);
        assert_eq!(touched, [a.clone(), b.clone(), c.clone()].into());
        assert_eq!((sharing.before(&a), sharing.before(&b)), (vec![], vec![]));
        assert_eq!(sharing.before(&c), [a.clone(), b.clone()]);
        assert_eq!(sharing.put(&c, age(3), &both), [].into());
        assert_eq!(sharing.remove(&a), [b.clone(), c.clone()].into());
        assert_eq!(sharing.before(&c), from_ref(&b));
        assert_eq!(sharing.remove(&b), [c.clone()].into());
        assert_eq!(sharing.before(&c), [], "it has it alone now");
    }

    #[test]
    fn a_claim_on_a_victims_bmc_takes_it_from_nobody_whatever_its_names_are() {
        for (victim, attacker) in [
            (aged("site", 1, "u"), aged("site", 2, "a")),
            (aged("site", 1, "a"), aged("site", 1, "u")),
            (aged("ours", 9, "u"), aged("site", 1, "a")),
        ] {
            let mut sharing = Sharing::default();
            let same = levels(&["ipmi://h"]);
            sharing.put(&HostName::new("aaa", "attacker"), attacker, &same);
            sharing.put(&name("victim"), victim, &same);
            assert_eq!(sharing.before(&name("victim")), []);
            let refused = sharing.before(&HostName::new("aaa", "attacker"));
            assert_eq!(refused, [name("victim")]);
        }
    }

    #[test]
    fn one_host_may_name_a_bmc_twice() {
        let mut sharing = Sharing::default();
        sharing.put(&name("a"), age(1), &levels(&["redfish://h", "ipmi://h"]));
        assert_eq!(sharing.before(&name("a")), []);
    }
}
