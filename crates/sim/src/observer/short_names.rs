//! Short names for boots and runs: a person compares `n1#2` more easily than a UUID.

use std::collections::BTreeMap;

use dogwatch_core::reboot::RebootRecord;

/// Known ids, with their names in order of appearance.
#[derive(Debug, Default)]
pub struct ShortNames {
    short: BTreeMap<String, String>,
    boots: BTreeMap<String, u32>,
    runs: BTreeMap<String, u32>,
}

impl ShortNames {
    /// Names a boot of this node.
    pub fn name_boot(&mut self, node: &str, boot: &str) {
        assign_name(&mut self.short, &mut self.boots, "boot", node, boot);
    }

    /// Names the ids in a record of this node.
    pub fn name_record(&mut self, node: &str, record: &RebootRecord) {
        assign_name(
            &mut self.short,
            &mut self.runs,
            "run",
            node,
            record.run.as_str(),
        );
        self.name_boot(node, record.boot_id.as_str());
    }

    /// Returns the text with every known id replaced by its name.
    pub fn shorten_ids(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (id, short) in &self.short {
            if text.contains(id.as_str()) {
                text = text.replace(id.as_str(), short);
            }
        }
        text
    }
}

fn assign_name(
    short: &mut BTreeMap<String, String>,
    counts: &mut BTreeMap<String, u32>,
    what: &str,
    node: &str,
    id: &str,
) {
    if id.is_empty() || short.contains_key(id) {
        return;
    }
    let count = counts.entry(node.to_owned()).or_default();
    *count += 1;
    short.insert(id.to_owned(), format!("{what} {node}#{count}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_its_name_and_each_node_counts_its_own() {
        let mut names = ShortNames::default();
        names.name_boot("n1", "aaaa");
        names.name_boot("n2", "bbbb");
        names.name_boot("n1", "cccc");
        names.name_boot("n1", "aaaa");
        assert_eq!(
            names.shorten_ids("aaaa → cccc, bbbb"),
            "boot n1#1 → boot n1#2, boot n2#1"
        );
    }
}
