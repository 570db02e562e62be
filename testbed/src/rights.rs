//! Compares the rights that roles grant with the rights that a test used.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::AuditEntry;

impl AuditEntry {
    /// The right that the request used, as [`rights_in_manifests`] writes it: `get pods`, `patch
    /// nodes/status`.
    pub fn used_right(&self) -> String {
        let Self {
            verb,
            resource,
            subresource,
            ..
        } = self;
        if subresource.is_empty() {
            return format!("{verb} {resource}");
        }
        format!("{verb} {resource}/{subresource}")
    }
}

/// The verbs in these manifests' roles whose comments `is_meant` accepts. The manifests write them
/// one to a line, `- VERB # who needs it, and when`, below `resources: [ONE]`.
pub fn rights_in_manifests(
    manifests: &[&str],
    is_meant: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let mut rights = BTreeSet::new();
    let mut resource = "";
    for line in manifests
        .iter()
        .flat_map(|text| text.lines())
        .map(str::trim)
    {
        if let Some(list) = line.strip_prefix("resources: [") {
            resource = list.trim_end_matches(']');
        }
        let verb = line
            .strip_prefix("- ")
            .and_then(|rest| rest.split_once(" # "));
        if let Some((verb, _)) = verb.filter(|(_, why)| is_meant(why)) {
            rights.insert(format!("{verb} {resource}"));
        }
    }
    rights
}

/// The rights that these requests used, as [`rights_in_manifests`] writes them.
///
/// # Panics
/// When a request was refused.
pub fn rights_used(asked: &[AuditEntry]) -> BTreeSet<String> {
    let refused: Vec<&AuditEntry> = asked.iter().filter(|entry| entry.code == 403).collect();
    assert!(
        refused.is_empty(),
        "the shipped rights do not cover these requests: {refused:#?}"
    );
    asked.iter().map(AuditEntry::used_right).collect()
}

/// The rights that one account used in the tests of one program, collected test by test.
#[derive(Debug, Default)]
pub struct UsedRights(Mutex<(BTreeSet<String>, usize)>);

impl UsedRights {
    /// No rights used yet.
    pub const fn none() -> Self {
        Self(Mutex::new((BTreeSet::new(), 0)))
    }

    /// Records that one of `tests` tests is over and that the account sent the requests `asked`.
    /// Returns the used rights so far that are not `shipped`.
    ///
    /// # Panics
    /// When the account sent no request, when one was refused, and after the last test when a
    /// shipped right was never used.
    pub fn record_test(
        &self,
        asked: &[AuditEntry],
        tests: usize,
        shipped: &BTreeSet<String>,
    ) -> Vec<String> {
        assert!(!asked.is_empty(), "it did nothing");
        let (used, is_last) = {
            let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            used.0.extend(rights_used(asked));
            used.1 += 1;
            (used.0.clone(), used.1 == tests)
        };
        let unused: Vec<&String> = shipped.difference(&used).collect();
        assert!(!is_last || unused.is_empty(), "unused: {unused:?}");
        used.difference(shipped).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_is_somebodys_by_its_comment() {
        let role = "
            resources: [nodes/status]
            verbs:
              - patch # healer: conditions
              - get # lock: its host
            resources: [pods]
            verbs:
              - list # healer: gates";
        let healers = rights_in_manifests(&[role], |why| why.starts_with("healer"));
        assert_eq!(Vec::from_iter(healers), ["list pods", "patch nodes/status"]);
    }

    fn entry(verb: &str, code: u16) -> AuditEntry {
        AuditEntry {
            stage: "ResponseComplete".into(),
            verb: verb.into(),
            user: "u".into(),
            user_agent: String::new(),
            resource: "pods".into(),
            subresource: String::new(),
            namespace: String::new(),
            name: String::new(),
            code,
            uri: String::new(),
            received: String::new(),
            reached: String::new(),
        }
    }

    fn shipped() -> BTreeSet<String> {
        ["get pods", "list pods"].map(str::to_owned).into()
    }

    #[test]
    fn what_is_used_beyond_what_is_shipped_is_answered_and_tests_add_up() {
        let used = UsedRights::none();
        let beyond = used.record_test(&[entry("get", 200), entry("patch", 409)], 2, &shipped());
        assert_eq!(beyond, ["patch pods"]);
        used.record_test(&[entry("list", 200)], 2, &shipped());
    }

    #[test]
    #[should_panic(expected = "unused: [\"list pods\"]")]
    fn a_right_that_no_test_has_used_is_told_after_the_last_one() {
        UsedRights::none().record_test(&[entry("get", 200)], 1, &shipped());
    }

    #[test]
    #[should_panic(expected = "the shipped rights do not cover these requests")]
    fn what_was_refused_is_told_at_once() {
        UsedRights::none().record_test(&[entry("get", 403)], 2, &shipped());
    }
}
