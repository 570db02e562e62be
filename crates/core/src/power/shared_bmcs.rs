//! Finds hosts that name the same BMC: the off of one would be taken for the off of the other. The
//! senior host keeps the BMC; Dogwatch does nothing to the others.

use std::collections::{BTreeMap, BTreeSet};

use super::address::{BmcAddress, BmcEndpoint};
use super::host::{HostName, PowerLevel};
use super::seniority::HostSeniority;

/// The BMCs that each host names, updated one host at a time.
#[derive(Debug, Clone, Default)]
pub struct SharedBmcs {
    by_host: BTreeMap<HostName, BmcClaims>,
    /// One flat set: most BMCs have one host, and a set of one takes as much memory as one of eleven.
    by_location: BTreeSet<(String, HostName)>,
}

#[derive(Debug, Clone, PartialEq)]
struct BmcClaims {
    seniority: HostSeniority,
    /// Sorted, each once.
    endpoints: Box<[BmcEndpoint]>,
}

impl SharedBmcs {
    /// Adds or updates a host. Returns the hosts whose [`Self::senior_hosts`] may have changed:
    /// none if the host names the same BMCs as before.
    pub fn put_host(
        &mut self,
        name: &HostName,
        seniority: HostSeniority,
        levels: &[PowerLevel],
    ) -> BTreeSet<HostName> {
        let devices = levels.iter().flat_map(|level| &level.devices);
        let addresses = devices.filter_map(|device| device.address.as_ref().ok());
        let endpoints: BTreeSet<BmcEndpoint> = addresses.map(BmcAddress::endpoint).collect();
        let claims = BmcClaims {
            seniority,
            endpoints: endpoints.into_iter().collect(),
        };
        if self.by_host.get(name) == Some(&claims) {
            return BTreeSet::new();
        }
        let mut touched = self.remove_host(name);
        for key in claims.index_keys() {
            self.by_location.insert((key.to_owned(), name.clone()));
            touched.extend(self.list_hosts_at(key).cloned());
        }
        self.by_host.insert(name.clone(), claims);
        touched
    }

    /// Removes a host. Returns the hosts whose [`Self::senior_hosts`] may have changed.
    pub fn remove_host(&mut self, name: &HostName) -> BTreeSet<HostName> {
        let mut touched = BTreeSet::new();
        let claims = self.by_host.remove(name);
        for key in claims.iter().flat_map(BmcClaims::index_keys) {
            self.by_location.remove(&(key.to_owned(), name.clone()));
            touched.extend(self.list_hosts_at(key).cloned());
        }
        touched
    }

    fn list_hosts_at(&self, key: &str) -> impl Iterator<Item = &HostName> {
        let first = (key.to_owned(), HostName::new("", ""));
        let from = self.by_location.range(first..);
        from.take_while(move |(other, _)| other == key)
            .map(|(_, host)| host)
    }

    /// The senior hosts that name one of this host's BMCs: they keep it.
    pub fn senior_hosts(&self, name: &HostName) -> Vec<HostName> {
        let Some(own) = self.by_host.get(name) else {
            return Vec::new();
        };
        let near = own.index_keys().flat_map(|key| self.list_hosts_at(key));
        let near: BTreeSet<&HostName> = near.filter(|other| *other != name).collect();
        let goes_before = |other: &&&HostName| {
            let theirs = self.by_host.get(**other);
            theirs
                .is_some_and(|theirs| theirs.seniority < own.seniority && theirs.overlaps_with(own))
        };
        let before = near.iter().filter(goes_before);
        before.map(|other| (*other).clone()).collect()
    }
}

impl BmcClaims {
    fn index_keys(&self) -> impl Iterator<Item = &str> {
        self.endpoints.iter().flat_map(BmcEndpoint::index_keys)
    }

