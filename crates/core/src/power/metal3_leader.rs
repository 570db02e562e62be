//! Detects whether metal3's own controller lives, by its leader's Lease and this process' monotonic
//! clock, and derives who owns a host. Two controllers on one BMC would undo each other's proofs.
//!
//! Source: specification §3.2, "Whose hosts"; client-go's `leaderelection`, which does not trust
//! another machine's clock either.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::host::HostSnapshot;
use super::snapshot::HostOwner;

/// metal3's annotation that makes its controller leave a host alone, whatever the value.
const PAUSED_ANNOTATION: &str = "baremetalhost.metal3.io/paused";

/// A leader may be silent this much longer than its Lease lasts, because answers take time.
const LEASE_GRACE: Duration = Duration::from_secs(5);

/// The maximum that is believed of a Lease's duration: otherwise the writer of a Lease could block
/// Dogwatch for ever. Source: specification §6, "metal3's leader".
const MAX_LEASE_DURATION: Duration = Duration::from_mins(5);

/// Where shipped baremetal-operators run: upstream's, the Cluster API provider's, OpenShift's.
pub const METAL3_NAMESPACES: [&str; 3] = [
    "baremetal-operator-system",
    "capm3-system",
    "openshift-machine-api",
];

/// The flags that decide who owns a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerRules {
    /// `--host-namespaces`: Dogwatch owns the hosts there, even while metal3's controller lives.
    pub host_namespaces: BTreeSet<String>,
    /// `--metal3-namespaces`: where metal3's leader Lease is trusted. Anybody may create one
    /// elsewhere.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metal3LeaderLease {
    pub namespace: String,
    /// `None`: it was released, or never taken.
    pub holder: Option<String>,
    /// `renewTime`, by another machine's clock: only a change of it means anything.
    pub renewed: Option<Timestamp>,
    /// How long the Lease lasts without renewal.
    pub length: Duration,
}

/// All observed leader Leases of metal3's. Times are monotonic.
#[derive(Debug, Clone, Default)]
pub struct Metal3Leaders {
    known: bool,
    leases: BTreeMap<String, TrackedLeaderLease>,
}

#[derive(Debug, Clone)]
struct TrackedLeaderLease {
    lease: Metal3LeaderLease,
    /// When the Lease last changed, or was first observed.
    since: Duration,
    life: LeaderLiveness,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaderLiveness {
    /// It existed when this process started; whether anybody renews it is not known yet.
    Unproven,
    Alive,
    /// A read that was requested after the Lease had expired shows it unchanged.
    Dead,
}

impl Metal3Leaders {
    /// Takes in a Lease from a watch: a change there was written a moment ago.
    pub fn observe_lease(&mut self, lease: Metal3LeaderLease, now: Duration) {
        self.put_lease(lease, LeaderLiveness::Alive, None, now);
    }

    pub fn remove_lease(&mut self, namespace: &str) {
        self.leases.remove(namespace);
    }

    /// Takes in a complete list. `asked`: when it was requested, if it was requested to learn who
    /// is dead. `None` for a watch's own list, which may answer an old request.
    pub fn apply_lease_list(
        &mut self,
        all: Vec<Metal3LeaderLease>,
        asked: Option<Duration>,
        now: Duration,
    ) {
        let there: BTreeSet<String> = all.iter().map(|lease| lease.namespace.clone()).collect();
        self.leases.retain(|namespace, _| there.contains(namespace));
        // The first list does not show what changed.
        let life = if self.known {
            LeaderLiveness::Alive
        } else {
            LeaderLiveness::Unproven
        };
        for lease in all {
            self.put_lease(lease, life, asked, now);
        }
        self.known = true;
    }

    fn put_lease(
        &mut self,
        lease: Metal3LeaderLease,
        new: LeaderLiveness,
        asked: Option<Duration>,
        now: Duration,
    ) {
        if lease.holder.is_none() {
            self.leases.remove(&lease.namespace);
            return;
        }
        let life = match self.leases.get_mut(&lease.namespace) {
            Some(known) if known.lease == lease => {
                if asked.is_some_and(|asked| asked >= known.expires_at()) {
                    known.life = LeaderLiveness::Dead;
                }
                return;
            }
            Some(_) => LeaderLiveness::Alive,
            None => new,
        };
        let sighting = TrackedLeaderLease {
            lease,
            since: now,
            life,
        };
        self.leases
            .insert(sighting.lease.namespace.clone(), sighting);
    }

