//! Whether the admission policies are in force for Dogwatch's own accounts.
//!
//! A policy knows a program by the name of its ServiceAccount. Kustomize can rename accounts, policies and bindings,
//! and a policy that knows nobody, or that no binding names, limits nobody and says nothing.
//!
//! Source: specification §6.

use std::collections::{BTreeMap, BTreeSet};

/// The ServiceAccount of the lock API, where it is a program of its own.
const LOCK_API: &str = "dogwatch-lock";

/// The policies of `deploy/policies`. Kustomize may put something before and behind.
pub const POLICIES: [&str; 16] = [
    "coordinator-evictions.dogwatch.dev",
    "coordinator-nodes.dogwatch.dev",
    "coordinator-pods.dogwatch.dev",
    "events.dogwatch.dev",
    "host-bmcs.dogwatch.dev",
    "host-confirmations.dogwatch.dev",
    "host-nodes.dogwatch.dev",
    "host-reboots.dogwatch.dev",
    "host-remediations.dogwatch.dev",
    "leases.dogwatch.dev",
    "locks.dogwatch.dev",
    "machine-remediations.dogwatch.dev",
    "node-ignore.dogwatch.dev",
    "node-reboots.dogwatch.dev",
    "node-remediations.dogwatch.dev",
    "schedule-reboots.dogwatch.dev",
];

/// The policies and bindings of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoliciesSeen {
    /// All policies, by name.
    pub policies: BTreeSet<String>,
    /// All bindings: by name, the policy that each names.
    pub bindings: BTreeMap<String, String>,
}

/// Which of the shipped policies are not in force, each in a sentence. Nothing where all are.
pub fn not_in_force(seen: &PoliciesSeen) -> Vec<String> {
    let is_ours = |name: &String| POLICIES.iter().any(|policy| name.contains(policy));
    if !seen.policies.iter().any(is_ours) {
        return vec![
            "the admission policies are not installed: root on one node can drain the cluster with its coordinator's \
             token"
                .to_owned(),
        ];
    }
    let trouble = |policy: &&str| trouble_of(policy, seen);
    POLICIES.iter().filter_map(trouble).collect()
}

fn trouble_of(policy: &str, seen: &PoliciesSeen) -> Option<String> {
    let is_it = |name: &str| name.contains(policy);
    let mut bindings = seen.bindings.iter();
    if bindings
        .clone()
        .any(|(_, named)| is_it(named) && seen.policies.contains(named))
    {
        return None;
    }
    if !seen.policies.iter().any(|name| is_it(name)) {
        return Some(format!("admission policy {policy} is not installed"));
    }
    Some(
        match bindings.find(|(name, named)| is_it(name) || is_it(named)) {
            Some((name, named)) => format!(
                "admission policy {policy} limits nobody: binding {name} names {named}, and there is no such policy"
            ),
            None => format!("admission policy {policy} limits nobody: no binding names it"),
        },
    )
}