    fn overlaps_with(&self, other: &Self) -> bool {
        let mut all = self.endpoints.iter();
        all.any(|its| other.endpoints.iter().any(|theirs| theirs.may_overlap(its)))
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;
    use crate::power::tests::world::host;
    use crate::power::{BmcAddress, OwnerRules, PowerDevice};

    fn levels(addresses: &[&str]) -> Vec<PowerLevel> {
        let device = |text: &&str| PowerDevice {
            address: BmcAddress::parse(text),
            credentials: "s".into(),
            verify: true,
        };
        vec![PowerLevel {
            devices: addresses.iter().map(device).collect(),
        }]
    }

    fn name(name: &str) -> HostName {
        HostName::new("site", name)
    }

    /// The seniority of a host that was created at this second.
    fn age(second: i64) -> HostSeniority {
        aged("site", second, "u")
    }

    fn aged(namespace: &str, second: i64, uid: &str) -> HostSeniority {
        let mut host = host(&[], true);
        host.name.namespace = namespace.into();
        host.created = jiff::Timestamp::from_second(second).ok();
        host.uid = uid.into();
        let ours = OwnerRules {
            host_namespaces: ["ours".to_owned()].into(),
            ..OwnerRules::default()
        };
        HostSeniority::of_host(&host, &ours)
    }

    #[test]
    fn who_names_one_bmc_later_is_told_of_the_earlier_and_not_the_other_way_round() {
        let mut sharing = SharedBmcs::default();
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let one = "redfish://h/redfish/v1/Systems/1";
        sharing.put_host(&a, age(2), &levels(&[one, "not an address"]));
        let two = "redfish://h/redfish/v1/Systems/2";
        sharing.put_host(&b, age(1), &levels(&[two]));
        assert_eq!(sharing.senior_hosts(&a), []);
        let both = levels(&["fence+fence_apc://p?plug=1", "ipmi://h"]);
        let touched = sharing.put_host(&c, age(3), &both);
        assert_eq!(touched, [a.clone(), b.clone(), c.clone()].into());
        assert_eq!(
            (sharing.senior_hosts(&a), sharing.senior_hosts(&b)),
            (vec![], vec![])
        );
        assert_eq!(sharing.senior_hosts(&c), [a.clone(), b.clone()]);
        assert_eq!(sharing.put_host(&c, age(3), &both), [].into());
        assert_eq!(sharing.remove_host(&a), [b.clone(), c.clone()].into());
        assert_eq!(sharing.senior_hosts(&c), from_ref(&b));
        assert_eq!(sharing.remove_host(&b), [c.clone()].into());
        assert_eq!(sharing.senior_hosts(&c), [], "it has it alone now");
    }

    #[test]
    fn a_claim_on_a_victims_bmc_takes_it_from_nobody_whatever_its_names_are() {
        for (victim, attacker) in [
            (aged("site", 1, "u"), aged("site", 2, "a")),
            (aged("site", 1, "a"), aged("site", 1, "u")),
            (aged("ours", 9, "u"), aged("site", 1, "a")),
        ] {
            let mut sharing = SharedBmcs::default();
            let same = levels(&["ipmi://h"]);
            sharing.put_host(&HostName::new("aaa", "attacker"), attacker, &same);
            sharing.put_host(&name("victim"), victim, &same);
            assert_eq!(sharing.senior_hosts(&name("victim")), []);
            let refused = sharing.senior_hosts(&HostName::new("aaa", "attacker"));
            assert_eq!(refused, [name("victim")]);
        }
    }

    #[test]
    fn an_outlet_is_found_also_where_only_one_host_names_the_port_of_its_pdu() {
        let (with, without) = (
            levels(&["fence+fence_apc://p:22?plug=2"]),
            levels(&["fence+fence_apc://p?plug=2"]),
        );
        for (elder, younger) in [(&with, &without), (&without, &with)] {
            let mut sharing = SharedBmcs::default();
            sharing.put_host(&name("a"), age(1), elder);
            let touched = sharing.put_host(&name("b"), age(2), younger);
            assert!(touched.contains(&name("a")), "{touched:?}");
            assert_eq!(sharing.senior_hosts(&name("b")), [name("a")]);
            assert_eq!(sharing.remove_host(&name("a")), [name("b")].into());
            assert_eq!(sharing.senior_hosts(&name("b")), []);
        }
    }

    #[test]
    fn one_host_may_name_a_bmc_twice() {
        let mut sharing = SharedBmcs::default();
        sharing.put_host(&name("a"), age(1), &levels(&["redfish://h", "ipmi://h"]));
        assert_eq!(sharing.senior_hosts(&name("a")), []);
    }
}