    /// When all Leases have to be listed afresh, for [`Self::apply_lease_list`]: a silent watch
    /// proves nobody dead.
    pub fn next_list_at(&self, rules: &OwnerRules) -> Option<Duration> {
        let doubtful = self
            .trusted_leases(rules)
            .filter(|it| it.life != LeaderLiveness::Dead);
        doubtful.map(TrackedLeaderLease::expires_at).min()
    }

    /// Whether Dogwatch owns the host even while metal3's controller lives.
    pub fn is_always_ours(host: &HostSnapshot, rules: &OwnerRules) -> bool {
        rules.host_namespaces.contains(&host.name.namespace)
            || host.annotations.contains_key(PAUSED_ANNOTATION)
    }

    /// Who owns this host. Dogwatch always owns a host that is paused for metal3's controller, or
    /// that is in one of `host_namespaces`.
    pub fn host_owner(&self, host: &HostSnapshot, rules: &OwnerRules) -> HostOwner {
        if Self::is_always_ours(host, rules) {
            return HostOwner::Ours;
        }
        let mut leaders = self.trusted_leases(rules);
        if let Some(alive) = leaders.find(|it| it.life == LeaderLiveness::Alive) {
            return HostOwner::Metal3 {
                leader: alive.lease.holder.clone().unwrap_or_default(),
            };
        }
        let is_doubtful = self
            .trusted_leases(rules)
            .any(|it| it.life == LeaderLiveness::Unproven);
        if self.known && !is_doubtful {
            HostOwner::Ours
        } else {
            HostOwner::NotYetKnown
        }
    }

    fn trusted_leases<'a>(
        &'a self,
        rules: &'a OwnerRules,
    ) -> impl Iterator<Item = &'a TrackedLeaderLease> {
        let namespaces = &rules.metal3_namespaces;
        let all = self.leases.iter();
        all.filter(|(namespace, _)| namespaces.contains(*namespace))
            .map(|(_, sighting)| sighting)
    }

    /// Leases of the leader's name in namespaces that are not trusted, with their holders.
    pub fn untrusted_leases<'a>(
        &'a self,
        rules: &'a OwnerRules,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let others = self.leases.iter();
        let others = others.filter(|(at, _)| !rules.metal3_namespaces.contains(*at));
        others.map(|(at, it)| (at.as_str(), it.lease.holder.as_deref().unwrap_or_default()))
    }
}

