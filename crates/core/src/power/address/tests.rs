//! Valid and invalid addresses of every form.

use proptest::prelude::*;

use super::{BmcAddress, RedfishVendor};

fn redfish(
    vendor: RedfishVendor,
    tls: bool,
    host: &str,
    port: u16,
    system: Option<&str>,
) -> BmcAddress {
    BmcAddress::Redfish {
        vendor,
        tls,
        host: host.into(),
        port,
        system: system.map(str::to_owned),
    }
}

fn plain(host: &str, port: u16, system: Option<&str>) -> BmcAddress {
    redfish(RedfishVendor::Standard, true, host, port, system)
}

fn ipmi(host: &str, port: u16) -> BmcAddress {
    ipmi_as(host, port, "ADMINISTRATOR", None)
}

fn ipmi_as(host: &str, port: u16, privilege: &str, cipher_suite: Option<u8>) -> BmcAddress {
    BmcAddress::Ipmi {
        host: host.into(),
        port,
        privilege: privilege.into(),
        cipher_suite,
    }
}

fn fence(agent: &str, host: &str, port: Option<u16>, options: &[(&str, &str)]) -> BmcAddress {
    let options = options.iter();
    BmcAddress::Fence {
        agent: agent.into(),
        host: host.into(),
        port,
        options: options
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    }
}

const V4: &str = "192.168.122.1";

/// metal3's `TestParse`, by the names of its rows: Dogwatch's form of each address, or `None` if it
/// is refused.
const TEST_PARSE: [(&str, &str, Option<&str>); 17] = [
    (
        "libvirt url",
        "libvirt://192.168.122.1:6233/?abc=def",
        Some("ipmi://192.168.122.1:6233"),
    ),
    (
        "ipmi default scheme and port",
        "192.168.122.1",
        Some("ipmi://192.168.122.1"),
    ),
    (
        "ipmi default scheme and port, hostname",
        "my.favoritebmc.com",
        Some("ipmi://my.favoritebmc.com"),
    ),
    (
        "valid dns hostname",
        "my.examplehost.com",
        Some("ipmi://my.examplehost.com"),
    ),
    ("invalid dns hostname", "my-.examplehost.com", None),
    (
        "invalid ipv6 host address",
        "[fe80::fc33:62ff:fe33:8xff]:6223",
        None,
    ),
    (
        "host and port",
        "192.168.122.1:6233",
        Some("ipmi://192.168.122.1:6233"),
    ),
    (
        "host and port, ipv6",
        "[fe80::fc33:62ff:fe83:8a76]:6233",
        Some("ipmi://[fe80::fc33:62ff:fe83:8a76]:6233"),
    ),
    (
        "host and no port, ipv6",
        "[fe80::fc33:62ff:fe83:8a76]",
        None,
    ),
    (
        "ipmi full url",
        "ipmi://192.168.122.1:6233",
        Some("ipmi://192.168.122.1:6233"),
    ),
    (
        "ipmi url, no sep",
        "ipmi:192.168.122.1",
        Some("ipmi://192.168.122.1"),
    ),
    (
        "ipmi url with port, no sep",
        "ipmi:192.168.122.1:6233",
        Some("ipmi://192.168.122.1:6233"),
    ),
    (
        "redfish url",
        "redfish://192.168.122.1",
        Some("redfish://192.168.122.1"),
    ),
    (
        "redfish url path",
        "redfish://192.168.122.1:6233/foo",
        Some("redfish://192.168.122.1:6233/foo"),
    ),
    (
        "redfish url ipv6",
        "redfish://[fe80::fc33:62ff:fe83:8a76]",
        Some("redfish://[fe80::fc33:62ff:fe83:8a76]"),
    ),
    (
        "redfish url path ipv6",
        "redfish://[fe80::fc33:62ff:fe83:8a76]:6233/foo",
        Some("redfish://[fe80::fc33:62ff:fe83:8a76]:6233/foo"),
    ),
    (
        "redfish url no sep",
        "redfish:192.168.122.1",
        Some("redfish://192.168.122.1"),
    ),
];

#[test]
fn metal3s_own_cases_of_test_parse() {
    for (name, text, expected) in TEST_PARSE {
        let shown = BmcAddress::parse(text)
            .ok()
            .map(|address| address.to_string());
        assert_eq!(shown.as_deref(), expected, "{name}: {text}");
    }
}

