//! Compares the machine behind a BMC with the machine of a Node. Source: specification §4.1.

use super::snapshot::PowerSnapshot;

/// The result of comparing two system UUIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemMatch {
    Same,
    Different,
    /// One of them is no UUID, or a UUID that many machines have.
    NotComparable,
}

/// Compares the system UUID that a BMC reports with the Node's `status.nodeInfo.systemUUID`.
/// Firmware and drivers disagree on the byte order of the first three groups (SMBIOS 2.6 has them
/// little endian), so the swapped form is equal.
pub fn compare_system_uuids(bmc: &str, node: &str) -> SystemMatch {
    match (SystemId::parse(bmc), SystemId::parse(node)) {
        (Some(bmc), Some(node)) if bmc == node => SystemMatch::Same,
        (Some(_), Some(_)) => SystemMatch::Different,
        (None, _) | (_, None) => SystemMatch::NotComparable,
    }
}

/// The system UUID that the host's BMCs report, of the lowest level that reports one. `None`: no
/// level reports one, or none was read or checked yet.
pub fn bmc_system_uuid(seen: &PowerSnapshot) -> Option<&str> {
    let memory = &seen.memory;
    let checked = memory.bmc_infos.iter().map(|(level, _)| level);
    let read = memory.readings.iter().map(|read| read.level);
    let told = checked.chain(read);
    let told = told.filter_map(|level| Some((level, memory.known_system_uuid(level)?)));
    told.min_by_key(|(level, _)| *level).map(|(_, uuid)| uuid)
}

/// A machine's UUID in a form that does not depend on the reported byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SystemId([u8; 16]);

/// UUIDs that makers leave in unset machines.
const DUMMY_UUIDS: [&str; 5] = [
    // American Megatrends' default.
    "00020003-0004-0005-0006-000700080009",
    // Sixteen consecutive numbers, in either byte order.
    "00010203-0405-0607-0809-0a0b0c0d0e0f",
    "0123456789abcdef0123456789abcdef",
    "12345678-1234-5678-90ab-cddeefaabbcc",
    // Dell, without a service tag.
    "4c4c4544-0000-2010-8020-80c04f202020",
];

impl SystemId {
    /// `None`: not a UUID, or a meaningless one (all bytes equal, or a maker's dummy).
    pub fn parse(text: &str) -> Option<Self> {
        let id = canonical_byte_order(parse_uuid_bytes(text)?);
        let is_plain = id.iter().all(|byte| *byte == id[0]);
        let is_dummy = DUMMY_UUIDS
            .iter()
            .any(|dummy| parse_uuid_bytes(dummy).map(canonical_byte_order) == Some(id));
        (!is_plain && !is_dummy).then_some(Self(id))
    }
}

/// Parses 32 hexadecimal digits, with or without groups.
fn parse_uuid_bytes(text: &str) -> Option<[u8; 16]> {
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

/// The smaller of the two byte orders.
fn canonical_byte_order(id: [u8; 16]) -> [u8; 16] {
    let mut swapped = id;
    swapped[..4].reverse();
    swapped[4..6].reverse();
    swapped[6..8].reverse();
    id.min(swapped)
}