impl TrackedLeaderLease {
    fn expires_at(&self) -> Duration {
        let lasts = self.lease.length.saturating_add(LEASE_GRACE);
        self.since + lasts.min(MAX_LEASE_DURATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::{HostName, HostStatus};

    fn host(namespace: &str, paused: bool) -> HostSnapshot {
        let paused = paused.then(|| (PAUSED_ANNOTATION.to_owned(), "metal3.io/capm3".to_owned()));
        HostSnapshot {
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

    fn lease(holder: Option<&str>, renewed: i64) -> Metal3LeaderLease {
        Metal3LeaderLease {
            namespace: "metal3".into(),
            holder: holder.map(str::to_owned),
            renewed: Timestamp::from_second(renewed).ok(),
            length: Duration::from_secs(15),
        }
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn owner(operators: &Metal3Leaders) -> HostOwner {
        operators.host_owner(&host("site", false), &rules(&[]))
    }

    fn rules(host_namespaces: &[&str]) -> OwnerRules {
        let names = host_namespaces.iter().map(|name| (*name).to_owned());
        OwnerRules {
            host_namespaces: names.collect(),
            metal3_namespaces: ["metal3".to_owned()].into(),
        }
    }

    fn theirs() -> HostOwner {
        HostOwner::Metal3 {
            leader: "bmo-1".into(),
        }
    }

    #[test]
    fn nothing_is_ours_before_it_is_known_who_lives() {
        let mut operators = Metal3Leaders::default();
        assert_eq!(owner(&operators), HostOwner::NotYetKnown);
        operators.apply_lease_list(Vec::new(), None, s(1));
        assert_eq!(owner(&operators), HostOwner::Ours);
        assert_eq!(operators.next_list_at(&rules(&[])), None);
    }

    #[test]
    fn a_lease_that_moves_is_a_live_leaders_and_one_that_does_not_is_dead_only_by_a_fresh_read() {
        let mut operators = Metal3Leaders::default();
        operators.apply_lease_list(vec![lease(Some("bmo-1"), 100)], None, s(10));
        assert_eq!(owner(&operators), HostOwner::NotYetKnown);
        assert_eq!(operators.next_list_at(&rules(&[])), Some(s(30)));
        // A silent watch, a list that was requested too early, or one without a time of request.
        operators.apply_lease_list(vec![lease(Some("bmo-1"), 100)], Some(s(29)), s(31));
        operators.apply_lease_list(vec![lease(Some("bmo-1"), 100)], None, s(40));
        assert_eq!(owner(&operators), HostOwner::NotYetKnown);
        let mut alive = operators.clone();
        alive.observe_lease(lease(Some("bmo-1"), 102), s(40));
        assert_eq!(owner(&alive), theirs());
        assert_eq!(alive.next_list_at(&rules(&[])), Some(s(60)));
        operators.apply_lease_list(vec![lease(Some("bmo-1"), 100)], Some(s(40)), s(41));
        assert_eq!(owner(&operators), HostOwner::Ours);
        assert_eq!(operators.next_list_at(&rules(&[])), None);
        operators.observe_lease(lease(Some("bmo-1"), 103), s(50));
        assert_eq!(owner(&operators), theirs());
        // The leader dies while Dogwatch watches.
        operators.apply_lease_list(vec![lease(Some("bmo-1"), 103)], Some(s(70)), s(71));
        assert_eq!(owner(&operators), HostOwner::Ours);
    }

    #[test]
    fn a_lease_that_is_new_or_given_back_says_so_at_once() {
        let mut operators = Metal3Leaders::default();
        operators.apply_lease_list(vec![lease(None, 100)], None, s(1));
        assert_eq!(owner(&operators), HostOwner::Ours);
        operators.observe_lease(lease(Some("bmo-1"), 101), s(2));
        assert_eq!(owner(&operators), theirs());
        operators.observe_lease(lease(None, 101), s(3));
        assert_eq!(owner(&operators), HostOwner::Ours);
        operators.apply_lease_list(vec![lease(Some("bmo-1"), 102)], None, s(4));
        assert_eq!(owner(&operators), theirs());
        operators.remove_lease("metal3");
        assert_eq!(owner(&operators), HostOwner::Ours);
        operators.observe_lease(lease(Some("bmo-1"), 103), s(5));
        operators.apply_lease_list(Vec::new(), None, s(6));
        assert_eq!(owner(&operators), HostOwner::Ours);
    }

    #[test]
    fn paused_hosts_and_named_namespaces_are_ours_whoever_lives() {
        let mut operators = Metal3Leaders::default();
        operators.observe_lease(lease(Some("bmo-1"), 101), s(2));
        let ours = rules(&["edge"]);
        for (host, expected) in [
            (host("site", false), theirs()),
            (host("site", true), HostOwner::Ours),
            (host("edge", false), HostOwner::Ours),
        ] {
            assert_eq!(operators.host_owner(&host, &ours), expected, "{host:?}");
        }
    }

    #[test]
    fn a_leader_is_believed_only_where_metal3_runs_and_what_is_elsewhere_is_reported() {
        let mut operators = Metal3Leaders::default();
        let attack = Metal3LeaderLease {
            namespace: "team-a".into(),
            length: Duration::from_secs(2_147_483_647),
            ..lease(Some("me"), 1)
        };
        operators.apply_lease_list(vec![attack.clone()], None, s(1));
        assert_eq!(owner(&operators), HostOwner::Ours, "not even doubtful");
        for second in 2..100 {
            let renewed = Timestamp::from_second(second).ok();
            let renewed = Metal3LeaderLease {
                renewed,
                ..attack.clone()
            };
            operators.observe_lease(renewed, s(2));
            assert_eq!(owner(&operators), HostOwner::Ours);
        }
        assert_eq!(operators.next_list_at(&rules(&[])), None);
        let rules = rules(&[]);
        let reported: Vec<_> = operators.untrusted_leases(&rules).collect();
        assert_eq!(reported, [("team-a", "me")]);
        operators.observe_lease(lease(Some("bmo-1"), 1), s(3));
        assert_eq!(owner(&operators), theirs());
    }

    #[test]
    fn no_lease_is_believed_for_longer_than_five_minutes_without_a_renewal() {
        let endless = |renewed| Metal3LeaderLease {
            length: Duration::from_secs(2_147_483_647),
            ..lease(Some("bmo-1"), renewed)
        };
        let mut operators = Metal3Leaders::default();
        operators.apply_lease_list(vec![endless(1)], None, s(10));
        assert_eq!(owner(&operators), HostOwner::NotYetKnown);
        assert_eq!(operators.next_list_at(&rules(&[])), Some(s(310)));
        operators.observe_lease(endless(2), s(100));
        assert_eq!(owner(&operators), theirs());
        operators.apply_lease_list(vec![endless(2)], Some(s(400)), s(401));
        assert_eq!(owner(&operators), HostOwner::Ours);
    }
}