/// metal3's `TestStaticDriverInfo`, `TestDriverInfo` and `TestUnknownType`, and other behaviour of
/// its code.
#[test]
fn metal3s_families_of_redfish_differ_in_boot_and_not_in_power() {
    use RedfishVendor::{Idrac, Ilo5, Standard};
    for (family, vendor) in [
        ("redfish", Standard),
        ("redfish-virtualmedia", Standard),
        ("redfish-uefihttp", Standard),
        ("idrac-redfish", Idrac),
        ("idrac-virtualmedia", Idrac),
        ("ilo5-redfish", Ilo5),
        ("ilo5-virtualmedia", Ilo5),
    ] {
        for (suffix, tls, port) in [("", true, 443), ("+https", true, 443), ("+http", false, 80)] {
            let text = format!("{family}{suffix}://192.168.122.1/foo/bar");
            let expected = redfish(vendor, tls, V4, port, Some("/foo/bar"));
            assert_eq!(BmcAddress::parse(&text), Ok(expected), "{text}");
        }
    }
    assert!(BmcAddress::parse("foo://192.168.122.1").is_err());
    assert!(BmcAddress::parse("redfish+ftp://192.168.122.1").is_err());
}

#[test]
fn every_form_that_is_understood() {
    let rows = [
        ("IPMI://BMC.Example.COM", ipmi("bmc.example.com", 623)),
        ("my.bmc:6230", ipmi("my.bmc", 6230)),
        ("ipmi:[2001:DB8::1]:6230", ipmi("2001:db8::1", 6230)),
        ("ipmi://h:", ipmi("h", 623)),
        ("ipmi://h/path/is/nothing", ipmi("h", 623)),
        (
            "ipmi://h?privilegelevel=operator",
            ipmi_as("h", 623, "OPERATOR", None),
        ),
        (
            "h?privilegelevel=OPERATOR&ciphersuite=3",
            ipmi_as("h", 623, "OPERATOR", Some(3)),
        ),
        (
            "192.168.122.1:6233/?ciphersuite=17",
            ipmi_as(V4, 6233, "ADMINISTRATOR", Some(17)),
        ),
        ("redfish+https://h/", plain("h", 443, None)),
        ("redfish+https://h/redfish/v1/", plain("h", 443, None)),
        ("redfish://h/redfish/v1", plain("h", 443, None)),
        (
            "redfish://h/redfish/v1/Systems/437XR1138R2/",
            plain("h", 443, Some("/redfish/v1/Systems/437XR1138R2")),
        ),
        (
            "redfish://h/redfish/v1/Systems/a%20b?x=y",
            plain("h", 443, Some("/redfish/v1/Systems/a%20b")),
        ),
    ];
    are_read_as(rows);
}

#[test]
fn a_fence_agent_has_its_host_and_options() {
    are_read_as([
        (
            "fence+fence_apc://pdu.example:2022?plug=3&power-wait=4",
            fence(
                "fence_apc",
                "pdu.example",
                Some(2022),
                &[("plug", "3"), ("power_wait", "4")],
            ),
        ),
        (
            "fence+fence_vmware_soap://[2001:db8::2]?plug=%2Fdc%2Fvm+one&ssl=1",
            fence(
                "fence_vmware_soap",
                "2001:db8::2",
                None,
                &[("plug", "/dc/vm one"), ("ssl", "1")],
            ),
        ),
        (
            "fence+fence_aws://?plug=i-0abc&region=eu-west-1",
            fence(
                "fence_aws",
                "",
                None,
                &[("plug", "i-0abc"), ("region", "eu-west-1")],
            ),
        ),
    ]);
}

fn are_read_as<const N: usize>(rows: [(&str, BmcAddress); N]) {
    for (text, expected) in rows {
        assert_eq!(BmcAddress::parse(text).as_ref(), Ok(&expected), "{text}");
        let shown = expected.to_string();
        assert_eq!(BmcAddress::parse(&shown), Ok(expected), "{text} as {shown}");
    }
}

