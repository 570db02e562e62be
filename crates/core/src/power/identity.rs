//! Whether the machine behind a BMC is the one that a Node runs on. Source: specification §4.1.

use super::seen::Seen;

/// What two system UUIDs say of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// One machine.
    Same,
    /// Two machines.
    Different,
    /// One of them is no UUID, or one that many machines have.
    NotComparable,
}

/// Compares the system UUID that a BMC tells with the one that a Node has in `status.nodeInfo.systemUUID`.
/// Firmware and drivers do not agree on the byte order of the first three groups (SMBIOS 2.6 has them little
/// endian), so the swapped form is the same one.
pub fn same_system(bmc: &str, node: &str) -> Identity {
    match (SystemId::parse(bmc), SystemId::parse(node)) {
        (Some(bmc), Some(node)) if bmc == node => Identity::Same,
        (Some(_), Some(_)) => Identity::Different,
        (None, _) | (_, None) => Identity::NotComparable,
    }
}

/// The system UUID that the host's BMCs tell, the first level's before the others'; `None`: none tells one, or
/// none was asked yet.
pub fn system_uuid(seen: &Seen) -> Option<&str> {
    let told = seen.memory.abouts.iter();
    let told = told.filter_map(|(level, about)| Some((level, about.system_uuid.as_deref()?)));
    told.min_by_key(|(level, _)| *level).map(|(_, uuid)| uuid)
}

/// A machine's UUID in a form that does not depend on the byte order it was told in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SystemId([u8; 16]);

/// What makers leave there, in the byte order in which it is less.
const DUMMIES: [&str; 5] = [
    // American Megatrends' default.
    "00020003-0004-0005-0006-000700080009",
    // Sixteen numbers in a row, in either order.
    "00010203-0405-0607-0809-0a0b0c0d0e0f",
    "0123456789abcdef0123456789abcdef",
    "12345678-1234-5678-90ab-cddeefaabbcc",
    // Dell, without a service tag.
    "4c4c4544-0000-2010-8020-80c04f202020",
];

impl SystemId {
    /// `None`: no UUID, or one that says nothing: all bytes the same, or a maker's dummy.
    pub fn parse(text: &str) -> Option<Self> {
        let id = canonical(bytes(text)?);
        let is_plain = id.iter().all(|byte| *byte == id[0]);
        let is_dummy = DUMMIES
            .iter()
            .any(|dummy| bytes(dummy).map(canonical) == Some(id));
        (!is_plain && !is_dummy).then_some(Self(id))
    }
}

/// 32 hexadecimal digits, in groups or not.
fn bytes(text: &str) -> Option<[u8; 16]> {
    let text = text.trim();
    let text = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'))
        .unwrap_or(text);
    let digits: Option<Vec<u8>> = text
        .chars()
        .filter(|char| *char != '-')
        .map(|char| char.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let pairs: Vec<u8> = digits?
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |all, digit| all << 4 | digit))
        .collect();
    let is_even = text.chars().filter(|char| *char != '-').count() == 32;
    is_even.then_some(pairs)?.try_into().ok()
}

/// The lesser of the two byte orders.
fn canonical(id: [u8; 16]) -> [u8; 16] {
    let mut swapped = id;
    swapped[..4].reverse();
    swapped[4..6].reverse();
    swapped[6..8].reverse();
    id.min(swapped)
}
