//! Which devices a command was meant for.

use super::annotations::digest;
use super::host::{Device, Level};

/// A digest of the level's addresses: another address is another device, of which no old answer and no
/// old proof says anything.
pub(super) fn target(level: &Level) -> String {
    let address = |device: &Device| match &device.address {
        Ok(address) => address.to_string(),
        Err(_) => String::new(),
    };
    let all: Vec<String> = level.devices.iter().map(address).collect();
    digest(&all.join("\n"))
}
