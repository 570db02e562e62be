//! What a BMC's address may look like, and which BMC it means.

use crate::power::*;

#[test]
fn an_address_has_at_most_2048_bytes() {
    for (bytes, is_good) in [(2_048, true), (2_049, false)] {
        let start = "redfish://h/redfish/v1/Systems/";
        let text = format!("{start}{}", "a".repeat(bytes - start.len()));
        assert_eq!(BmcAddress::parse(&text).is_ok(), is_good, "{bytes}");
    }
}

#[test]
fn a_cipher_suite_of_a_vendor_is_refused_as_unknown_and_not_as_unsafe() {
    for (suite, says) in [(15, "no integrity"), (18, "a number from 0 to 17")] {
        let address = BmcAddress::parse(&format!("ipmi://h?ciphersuite={suite}"));
        let said = address.unwrap_err().to_string();
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn an_option_is_written_with_percent_signs_only_where_it_needs_them() {
    let text = "fence+fence_apc://192.0.2.9?plug=Rack-1_a.4:7%2B";
    let address = BmcAddress::parse(text).unwrap().to_string();
    assert!(address.ends_with("?plug=Rack-1_a.4:7%2B"), "{address}");
}

#[test]
fn addresses_of_one_bmc_have_its_host_as_their_location() {
    for text in [
        "redfish://192.0.2.1/redfish/v1/Systems/1",
        "ipmi://192.0.2.1",
    ] {
        let endpoint = BmcAddress::parse(text).unwrap().endpoint();
        assert_eq!(endpoint.bmc_location(), "192.0.2.1", "{text}");
    }
}
