//! Checks whether the admission policies are in force for Dogwatch's own accounts.
//!
//! A policy recognizes a program by the name of its ServiceAccount. Kustomize can rename accounts,
//! policies and bindings. A policy that recognizes no account, or that no binding names, limits
//! nobody and reports nothing.
//!
//! Source: specification §6.

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_api::LOCK_API_ACCOUNT;

use crate::drain::OWN_PODS_POLICY;
use crate::selector::LabelSelector;

/// The policies of `deploy/policies`. Kustomize may add a prefix and a suffix.
pub const SHIPPED_ADMISSION_POLICIES: [&str; 16] = [
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

/// The policies that apply only in Dogwatch's namespace.
const LOCK_POLICIES: [&str; 2] = ["leases.dogwatch.dev", "locks.dogwatch.dev"];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObservedAdmissionPolicies {
    pub policies: BTreeSet<String>,
    /// By name of the binding, the policy that it names.
    pub bindings: BTreeMap<String, String>,
    /// By name of the policy, the namespaces that it applies to. A policy without an entry applies
    /// to all of them.
    pub namespace_selectors: BTreeMap<String, LabelSelector>,
    /// Dogwatch's namespace; `None` if it could not be read.
    pub namespace: Option<LockNamespace>,
}

/// The namespace that holds the locks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockNamespace {
    pub name: String,
    pub labels: BTreeMap<String, String>,
}

/// Returns a sentence for each shipped policy that is not in force.
pub fn list_unenforced_policies(seen: &ObservedAdmissionPolicies) -> Vec<String> {
    let is_ours = |name: &String| {
        SHIPPED_ADMISSION_POLICIES
            .iter()
            .any(|policy| name.contains(policy))
    };
    if !seen.policies.iter().any(is_ours) {
        return vec![
            "the admission policies are not installed: a root user on one node can drain every \
             node with that node's coordinator token"
                .to_owned(),
        ];
    }
    let trouble = |policy: &&str| describe_policy_problem(policy, seen);
    SHIPPED_ADMISSION_POLICIES
        .iter()
        .filter_map(trouble)
        .collect()
}

/// Whether the policy is in force that lets no coordinator evict a pod of Dogwatch's namespace.
pub fn protects_own_pods(seen: &ObservedAdmissionPolicies) -> bool {
    bound_policies(OWN_PODS_POLICY, seen).next().is_some()
}

/// The installed policies of this name that a binding names.
fn bound_policies<'a>(
    policy: &str,
    seen: &'a ObservedAdmissionPolicies,
) -> impl Iterator<Item = &'a String> {
    let named = seen.bindings.values();
    named.filter(move |named| named.contains(policy) && seen.policies.contains(*named))
}

fn describe_policy_problem(policy: &str, seen: &ObservedAdmissionPolicies) -> Option<String> {
    let is_it = |name: &str| name.contains(policy);
    let mut bindings = seen.bindings.iter();
    if bound_policies(policy, seen).next().is_some() {
        return describe_other_namespaces(policy, seen);
    }
    if !seen.policies.iter().any(|name| is_it(name)) {
        return Some(format!("admission policy {policy} is not installed"));
    }
    Some(
        match bindings.find(|(name, named)| is_it(name) || is_it(named)) {
            Some((name, named)) => format!(
                "admission policy {policy} has no effect: binding {name} names policy {named}, which does not exist"
            ),
            None => format!("admission policy {policy} has no effect: no binding names it"),
        },
    )
}

/// Why a policy about locks does not apply in the namespace that holds them.
fn describe_other_namespaces(policy: &str, seen: &ObservedAdmissionPolicies) -> Option<String> {
    let namespace = seen.namespace.as_ref()?;
    if !LOCK_POLICIES.contains(&policy) {
        return None;
    }
    let mut labels = Vec::new();
    for named in bound_policies(policy, seen) {
        let selector = seen.namespace_selectors.get(named)?;
        if selector.matches_labels(&namespace.labels) {
            return None;
        }
        labels.push(selector.to_query_string());
    }
    Some(format!(
        "admission policy {policy} does not apply to namespace {}, which holds the locks: it selects namespaces with {}. \
         Label the namespace so",
        namespace.name,
        labels.join(" or ")
    ))
}

