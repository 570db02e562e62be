//! Names of Leases.

/// Prefix of all Leases of Dogwatch.
pub const PREFIX: &str = "dogwatch-";

/// Prefix of a remediation's Lease: `dogwatch-remedy-NODE`. Source: specification §2.2.
pub const REMEDIATION_PREFIX: &str = "dogwatch-remedy-";

/// Holder of the remediation Leases of all nodes, also their field manager. Source: specification
/// §2.2, §6.
pub const REMEDIATION_HOLDER: &str = "remedy";

/// The longest name of a Lease, in bytes. Source: Kubernetes.
pub const MAX_NAME_BYTES: usize = 253;

/// Prefix of the Lease of a replica of the lock API: `api.dogwatch.dev-PROCESS`. The replica renews
/// it while it runs, and names the hosts that wait there.
pub const PRESENCE_PREFIX: &str = "api.dogwatch.dev-";

/// Name of the Lease of one replica of the lock API.
pub fn presence_name(process: &str) -> String {
    format!("{PRESENCE_PREFIX}{process}")
}

/// The process in the name of a replica's Lease; `None` for another Lease.
pub fn process_of_presence(name: &str) -> Option<&str> {
    name.strip_prefix(PRESENCE_PREFIX)
}

/// The controller's Lease: its holder acts for the whole cluster. Source: specification §3.3.
pub const CONTROLLER_LEADER: &str = "controller.dogwatch.dev";

/// Name of one slot's Lease: `dogwatch-GROUP-SLOT`. Source: specification §2.2.
pub fn slot_name(group: &str, slot: u32) -> String {
    format!("{PREFIX}{group}-{slot}")
}

/// The slot's number, if this is the name of one of the group's slots.
pub fn slot_number_of(name: &str, group: &str) -> Option<u32> {
    let slot = name.strip_prefix(PREFIX)?.strip_prefix(group)?;
    parse_slot_number(slot.strip_prefix('-')?)
}

/// The number of slots that a group can have: slot numbers are below this.
pub const MAX_SLOTS: u32 = 1000;

/// Parses the slot number in a Lease's name. Only one spelling is accepted: a second one would be a
/// second Lease for the same slot. Source: specification §6.
pub fn parse_slot_number(text: &str) -> Option<u32> {
    let canonical = text == "0" || !text.starts_with('0');
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number: u32 = text.parse().ok().filter(|_| canonical && digits)?;
    (number < MAX_SLOTS).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_found_again_by_its_name() {
        assert_eq!(slot_name("default", 12), "dogwatch-default-12");
        assert_eq!(slot_number_of("dogwatch-default-12", "default"), Some(12));
    }

    #[test]
    fn another_groups_slot_is_not_ours() {
        assert_eq!(slot_number_of("dogwatch-default-eu-0", "default"), None);
        assert_eq!(slot_number_of("dogwatch-remedy-n1", "default"), None);
        assert_eq!(slot_number_of("other-default-0", "default"), None);
    }

    #[test]
    fn a_slot_has_one_name() {
        let slot = |text: &str| slot_number_of(&format!("dogwatch-default-{text}"), "default");
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
