//! Identifies the devices that a command was sent to.

use super::annotations::short_digest;
use super::host::{PowerDevice, PowerLevel};

/// A digest of the level's addresses. Another address means another device: old answers and old
/// proofs say nothing about it.
pub(super) fn digest_level(level: &PowerLevel) -> String {
    let address = |device: &PowerDevice| match &device.address {
        Ok(address) => address.to_string(),
        Err(_) => String::new(),
    };
    let all: Vec<String> = level.devices.iter().map(address).collect();
    short_digest(&all.join("\n"))
}
