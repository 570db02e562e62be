//! What roles allow beside what was used of it: a test holds the two together.

use std::collections::BTreeSet;

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
