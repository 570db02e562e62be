//! metal3's own controller: whether one lives, by its leader's Lease and our monotonic clock, and whose
//! a host is therefore. Two controllers on one BMC would undo each other's proofs.
//!
//! Source: specification §3.2, "Whose hosts"; client-go's `leaderelection`, which believes no other
//! clock either.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::host::Host;
use super::seen::Owner;

/// metal3's annotation that makes its controller leave a host alone, whatever its value.
const PAUSED: &str = "baremetalhost.metal3.io/paused";

/// How much longer than its Lease's time a leader may be silent: answers are on their way.
const GRACE: Duration = Duration::from_secs(5);

/// However long its Lease says that it lasts: whoever may write one could else say "for ever". Source: specification
/// §6, "metal3's leader".
const LONGEST: Duration = Duration::from_mins(5);

/// Where the shipped baremetal-operators run: upstream's, Cluster API's provider's, OpenShift's.
pub const METAL3_NAMESPACES: [&str; 3] = [
    "baremetal-operator-system",
    "capm3-system",
    "openshift-machine-api",
];

/// Whose hosts are whose, by the flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerRules {
    /// `--host-namespaces`: hosts there are ours, whoever else lives.
    pub host_namespaces: BTreeSet<String>,
    /// `--metal3-namespaces`: where a leader of metal3's is believed. Anybody may make a Lease of its name elsewhere.
    pub metal3_namespaces: BTreeSet<String>,
}

impl Default for OwnerRules {
    fn default() -> Self {
        Self {
            host_namespaces: BTreeSet::new(),
            metal3_namespaces: METAL3_NAMESPACES.map(str::to_owned).into(),
        }
    }
}

/// A leader's Lease as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorLease {
    /// Its namespace; its name is known.
    pub namespace: String,
    /// Who holds it; `None`: it was given back, or never taken.
    pub holder: Option<String>,
    /// When it was renewed, by a clock that is not ours: only a change of it means anything.
    pub renewed: Option<Timestamp>,
    /// How long it lasts.
    pub length: Duration,
}

/// Everything that was seen of such Leases. Times are monotonic.
#[derive(Debug, Clone, Default)]
pub struct Operators {
    known: bool,
    leases: BTreeMap<String, Sighting>,
}

#[derive(Debug, Clone)]
struct Sighting {
    lease: OperatorLease,
    /// When it was last seen to change, or was first seen.
    since: Duration,
    life: Life,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// It was there when we came; whether anybody renews it is not known yet.
    Unproven,
    /// It was seen to change.
    Alive,
    /// A read that was asked after its time had run out shows it unchanged.
    Dead,
}

impl Operators {
    /// One was seen, on a watch: what is new there was written a moment ago.
    pub fn saw(&mut self, lease: OperatorLease, now: Duration) {
        self.put(lease, Life::Alive, None, now);
    }

    /// One is gone.
    pub fn gone(&mut self, namespace: &str) {
        self.leases.remove(namespace);
    }

    /// These are all that there are. `asked`: when that was asked, if it was asked to learn who is
    /// dead; a watch's own list is not, for it may be an answer to a question of long ago.
    pub fn listed(&mut self, all: Vec<OperatorLease>, asked: Option<Duration>, now: Duration) {
        let there: BTreeSet<String> = all.iter().map(|lease| lease.namespace.clone()).collect();
        self.leases.retain(|namespace, _| there.contains(namespace));
        // In the first list nothing is new.
        let life = if self.known {
            Life::Alive
        } else {
            Life::Unproven
        };
        for lease in all {
            self.put(lease, life, asked, now);
        }
        self.known = true;
    }

    fn put(&mut self, lease: OperatorLease, new: Life, asked: Option<Duration>, now: Duration) {
        if lease.holder.is_none() {
            self.leases.remove(&lease.namespace);
            return;
        }
        let life = match self.leases.get_mut(&lease.namespace) {
            Some(known) if known.lease == lease => {
                if asked.is_some_and(|asked| asked >= known.expires()) {
                    known.life = Life::Dead;
                }
                return;
            }
            Some(_) => Life::Alive,
            None => new,
        };
        let sighting = Sighting {
            lease,
            since: now,
            life,
        };
        self.leases
            .insert(sighting.lease.namespace.clone(), sighting);
    }

