//! Reads the machine's UUID from an IPMI System GUID.
//!
//! IPMI 2.0 §20.8 specifies the 16 bytes in reverse order. Many BMCs send them as SMBIOS does (the
//! first three fields little-endian), some as the UUID is written (RFC 4122). Usually only one of
//! the three orders gives a valid UUID. If more do, no UUID is returned: a wrong one would name
//! another machine.

use std::fmt::Write as _;

/// Version 1 to 5, variant 10.
fn is_uuid(bytes: [u8; 16]) -> bool {
    (1..=5).contains(&(bytes[6] >> 4)) && bytes[8] >> 6 == 0b10
}

/// The UUID in lower case with dashes, if exactly one byte order gives a valid UUID.
pub(super) fn uuid_from_guid(bytes: &[u8]) -> Option<String> {
    let plain: [u8; 16] = bytes.try_into().ok()?;
    let mut backwards = plain;
    backwards.reverse();
    let mut smbios = plain;
    smbios[..4].reverse();
    smbios[4..6].reverse();
    smbios[6..8].reverse();
    let mut readings = vec![plain, backwards, smbios];
    readings.retain(|reading| is_uuid(*reading));
    readings.dedup();
    match readings[..] {
        [only] => Some(format_uuid(only)),
        _ => None,
    }
}

fn format_uuid(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}").expect("a String takes all");
    }
    text
}
