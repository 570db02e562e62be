//! The id by which Zincati's FleetLock client calls its host.
//!
//! It is systemd's app-specific machine id for Zincati's application id, so a Node is found by computing it over
//! `status.nodeInfo.machineID`. A user may set another id on the host; then no Node has it.
//! Source: `sd_id128_get_machine_app_specific(3)`, and Zincati's documentation of `identity.node_uuid`.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Zincati's application id.
const ZINCATI: u128 = 0xde35_106b_6ec2_4688_b63a_fdda_a156_679b;

/// What Zincati on the host with this machine id sends as `client_params.id` (32 lower-case hexadecimal digits).
/// Dashes in `machine_id` are ignored; nothing for what is no machine id.
pub fn fleetlock_id(machine_id: &str) -> Option<String> {
    app_specific(parse(machine_id)?, ZINCATI)
}

/// 128 bits of 32 hexadecimal digits, dashed or not. All zeros is "no machine id" to systemd.
fn parse(machine_id: &str) -> Option<u128> {
    let digits = machine_id.replace('-', "");
    let hexadecimal = digits.len() == 32 && digits.bytes().all(|c| c.is_ascii_hexdigit());
    let id = hexadecimal.then(|| u128::from_str_radix(&digits, 16).ok())??;
    (id != 0).then_some(id)
}

/// HMAC-SHA256 of the application id with the machine id as key, its first half, marked as a UUID of version 4.
fn app_specific(machine: u128, application: u128) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&machine.to_be_bytes()).ok()?;
    mac.update(&application.to_be_bytes());
    let mut id: [u8; 16] = mac.finalize().into_bytes()[..16].try_into().ok()?;
    id[6] = (id[6] & 0x0f) | 0x40;
    id[8] = (id[8] & 0x3f) | 0x80;
    Some(id.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_known_by_the_id_that_zincati_sends() {
        for machine in [
            "1c09ca98649c4c7abc779cd04c96812e",
            "1c09ca98-649c-4c7a-bc77-9cd04c96812e",
            "1C09CA98649C4C7ABC779CD04C96812E",
        ] {
            let id = fleetlock_id(machine);
            assert_eq!(id.as_deref(), Some("978a225b3d7b40e9acd7ce9b62f68444"));
        }
    }

    #[test]
    fn the_computation_is_systemds_for_any_application() {
        let machine = parse("2e074e9b299c41a59923c51ae16f279b").unwrap();
        let application = parse("033b1b9b264441fcaa173e9e5bf35c5a").unwrap();
        let id = app_specific(machine, application);
        assert_eq!(id.as_deref(), Some("4d4a86c9c6644a479560ded5d19a30c5"));
    }

    #[test]
    fn what_is_no_machine_id_has_no_fleetlock_id() {
        let zeros = "0".repeat(32);
        for bad in [
            "",
            "uninitialized",
            "1c09ca98649c4c7abc779cd04c96812",
            "1c09ca98649c4c7abc779cd04c96812eff",
            "+c09ca98649c4c7abc779cd04c96812e",
            &zeros,
        ] {
            assert_eq!(fleetlock_id(bad), None, "{bad:?}");
        }
    }
}