    /// When all of them have to be listed afresh, and [`Self::listed`] told: a watch that is silent
    /// proves nobody dead.
    pub fn look_at(&self, rules: &OwnerRules) -> Option<Duration> {
        let doubtful = self.believed(rules).filter(|it| it.life != Life::Dead);
        doubtful.map(Sighting::expires).min()
    }

    /// Whether it is ours whoever lives.
    pub fn is_ours_anyway(host: &Host, rules: &OwnerRules) -> bool {
        rules.host_namespaces.contains(&host.name.namespace)
            || host.annotations.contains_key(PAUSED)
    }

    /// Whose this host is. A host that is paused for metal3's controller, or in one of our namespaces, is
    /// ours whoever lives.
    pub fn owner(&self, host: &Host, rules: &OwnerRules) -> Owner {
        if Self::is_ours_anyway(host, rules) {
            return Owner::Ours;
        }
        let mut leaders = self.believed(rules);
        if let Some(alive) = leaders.find(|it| it.life == Life::Alive) {
            return Owner::Theirs {
                leader: alive.lease.holder.clone().unwrap_or_default(),
            };
        }
        let is_doubtful = self.believed(rules).any(|it| it.life == Life::Unproven);
        if self.known && !is_doubtful {
            Owner::Ours
        } else {
            Owner::NotYetKnown
        }
    }

    fn believed<'a>(&'a self, rules: &'a OwnerRules) -> impl Iterator<Item = &'a Sighting> {
        let namespaces = &rules.metal3_namespaces;
        let all = self.leases.iter();
        all.filter(|(namespace, _)| namespaces.contains(*namespace))
            .map(|(_, sighting)| sighting)
    }

    /// Leases of a leader's name where no leader is believed: the namespaces, and who holds each.
    pub fn not_believed<'a>(
        &'a self,
        rules: &'a OwnerRules,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let others = self.leases.iter();
        let others = others.filter(|(at, _)| !rules.metal3_namespaces.contains(*at));
        others.map(|(at, it)| (at.as_str(), it.lease.holder.as_deref().unwrap_or_default()))
    }
}