/// Invalid addresses, and a word that the error must contain.
const REFUSED: [(&str, &str); 89] = [
    ("ipmi://root:x@192.0.2.1", "Secret"),
    ("root:x@192.0.2.1", "Secret"),
    ("redfish://192.0.2.1/redfish/v1/Systems/root:x@1", "Secret"),
    ("fence+fence_apc://h?plug=root:x@1", "Secret"),
    ("", "empty"),
    ("ipmi://", "no host"),
    ("ipmi:///path", "no host"),
    ("redfish://?x", "no host"),
    ("ipmi:///", "no host"),
    ("ipmi://h:0", "port"),
    ("ipmi://h:65536", "port"),
    ("ipmi://h:+62", "port"),
    ("ipmi://h:6 23", "blanks"),
    (" ipmi://h", "blanks"),
    ("ipmi://h\n", "blanks"),
    ("ipmi://bmc.exämple", "ASCII"),
    ("fe80::1", "brackets"),
    ("ipmi://fe80::1", "brackets"),
    ("ipmi://[fe80::1", "closed"),
    ("ipmi://[fe80::1%25eth0]", "IPv6"),
    ("ipmi://[192.0.2.1]", "IPv6"),
    ("ipmi://[fe80::1]623", "bracket"),
    ("ipmi://h_1", "DNS"),
    ("ipmi://.h", "DNS"),
    ("ipmi://h.", "DNS"),
    ("ipmi://10.1", "IP address"),
    ("ipmi://192.0.2.256", "IP address"),
    ("ipmi://010.0.0.1", "IP address"),
    ("ipmi:623", "IP address"),
    ("ipmi://h?privilegelevel=ROOT", "OPERATOR"),
    ("ipmi://h?ciphersuite=18", "17"),
    ("ipmi://h?ciphersuite=0", "no integrity"),
    ("ipmi://h?ciphersuite=1", "no integrity"),
    ("ipmi://h?ciphersuite=6", "no integrity"),
    ("ipmi://h?ciphersuite=11", "no integrity"),
    ("ipmi://h?ciphersuite=12", "no integrity"),
    ("ipmi://h?ciphersuite=13", "no integrity"),
    ("ipmi://h?ciphersuite=14", "no integrity"),
    ("ipmi://h?ciphersuite=15", "no integrity"),
    ("ipmi://h?ciphersuite=", "17"),
    ("ipmi://h?ciphersuite=%zz", "percent"),
    ("redfish://h/redfish/v1/Systems/1#2", "%23"),
    ("redfish://h/redfish/v1/Systems/1/../2", ".."),
    ("redfish://h/redfish/v1/Systems/1/%2e%2E/2", ".."),
    ("redfish://h/redfish/v1/Systems/%0a", "character"),
    ("redfish://h/redfish/v1/Systems/%", "percent"),
    ("redfish://h/{id}", "character"),
    ("foo://192.0.2.1", "foo:// is not a known scheme"),
    ("foo:192.0.2.1", "not a scheme"),
    ("1pmi://h", "not a scheme"),
    ("redfish+ssh://h", "not a known scheme"),
    ("ilo4://h", "redfish://"),
    ("ilo4-virtualmedia+https://h", "redfish://"),
    ("ilo5://h", "ilo5-redfish://"),
    ("irmc://h", "redfish:// or ipmi://"),
    ("idrac://h", "idrac-redfish://"),
    ("idrac+http:h", "idrac-redfish://"),
    ("ibmc://h", "redfish://"),
    ("https://h/redfish/v1/Systems/1", "redfish://"),
    ("http://h", "redfish+http://"),
    ("fence://h", "fence+AGENT://"),
    ("fence+apc://h", "fence_apc"),
    ("fence+fence_://h", "fence_apc"),
    ("fence+fence_APC://h", "fence_apc"),
    ("fence+fence_../sh://h", "not a scheme"),
    ("fence+fence_ipmilan://h", "ipmi://"),
    ("fence+fence_ipmilanplus://h", "ipmi://"),
    ("fence+fence_idrac://h", "ipmi://"),
    ("fence+fence_aws://", "plug"),
    ("fence+fence_apc://h?plug=1%0aaction=on", "line break"),
    ("fence+fence_apc://h?plug=1&plug=2", "twice"),
    ("fence+fence_apc://h?plug=1,2", "of the level"),
    ("fence+fence_apc://h?plug=1%2C2", "of the level"),
    ("fence+fence_apc://h?port=1,2", "of the level"),
    ("fence+fence_apc://h?plug=1&port=2", "old name"),
    ("fence+fence_apc://h?action=on", "itself"),
    ("fence+fence_apc://h?ip=192.0.2.9", "itself"),
    (
        "fence+fence_apc://h?ssh-options=-oProxyCommand=x",
        "program",
    ),
    ("fence+fence_apc://h?ssh_path=%2Ftmp%2Fx", "program"),
    ("fence+fence_apc://h?debug-file=%2Ftmp%2Fx", "password"),
    ("fence+fence_apc://h?identity-file=x", "command line"),
    (
        "fence+fence_virsh://h?plug=vm&identity_file=-oProxyCommand%3Dx",
        "command line",
    ),
    ("fence+fence_virsh://h?plug=vm&missing%5fas=a%20b", "blanks"),
    ("fence+fence_virsh://h?plug=vm&cmd-prompt=a%09b", "control"),
    ("fence+fence_ilo://h?notls=1", "without TLS"),
    ("fence+fence_ilo://h?tls1.0=1", "broken"),
    ("fence+fence_apc://h?Plug=1", "lower-case"),
    ("fence+fence_apc://h?pl%0aug=1", "lower-case"),
    ("fence+fence_apc://h?=1", "name"),
];

