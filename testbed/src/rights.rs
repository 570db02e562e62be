//! What roles allow beside what was used of it: a test holds the two together.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::AuditEntry;

impl AuditEntry {
    /// What was used, as [`rights_in`] writes it: `get pods`, `patch nodes/status`.
    pub fn right(&self) -> String {
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

/// The verbs of these manifests' roles of whose comments `is_meant` says so. They are written one to a
/// line, `- VERB # who needs it, and when`, below `resources: [ONE]`.
pub fn rights_in(manifests: &[&str], is_meant: impl Fn(&str) -> bool) -> BTreeSet<String> {
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

/// What one account has used in the tests of one program, test by test.
#[derive(Debug, Default)]
pub struct UsedRights(Mutex<(BTreeSet<String>, usize)>);

impl UsedRights {
    /// Of a program whose tests have not begun.
    pub const fn none() -> Self {
        Self(Mutex::new((BTreeSet::new(), 0)))
    }

    /// One more test is over, and `asked` is what the account has asked. Answers with all that was used, and
    /// whether these were all tests.
    ///
    /// # Panics
    /// When it asked nothing, or something was refused.
    pub fn after(&self, asked: &[AuditEntry], tests: usize) -> (BTreeSet<String>, bool) {
        assert!(!asked.is_empty(), "it did nothing");
        let refused: Vec<&AuditEntry> = asked.iter().filter(|entry| entry.code == 403).collect();
        assert!(
            refused.is_empty(),
            "what is shipped does not let it work: {refused:#?}"
        );
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.0.extend(asked.iter().map(AuditEntry::right));
        used.1 += 1;
        (used.0.clone(), used.1 == tests)
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
        let healers = rights_in(&[role], |why| why.starts_with("healer"));
        assert_eq!(Vec::from_iter(healers), ["list pods", "patch nodes/status"]);
    }
}
