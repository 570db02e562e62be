//! Compares the `spec.providerID` of Machines and Nodes.
//!
//! A provider id never selects a host, because a kubelet may write its own. But two ids that differ
//! do not belong to one machine.

use crate::power::HostSnapshot;

/// The parts of metal3's provider ids. Source: Cluster API's provider for metal3 (`metal3://UID`,
/// later `metal3://NAMESPACE/HOST/METAL3MACHINE`); OpenShift's (`baremetalhost:///NAMESPACE/HOST`,
/// later with `/UID`).
#[derive(Debug, Default, PartialEq, Eq)]
struct ProviderId<'a> {
    host: Option<(&'a str, &'a str)>,
    uid: Option<&'a str>,
    machine: Option<&'a str>,
}

/// Whether two ids cannot belong to one machine. An older form of a metal3 id has fewer parts than
/// a newer one of the same machine, so only the parts that both have are compared.
pub(crate) fn ids_contradict(one: &str, other: &str) -> bool {
    match (
        ProviderId::parse_provider_id(one),
        ProviderId::parse_provider_id(other),
    ) {
        (Some(one), Some(other)) => one.contradicts(&other),
        (None, _) | (_, None) => one != other,
    }
}

/// Whether the id names this host, by its name or its UID.
pub(super) fn names_host(id: &str, host: &HostSnapshot) -> bool {
    let Some(told) = ProviderId::parse_provider_id(id) else {
        return false;
    };
    let is_named = told.host == Some((&host.name.namespace, &host.name.name));
    let is_it = told.uid.is_none_or(|uid| uid == host.uid);
    (is_named || told.host.is_none() && told.uid.is_some()) && is_it
}

impl<'a> ProviderId<'a> {
    fn parse_provider_id(id: &'a str) -> Option<Self> {
        if let Some(rest) = id.strip_prefix("baremetalhost:///") {
            let mut parts = rest.splitn(3, '/');
            return Some(Self {
                host: Some((parts.next()?, parts.next()?)),
                uid: parts.next(),
                machine: None,
            });
        }
        let mut parts = id.strip_prefix("metal3://")?.splitn(3, '/');
        Some(match (parts.next()?, parts.next(), parts.next()) {
            (uid, None, _) => Self {
                uid: Some(uid),
                ..Self::default()
            },
            (namespace, Some(host), machine) => Self {
                host: Some((namespace, host)),
                uid: None,
                machine,
            },
        })
    }

    fn contradicts(&self, other: &Self) -> bool {
        fn both_differ<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.zip(other).is_some_and(|(one, other)| one != other)
        }
        both_differ(self.host, other.host)
            || both_differ(self.uid, other.uid)
            || both_differ(self.machine, other.machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_a_host_by_its_name_and_its_uid_as_far_as_it_tells_them() {
        let host = crate::power::tests::world::host(&[], true);
        assert_eq!((&*host.name.to_string(), &*host.uid), ("hosts/h1", "uid"));
        for (id, is_it) in [
            ("baremetalhost:///hosts/h1", true),
            ("baremetalhost:///hosts/h1/uid", true),
            ("baremetalhost:///hosts/h1/another", false),
            ("baremetalhost:///hosts/h2/uid", false),
            ("metal3://hosts/h1/m", true),
            ("metal3://other/h1/m", false),
            ("metal3://uid", true),
            ("metal3://another", false),
            ("metal3://", false),
            ("aws:///a/i-1", false),
        ] {
            assert_eq!(names_host(id, &host), is_it, "{id}");
        }
    }

    #[test]
    fn two_ids_that_tell_of_two_machines_contradict_and_an_older_form_of_one_does_not() {
        for (one, other, is_contradiction) in [
            ("metal3://m/h/a", "metal3://m/h/a", false),
            ("metal3://m/h/a", "metal3://m/h/b", true),
            ("metal3://m/h/a", "metal3://m/g/a", true),
            ("metal3://m/h/a", "metal3://n/h/a", true),
            ("metal3://m/h", "metal3://m/h/a", false),
            ("metal3://uid-1", "metal3://uid-1", false),
            ("metal3://uid-1", "metal3://uid-2", true),
            ("metal3://uid-1", "metal3://m/h/a", false),
            ("baremetalhost:///m/h", "baremetalhost:///m/h/uid-1", false),
            ("baremetalhost:///m/h", "baremetalhost:///m/g/uid-1", true),
            ("baremetalhost:///m/h/1", "baremetalhost:///m/h/2", true),
            ("baremetalhost:///m/h/1", "metal3://m/h/a", false),
            ("baremetalhost:///m/h/1", "metal3://1", false),
            ("baremetalhost:///m/h/1", "metal3://2", true),
            ("baremetalhost:///m/h/1", "metal3://m/g/a", true),
            ("aws:///a/i-1", "aws:///a/i-1", false),
            ("aws:///a/i-1", "aws:///a/i-2", true),
            ("aws:///a/i-1", "metal3://m/h/a", true),
            ("metal3://", "metal3://uid-1", true),
        ] {
            assert_eq!(
                ids_contradict(one, other),
                is_contradiction,
                "{one} {other}"
            );
            assert_eq!(
                ids_contradict(other, one),
                is_contradiction,
                "{other} {one}"
            );
        }
    }
}