#[test]
fn what_is_no_address_is_refused_with_what_would_be_right() {
    let long = format!("ipmi://{}", "a".repeat(3000));
    let long = [(long.as_str(), "2048")];
    for (text, says) in REFUSED.into_iter().chain(long) {
        let refused = BmcAddress::parse(text).unwrap_err().to_string();
        assert!(refused.contains(says), "{text}: {refused}");
    }
}

#[test]
fn a_password_in_an_address_is_refused_and_never_repeated() {
    const PASSWORD: &str = "hunter2";
    for text in [
        "ipmi://root:hunter2@192.0.2.1",
        "root:hunter2@192.0.2.1",
        "redfish://root:hun/ter2hunter2@192.0.2.1/redfish/v1/Systems/1",
        "ipmi://root:hunter2",
        "root:hunter2",
        "ipmi://hunter2_",
        "ipmi://h?privilegelevel=hunter2",
        "ipmi://h?ciphersuite=hunter2",
        "redfish://[hunter2]",
        "fence+fence_hunter2!://h",
        "fence+fence_apc://h?passwd=hunter2",
        "fence+fence_apc://h?snmp-priv-passwd=hunter2",
        "fence+fence_apc_snmp://h?community=hunter2",
        "fence+fence_aws://?plug=i-1&secret_key=hunter2",
        "fence+fence_apc://h?hunter2pass=x",
        "fence+fence_apc://h?HUNTER2hunter2=x",
        "fence+fence_apc://h?plug=hunter2%00",
        "fence+fence_apc://h?login=hunter2",
    ] {
        let refused = BmcAddress::parse(text).unwrap_err();
        let said = format!("{refused} {refused:?}").to_lowercase();
        assert!(!said.contains(PASSWORD), "{text}: {said}");
    }
    // Unknown options of an IPMI address are ignored, and not stored.
    let address = BmcAddress::parse("ipmi://h?password=hunter2").unwrap();
    assert!(!format!("{address} {address:?}").contains(PASSWORD));
}

#[test]
fn every_ipmi_cipher_suite_with_integrity_is_taken_and_no_other() {
    let taken = |suite: &u8| BmcAddress::parse(&format!("ipmi://h?ciphersuite={suite}")).is_ok();
    let suites: Vec<u8> = (0..=u8::MAX).filter(taken).collect();
    assert_eq!(suites, [2, 3, 4, 5, 7, 8, 9, 10, 16, 17]);
}

#[test]
fn a_plug_may_have_blanks_and_no_other_option() {
    BmcAddress::parse("fence+fence_vmware_rest://h?plug=my%20machine")
        .expect("a name with a blank");
}

/// Random sequences of pieces of addresses.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "ipmi",
        "redfish",
        "idrac-redfish",
        "+http",
        "fence+fence_apc",
        "ilo4",
        ":",
        "//",
        "/",
        "[",
        "]",
        "fe80::1",
        "192.0.2.1",
        "bmc.example",
        "?",
        "plug=1",
        "&",
        "ciphersuite=3",
        "%2F",
        "%",
        ".",
        "..",
        "/redfish/v1/Systems/1",
        "@",
        "#",
        "623",
        "ä",
        " ",
        "=",
        "+",
        "-",
    ]);
    prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_what_is_read_is_shown_and_read_again(
        text in prop_oneof![pieces(), any::<String>(), "[!-~]{0,40}", "(ipmi|redfish)://[!-~]{0,40}"],
    ) {
        if let Ok(address) = BmcAddress::parse(&text) {
            let shown = address.to_string();
            prop_assert_eq!(BmcAddress::parse(&shown), Ok(address.clone()), "{}", shown);
            prop_assert!(address.endpoint().may_overlap(&address.endpoint()));
        }
    }

    #[test]
    fn a_fence_option_is_shown_and_read_again(value in "[\\PC&&[^,]]{0,20}") {
        let options = [("plug".to_owned(), value)].into();
        let address = BmcAddress::Fence { agent: "fence_x".into(), host: "h".into(), port: None, options };
        prop_assert_eq!(BmcAddress::parse(&address.to_string()), Ok(address));
    }
}
