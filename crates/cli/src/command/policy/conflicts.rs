//! Finds policies of the same files that are in each other's way.

use std::collections::BTreeMap;

use dogwatch_core::policy::Policy;

use super::policy_files::PolicyInFile;

/// A sentence for each pair of policies that a person should look at.
pub fn find_conflicts(policies: &[PolicyInFile]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, one) in policies.iter().enumerate() {
        for other in &policies[index + 1..] {
            found.extend(describe_conflict(one, other));
        }
    }
    found
}

fn describe_conflict(one: &PolicyInFile, other: &PolicyInFile) -> Option<String> {
    if one.policy.name == other.policy.name {
        return Some(format!(
            "RebootPolicy {} is there twice ({}:{} and {}:{}): the one that is applied last replaces the other",
            one.policy.name, one.file, one.line, other.file, other.line
        ));
    }
    let (first, second) = in_precedence(&one.policy, &other.policy);
    if !may_select_the_same(first, second) {
        return None;
    }
    let (winner, loser) = (&first.name, &second.name);
    let reason = if first.priority == second.priority {
        format!(
            "both have priority {}, and its name is first",
            first.priority
        )
    } else {
        format!(
            "its priority is {} and not {}",
            first.priority, second.priority
        )
    };
    if selects_every_node(first) {
        return Some(format!(
            "{loser} applies to no node: {winner} selects every node and takes precedence, because {reason}"
        ));
    }
    // A lower policy for all other nodes is what priorities are for.
    (first.priority == second.priority).then(|| {
        format!(
            "{winner} and {loser} may select the same nodes: {winner} applies to those, because {reason}"
        )
    })
}

/// As `ruling_policy` orders them: the highest priority, then the first name.
fn in_precedence<'a>(one: &'a Policy, other: &'a Policy) -> (&'a Policy, &'a Policy) {
    let precedence = |policy: &Policy| (std::cmp::Reverse(policy.priority), policy.name.clone());
    if precedence(one) <= precedence(other) {
        (one, other)
    } else {
        (other, one)
    }
}

fn selects_every_node(policy: &Policy) -> bool {
    policy.selector.to_query_string().is_empty()
}

/// False only if they want different values of one label.
fn may_select_the_same(one: &Policy, other: &Policy) -> bool {
    let wanted: &BTreeMap<String, String> = &one.selector.match_labels;
    let differs =
        |(key, value): (&String, &String)| wanted.get(key).is_some_and(|wanted| wanted != value);
    !other.selector.match_labels.iter().any(differs)
}
