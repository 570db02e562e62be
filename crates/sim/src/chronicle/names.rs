//! Short names for boots and runs: a person compares `n1#2` more easily than a UUID.

use std::collections::BTreeMap;

use dogwatch_core::reboot::Record;

/// Ids that were seen, with the names they got in the order of their appearance.
#[derive(Debug, Default)]
pub struct Names {
    short: BTreeMap<String, String>,
    boots: BTreeMap<String, u32>,
    runs: BTreeMap<String, u32>,
}

impl Names {
    /// A boot of this node.
    pub fn saw_boot(&mut self, node: &str, boot: &str) {
        name(&mut self.short, &mut self.boots, "boot", node, boot);
    }

    /// What a record of this node names.
    pub fn saw_record(&mut self, node: &str, record: &Record) {
        name(
            &mut self.short,
            &mut self.runs,
            "run",
            node,
            record.run.as_str(),
        );
        self.saw_boot(node, record.boot_id.as_str());
    }

    /// The text with every known id replaced by its name.
    pub fn shorten(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (id, short) in &self.short {
            if text.contains(id.as_str()) {
                text = text.replace(id.as_str(), short);
            }
        }
        text
    }
}

fn name(
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
        let mut names = Names::default();
        names.saw_boot("n1", "aaaa");
        names.saw_boot("n2", "bbbb");
        names.saw_boot("n1", "cccc");
        names.saw_boot("n1", "aaaa");
        assert_eq!(
            names.shorten("aaaa → cccc, bbbb"),
            "boot n1#1 → boot n1#2, boot n2#1"
        );
    }
}
