//! Names of Leases.

use dogwatch_core::lock::slot_number;

/// What every Lease of ours begins with.
pub const PREFIX: &str = "dogwatch-";

/// What a remediation's Lease begins with: `dogwatch-remedy-NODE`. Source: specification §2.2.
pub const REMEDY_PREFIX: &str = "dogwatch-remedy-";

/// Who holds it: the remediator, for all nodes. It is the field manager as well.
/// Source: specification §2.2, §6.
pub const REMEDY_HOLDER: &str = "remedy";

/// The longest name of a Lease, in bytes. Source: Kubernetes.
pub const LONGEST_NAME: usize = 253;

/// What the Lease of a lock API's replica begins with: `api.dogwatch.dev-PROCESS`. It is renewed
/// while the process lives, and names those who wait there.
pub const PRESENCE_PREFIX: &str = "api.dogwatch.dev-";

/// The Lease of one replica of the lock API.
pub fn presence_name(process: &str) -> String {
    format!("{PRESENCE_PREFIX}{process}")
}

/// Whose replica's Lease this is, if it is one.
pub fn process_of(name: &str) -> Option<&str> {
    name.strip_prefix(PRESENCE_PREFIX)
}

/// Whose holder acts for the whole cluster. Source: specification §3.3.
pub const LEADER: &str = "controller.dogwatch.dev";

/// The Lease of one slot: `dogwatch-GROUP-SLOT`. Source: specification §2.2.
pub fn slot_name(group: &str, slot: u32) -> String {
    format!("{PREFIX}{group}-{slot}")
}

/// The slot's number, if this is the name of one of the group's slots.
pub fn slot_of(name: &str, group: &str) -> Option<u32> {
    let slot = name.strip_prefix(PREFIX)?.strip_prefix(group)?;
    slot_number(slot.strip_prefix('-')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_found_again_by_its_name() {
        assert_eq!(slot_name("default", 12), "dogwatch-default-12");
        assert_eq!(slot_of("dogwatch-default-12", "default"), Some(12));
    }

    #[test]
    fn another_groups_slot_is_not_ours() {
        assert_eq!(slot_of("dogwatch-default-eu-0", "default"), None);
        assert_eq!(slot_of("dogwatch-remedy-n1", "default"), None);
        assert_eq!(slot_of("other-default-0", "default"), None);
    }

    #[test]
    fn a_slot_has_one_name() {
        let slot = |text: &str| slot_of(&format!("dogwatch-default-{text}"), "default");
        for (text, expected) in [("0", Some(0)), ("7", Some(7)), ("999", Some(999))] {
            assert_eq!(slot(text), expected, "{text}");
        }
        for text in [
            "",
            "00",
            "007",
            "+1",
            "-1",
            "1000",
            "4294967296",
            "1a",
            "\u{661}",
        ] {
            assert_eq!(slot(text), None, "{text}");
        }
    }
}