/// Why the policies do not recognize this user as `program` in Dogwatch's `namespace`. `None` if
/// they do, and for a user that is no ServiceAccount.
pub fn describe_unknown_account(user: &str, program: &str, namespace: &str) -> Option<String> {
    let account = user.strip_prefix("system:serviceaccount:")?;
    let (home, name) = account.split_once(':')?;
    // The policies admit this account by its exact name: a part of the name is not enough.
    if program == LOCK_API_ACCOUNT && name != program {
        return Some(format!(
            "the admission policies do not know ServiceAccount {home}/{name}: they let the lock API hold locks only as \
             {LOCK_API_ACCOUNT}. Rename the account to that, without a prefix"
        ));
    }
    if !name.contains(program) {
        return Some(format!(
            "the admission policies do not know ServiceAccount {home}/{name}: they recognize {program} by an account \
             whose name contains {program}. They do not limit the token of this account, and they refuse it the locks"
        ));
    }
    if home != namespace {
        return Some(format!(
            "ServiceAccount {home}/{name} is not in namespace {namespace}, which holds the locks: \
             the admission policies refuse it the locks"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(
        rename: impl Fn(&str) -> String,
        named: impl Fn(&str) -> String,
    ) -> ObservedAdmissionPolicies {
        ObservedAdmissionPolicies {
            policies: SHIPPED_ADMISSION_POLICIES
                .iter()
                .map(|name| rename(name))
                .collect(),
            bindings: SHIPPED_ADMISSION_POLICIES
                .iter()
                .map(|name| (rename(name), named(name)))
                .collect(),
            namespace_selectors: LOCK_POLICIES
                .iter()
                .map(|name| {
                    (
                        rename(name),
                        labelled("app.kubernetes.io/part-of", "dogwatch"),
                    )
                })
                .collect(),
            namespace: Some(LockNamespace {
                name: "nodes".to_owned(),
                labels: [("app.kubernetes.io/part-of", "dogwatch")]
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            }),
        }
    }

    fn labelled(key: &str, value: &str) -> LabelSelector {
        LabelSelector {
            match_labels: [(key.to_owned(), value.to_owned())].into(),
            ..LabelSelector::default()
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
        assert_eq!(
            shipped.collect::<BTreeSet<_>>(),
            BTreeSet::from(SHIPPED_ADMISSION_POLICIES)
        );
    }

    #[test]
    fn policies_that_limit_nobody_are_told_apart_from_those_in_force() {
        let same = |name: &str| name.to_owned();
        let renamed = |name: &str| format!("acme-{name}");
        assert_eq!(list_unenforced_policies(&installed(same, same)), [""; 0]);
        assert_eq!(
            list_unenforced_policies(&installed(renamed, renamed)),
            [""; 0]
        );
        // Kustomize prefixed the policies, but not the names in the bindings.
        let told = list_unenforced_policies(&installed(renamed, same));
        assert_eq!(told.len(), SHIPPED_ADMISSION_POLICIES.len());
        assert!(
            told[0].contains("binding acme-coordinator-evictions"),
            "{}",
            told[0]
        );
        let none = list_unenforced_policies(&ObservedAdmissionPolicies::default());
        assert!(
            none.len() == 1 && none[0].contains("not installed"),
            "{none:?}"
        );
        let mut part = installed(same, same);
        part.bindings.remove("locks.dogwatch.dev");
        part.policies.remove("leases.dogwatch.dev");
        let told = list_unenforced_policies(&part);
        assert_eq!(
            told,
            [
                "admission policy leases.dogwatch.dev is not installed",
                "admission policy locks.dogwatch.dev has no effect: no binding names it",
            ]
        );
    }

    #[test]
    fn a_policy_that_does_not_apply_where_the_locks_are_is_not_in_force() {
        let same = |name: &str| name.to_owned();
        let mut seen = installed(same, same);
        assert!(protects_own_pods(&seen));
        let namespace = seen.namespace.as_mut().unwrap();
        namespace.labels = labelled("kubernetes.io/metadata.name", "nodes").match_labels;
        let told = list_unenforced_policies(&seen);
        assert_eq!(told.len(), 2, "{told:?}");
        for (told, policy) in told.iter().zip(LOCK_POLICIES) {
            let words = format!("admission policy {policy} does not apply to namespace nodes");
            assert!(told.starts_with(&words), "{told}");
            assert!(
                told.contains("app.kubernetes.io/part-of=dogwatch"),
                "{told}"
            );
        }
        // As the chart writes it.
        for selector in seen.namespace_selectors.values_mut() {
            *selector = labelled("kubernetes.io/metadata.name", "nodes");
        }
        assert_eq!(list_unenforced_policies(&seen), [""; 0]);
        seen.namespace_selectors.clear();
        assert_eq!(list_unenforced_policies(&seen), [""; 0]);
        let unread = ObservedAdmissionPolicies {
            namespace: None,
            ..installed(same, same)
        };
        assert_eq!(list_unenforced_policies(&unread), [""; 0]);
    }

    #[test]
    fn the_lock_api_is_known_by_its_whole_name() {
        let known = |name: &str| {
            let user = format!("system:serviceaccount:dogwatch:{name}");
            describe_unknown_account(&user, LOCK_API_ACCOUNT, "dogwatch")
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
                Some("do not limit the token"),
            ),
            (
                "system:serviceaccount:dogwatch:dogwatch-controller",
                Some("do not know"),
            ),
            (
                "system:serviceaccount:other:dogwatch-coordinator",
                Some("not in namespace dogwatch"),
            ),
            ("system:node:n1", None),
            ("ann", None),
        ] {
            let found = describe_unknown_account(user, program, "dogwatch");
            assert_eq!(found.is_some(), words.is_some(), "{user}: {found:?}");
            let words = words.unwrap_or_default();
            assert!(found.unwrap_or_default().contains(words), "{user}");
        }
    }
}