impl Sighting {
    fn expires(&self) -> Duration {
        let lasts = self.lease.length.saturating_add(GRACE);
        self.since + lasts.min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::{HostName, HostStatus};

    fn host(namespace: &str, paused: bool) -> Host {
        let paused = paused.then(|| (PAUSED.to_owned(), "metal3.io/capm3".to_owned()));
        Host {
            name: HostName::new(namespace, "h"),
            uid: String::new(),
            resource_version: String::new(),
            deleting: false,
            annotations: paused.into_iter().collect(),
            online: true,
            externally_provisioned: None,
            disable_power_off: false,
            created: None,
            consumer: None,
            levels: Vec::new(),
            status: HostStatus::default(),
        }
    }

    fn lease(holder: Option<&str>, renewed: i64) -> OperatorLease {
        OperatorLease {
            namespace: "metal3".into(),
            holder: holder.map(str::to_owned),
            renewed: Timestamp::from_second(renewed).ok(),
            length: Duration::from_secs(15),
        }
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn owner(operators: &Operators) -> Owner {
        operators.owner(&host("site", false), &rules(&[]))
    }

    fn rules(host_namespaces: &[&str]) -> OwnerRules {
        let names = host_namespaces.iter().map(|name| (*name).to_owned());
        OwnerRules {
            host_namespaces: names.collect(),
            metal3_namespaces: ["metal3".to_owned()].into(),
        }
    }

    fn theirs() -> Owner {
        Owner::Theirs {
            leader: "bmo-1".into(),
        }
    }

    #[test]
    fn nothing_is_ours_before_it_is_known_who_lives() {
        let mut operators = Operators::default();
        assert_eq!(owner(&operators), Owner::NotYetKnown);
        operators.listed(Vec::new(), None, s(1));
        assert_eq!(owner(&operators), Owner::Ours);
        assert_eq!(operators.look_at(&rules(&[])), None);
    }

    #[test]
    fn a_lease_that_moves_is_a_live_leaders_and_one_that_does_not_is_dead_only_by_a_fresh_read() {
        let mut operators = Operators::default();
        operators.listed(vec![lease(Some("bmo-1"), 100)], None, s(10));
        assert_eq!(owner(&operators), Owner::NotYetKnown);
        assert_eq!(operators.look_at(&rules(&[])), Some(s(30)));
        // Silence of the watch, and a list that was asked too early, or of which nobody knows when.
        operators.listed(vec![lease(Some("bmo-1"), 100)], Some(s(29)), s(31));
        operators.listed(vec![lease(Some("bmo-1"), 100)], None, s(40));
        assert_eq!(owner(&operators), Owner::NotYetKnown);
        let mut alive = operators.clone();
        alive.saw(lease(Some("bmo-1"), 102), s(40));
        assert_eq!(owner(&alive), theirs());
        assert_eq!(alive.look_at(&rules(&[])), Some(s(60)));
        operators.listed(vec![lease(Some("bmo-1"), 100)], Some(s(40)), s(41));
        assert_eq!(owner(&operators), Owner::Ours);
        assert_eq!(operators.look_at(&rules(&[])), None);
        operators.saw(lease(Some("bmo-1"), 103), s(50));
        assert_eq!(owner(&operators), theirs());
        // It dies while we watch.
        operators.listed(vec![lease(Some("bmo-1"), 103)], Some(s(70)), s(71));
        assert_eq!(owner(&operators), Owner::Ours);
    }

    #[test]
    fn a_lease_that_is_new_or_given_back_says_so_at_once() {
        let mut operators = Operators::default();
        operators.listed(vec![lease(None, 100)], None, s(1));
        assert_eq!(owner(&operators), Owner::Ours);
        operators.saw(lease(Some("bmo-1"), 101), s(2));
        assert_eq!(owner(&operators), theirs());
        operators.saw(lease(None, 101), s(3));
        assert_eq!(owner(&operators), Owner::Ours);
        operators.listed(vec![lease(Some("bmo-1"), 102)], None, s(4));
        assert_eq!(owner(&operators), theirs());
        operators.gone("metal3");
        assert_eq!(owner(&operators), Owner::Ours);
        operators.saw(lease(Some("bmo-1"), 103), s(5));
        operators.listed(Vec::new(), None, s(6));
        assert_eq!(owner(&operators), Owner::Ours);
    }

    #[test]
    fn paused_hosts_and_named_namespaces_are_ours_whoever_lives() {
        let mut operators = Operators::default();
        operators.saw(lease(Some("bmo-1"), 101), s(2));
        let ours = rules(&["edge"]);
        for (host, expected) in [
            (host("site", false), theirs()),
            (host("site", true), Owner::Ours),
            (host("edge", false), Owner::Ours),
        ] {
            assert_eq!(operators.owner(&host, &ours), expected, "{host:?}");
        }
    }

    #[test]
    fn a_leader_is_believed_only_where_metal3_runs_and_what_is_elsewhere_is_reported() {
        let mut operators = Operators::default();
        let attack = OperatorLease {
            namespace: "team-a".into(),
            length: Duration::from_secs(2_147_483_647),
            ..lease(Some("me"), 1)
        };
        operators.listed(vec![attack.clone()], None, s(1));
        assert_eq!(owner(&operators), Owner::Ours, "not even doubtful");
        for second in 2..100 {
            let renewed = Timestamp::from_second(second).ok();
            let renewed = OperatorLease {
                renewed,
                ..attack.clone()
            };
            operators.saw(renewed, s(2));
            assert_eq!(owner(&operators), Owner::Ours);
        }
        assert_eq!(operators.look_at(&rules(&[])), None);
        let rules = rules(&[]);
        let reported: Vec<_> = operators.not_believed(&rules).collect();
        assert_eq!(reported, [("team-a", "me")]);
        operators.saw(lease(Some("bmo-1"), 1), s(3));
        assert_eq!(owner(&operators), theirs());
    }

    #[test]
    fn no_lease_is_believed_for_longer_than_five_minutes_without_a_renewal() {
        let endless = |renewed| OperatorLease {
            length: Duration::from_secs(2_147_483_647),
            ..lease(Some("bmo-1"), renewed)
        };
        let mut operators = Operators::default();
        operators.listed(vec![endless(1)], None, s(10));
        assert_eq!(owner(&operators), Owner::NotYetKnown);
        assert_eq!(operators.look_at(&rules(&[])), Some(s(310)));
        operators.saw(endless(2), s(100));
        assert_eq!(owner(&operators), theirs());
        operators.listed(vec![endless(2)], Some(s(400)), s(401));
        assert_eq!(owner(&operators), Owner::Ours);
    }
}