/// Why the policies do not know this user as one of `program`'s in Dogwatch's `namespace`. Nothing where they do, and
/// of a user that is no ServiceAccount.
pub fn unknown_account(user: &str, program: &str, namespace: &str) -> Option<String> {
    let account = user.strip_prefix("system:serviceaccount:")?;
    let (home, name) = account.split_once(':')?;
    // It is not limited by its name, it is let in by it: no part of a name will do.
    if program == LOCK_API && name != program {
        return Some(format!(
            "ServiceAccount {home}/{name} is unknown to the admission policies: they let the lock API hold locks as \
             {LOCK_API} alone. Give the account that name, without a prefix"
        ));
    }
    if !name.contains(program) {
        return Some(format!(
            "ServiceAccount {home}/{name} is unknown to the admission policies: they know {program} by an account whose \
             name contains {program}. They do not limit this token, and refuse it the locks"
        ));
    }
    if home != namespace {
        return Some(format!(
            "ServiceAccount {home}/{name} is not in namespace {namespace}, where the locks are: the admission policies \
             refuse it the locks"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(rename: impl Fn(&str) -> String, named: impl Fn(&str) -> String) -> PoliciesSeen {
        PoliciesSeen {
            policies: POLICIES.iter().map(|name| rename(name)).collect(),
            bindings: POLICIES
                .iter()
                .map(|name| (rename(name), named(name)))
                .collect(),
        }
    }

    #[test]
    fn every_shipped_policy_is_looked_for() {
        let files = [
            include_str!("../../../deploy/policies/bmcs.yaml"),
            include_str!("../../../deploy/policies/coordinators.yaml"),
            include_str!("../../../deploy/policies/events.yaml"),
            include_str!("../../../deploy/policies/locks.yaml"),
            include_str!("../../../deploy/policies/remediation.yaml"),
            include_str!("../../../deploy/policies/requests.yaml"),
        ];
        let lines = files.iter().flat_map(|file| file.lines());
        let shipped = lines.filter_map(|line| line.trim().strip_prefix("policyName: "));
        assert_eq!(shipped.collect::<BTreeSet<_>>(), BTreeSet::from(POLICIES));
    }

    #[test]
    fn policies_that_limit_nobody_are_told_apart_from_those_in_force() {
        let same = |name: &str| name.to_owned();
        let renamed = |name: &str| format!("acme-{name}");
        assert_eq!(not_in_force(&installed(same, same)), [""; 0]);
        assert_eq!(not_in_force(&installed(renamed, renamed)), [""; 0]);
        // A prefix that kustomize puts before the policies, and not into what the bindings name.
        let told = not_in_force(&installed(renamed, same));
        assert_eq!(told.len(), POLICIES.len());
        assert!(
            told[0].contains("binding acme-coordinator-evictions"),
            "{}",
            told[0]
        );
        let none = not_in_force(&PoliciesSeen::default());
        assert!(
            none.len() == 1 && none[0].contains("not installed"),
            "{none:?}"
        );
        let mut part = installed(same, same);
        part.bindings.remove("locks.dogwatch.dev");
        part.policies.remove("leases.dogwatch.dev");
        let told = not_in_force(&part);
        assert_eq!(
            told,
            [
                "admission policy leases.dogwatch.dev is not installed",
                "admission policy locks.dogwatch.dev limits nobody: no binding names it",
            ]
        );
    }

    #[test]
    fn the_lock_api_is_known_by_its_whole_name() {
        let known = |name: &str| {
            let user = format!("system:serviceaccount:dogwatch:{name}");
            unknown_account(&user, LOCK_API, "dogwatch")
        };
        assert_eq!(known("dogwatch-lock"), None);
        let renamed = known("acme-dogwatch-lock").expect("the policies refuse it the locks");
        assert!(renamed.contains("without a prefix"), "{renamed}");
    }

    #[test]
    fn an_account_is_known_by_its_name_with_whatever_stands_before_and_behind() {
        let program = "dogwatch-coordinator";
        for (user, words) in [
            ("system:serviceaccount:dogwatch:dogwatch-coordinator", None),
            (
                "system:serviceaccount:dogwatch:acme-dogwatch-coordinator-2",
                None,
            ),
            (
                "system:serviceaccount:dogwatch:reboots",
                Some("do not limit this token"),
            ),
            (
                "system:serviceaccount:dogwatch:dogwatch-controller",
                Some("unknown"),
            ),
            (
                "system:serviceaccount:other:dogwatch-coordinator",
                Some("not in namespace dogwatch"),
            ),
            ("system:node:n1", None),
            ("ann", None),
        ] {
            let found = unknown_account(user, program, "dogwatch");
            assert_eq!(found.is_some(), words.is_some(), "{user}: {found:?}");
            let words = words.unwrap_or_default();
            assert!(found.unwrap_or_default().contains(words), "{user}");
        }
    }
}
