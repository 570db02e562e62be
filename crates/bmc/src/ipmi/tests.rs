use proptest::prelude::*;

use super::answer::parse_raw_bytes;
use super::*;

fn ended(code: Option<i32>, stdout: &str, stderr: &str) -> child::ChildExit {
    child::ChildExit {
        code,
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    }
}

fn read(code: Option<i32>, stdout: &str, stderr: &str) -> Result<PowerReading, BmcFault> {
    let printed =
        parse_ipmitool_output(ended(code, stdout, stderr), "sekret16").map_err(fault_from_error)?;
    parse_chassis_status(&parse_raw_bytes(&printed)?)
}

#[test]
fn only_a_whole_chassis_status_without_the_power_bit_is_off() {
    for (printed, reading) in [
        (" 00 00 00\n", Some(PowerReading::Off)),
        (" 01 00 00\n", Some(PowerReading::On)),
        (" 61 10 40 70\n", Some(PowerReading::On)),
        (" 60 10 40 70\n", Some(PowerReading::Off)),
        ("", None),
        ("\n", None),
        (" 00\n", None),
        (" 00 00\n", None),
        (" 0 0 0 0\n", None),
        ("Chassis Power is off\n", None),
    ] {
        assert_eq!(read(Some(0), printed, "").ok(), reading, "{printed:?}");
    }
}

proptest! {
    #[test]
    fn no_failure_of_ipmitool_is_ever_off(code in prop_oneof![Just(None), (1..=255).prop_map(Some)], stdout: String, stderr: String) {
        prop_assert!(read(code, &stdout, &stderr).is_err());
        prop_assert!(read(code, " 00 00 00\n", &stderr).is_err());
    }
}

/// A text as ipmitool 1.8.19 printed it against ipmi_sim, or from its source; the class; the
/// message.
const FAILURES: [(&str, FaultClass, &str); 12] = [
    (
        "Address lookup for bmc1 failed\nCould not open socket!\n",
        FaultClass::Unreachable,
        "name",
    ),
    (
        "Get Auth Capabilities error\nError issuing Get Channel Authentication Capabilities request\n",
        FaultClass::Unreachable,
        "hangs or has no power",
    ),
    (
        "> RAKP 2 HMAC is invalid\n",
        FaultClass::WrongCredentials,
        "password",
    ),
    (
        "RAKP 2 message indicates an error : unauthorized name\n",
        FaultClass::WrongCredentials,
        "does not know this user",
    ),
    (
        "RAKP 2 message indicates an error : unauthorized role requested\n",
        FaultClass::Refused,
        "privilege",
    ),
    (
        "RAKP 2 message indicates an error : insufficient resources for session\n",
        FaultClass::Refused,
        "session",
    ),
    (
        "Error in open session response message : insufficient resources for session\n",
        FaultClass::Refused,
        "too many sessions",
    ),
    (
        "Error in open session response message : invalid authentication algorithm\n",
        FaultClass::Refused,
        "ciphersuite",
    ),
    (
        "Set Session Privilege Level to ADMINISTRATOR failed: Insufficient privilege level\n",
        FaultClass::Refused,
        "privilege",
    ),
    (
        "Set Session Privilege Level to ADMINISTRATOR failed\n",
        FaultClass::TimedOut,
        "hangs",
    ),
    (
        "This BMC does not support IPMI v2 / RMCP+\n",
        FaultClass::Unsupported,
        "enable",
    ),
    ("", FaultClass::Refused, "or it hangs"),
];

#[test]
fn each_failure_says_what_a_person_does_about_it() {
    let establish = "Error: Unable to establish IPMI v2 / RMCP+ session\n";
    for (text, class, says) in FAILURES {
        let fault = read(
            Some(1),
            "",
            &format!("Loading IANA PEN Registry...\n{text}{establish}"),
        )
        .unwrap_err();
        assert_eq!(fault.class, class, "{text}: {fault}");
        assert!(fault.message.contains(says), "{text}: {fault}");
        assert!(!fault.may_have_run, "{text}: no session, so nothing ran");
    }
}

#[test]
fn a_completion_code_says_whether_the_command_may_have_run() {
    for (code, class, may_have_run) in [
        (0xc0, FaultClass::Refused, false),
        (0xc1, FaultClass::Unsupported, false),
        (0xc3, FaultClass::TimedOut, true),
        (0xcc, FaultClass::Unsupported, false),
        (0xce, FaultClass::Refused, true),
        (0xcf, FaultClass::Refused, true),
        (0xd4, FaultClass::Refused, false),
        (0xd6, FaultClass::Unsupported, false),
        (0xff, FaultClass::Refused, true),
    ] {
        let text = format!(
            "Discovered IPMB address 0x0\nUnable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x2 rsp=0x{code:02x}): Some text\n"
        );
        let trouble = parse_ipmitool_output(ended(Some(1), "", &text), "").unwrap_err();
        assert_eq!(trouble, IpmiError::Completion(code));
        let fault = fault_from_error(trouble);
        assert_eq!(
            (fault.class, fault.may_have_run),
            (class, may_have_run),
            "{code:#x}"
        );
    }
}

#[test]
fn a_command_without_an_answer_may_have_run() {
    let text = "Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x2)\nClose Session command failed\n";
    let fault = fault_from_error(parse_ipmitool_output(ended(Some(1), "", text), "").unwrap_err());
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::TimedOut, true)
    );
}

#[test]
fn what_nobody_knows_is_told_without_the_password() {
    let fault = fault_from_error(
        parse_ipmitool_output(ended(Some(1), "", "odd: sekret16\n"), "sekret16").unwrap_err(),
    );
    assert_eq!(
        fault.message,
        "ipmitool failed with an unknown error; it printed: odd: ***"
    );
    assert!(fault.may_have_run);
}

#[test]
fn what_ipmi_cannot_carry_is_refused_before_anything_is_sent() {
    let target = |privilege: &str| IpmiTarget {
        host: "192.0.2.1".into(),
        port: 623,
        privilege: privilege.into(),
        cipher_suite: None,
    };
    let long = "x".repeat(21);
    for (username, password, privilege, class) in [
        ("admin", "sekret16", "ADMINISTRATOR", None),
        (
            "admin",
            &long,
            "ADMINISTRATOR",
            Some(FaultClass::WrongCredentials),
        ),
        (
            "admin",
            "",
            "ADMINISTRATOR",
            Some(FaultClass::WrongCredentials),
        ),
        (
            "admin",
            "two\nlines",
            "ADMINISTRATOR",
            Some(FaultClass::WrongCredentials),
        ),
        (
            &long,
            "sekret16",
            "ADMINISTRATOR",
            Some(FaultClass::WrongCredentials),
        ),
        ("admin", "sekret16", "ROOT", Some(FaultClass::Unsupported)),
    ] {
        let credentials = Credentials {
            username: username.into(),
            password: Password::new(password),
            ca: None,
        };
        let made = IpmiDriver::new(Path::new("ipmitool"), target(privilege), &credentials);
        let fault = made.err();
        assert_eq!(fault.as_ref().map(|fault| fault.class), class, "{fault:?}");
        assert!(fault.is_none_or(|fault| !fault.may_have_run));
    }
}

#[test]
fn a_cipher_suite_that_worked_goes_first_until_it_fails() {
    let suites = CipherSuites::new(None);
    assert_eq!(
        (suites.suites_in_order(), suites.working_suite()),
        (vec![17, 3], None)
    );
    suites.record_success(3);
    assert_eq!(
        (suites.suites_in_order(), suites.working_suite()),
        (vec![3, 17], Some(3))
    );
    suites.record_failure(17);
    assert_eq!(suites.working_suite(), Some(3));
    suites.record_failure(3);
    assert_eq!(
        (suites.suites_in_order(), suites.working_suite()),
        (vec![17, 3], None)
    );
    let fixed = CipherSuites::new(Some(8));
    fixed.record_failure(8);
    assert_eq!(
        (fixed.suites_in_order(), fixed.working_suite()),
        (vec![8], Some(8))
    );
}

#[test]
fn a_uuid_is_told_only_where_the_bytes_can_be_read_in_one_way() {
    let plain = [
        0x4c, 0x4c, 0x45, 0x44, 0x00, 0x47, 0x4b, 0x10, 0x80, 0x31, 0xb5, 0xc0, 0x4f, 0x4e, 0x48,
        0x33,
    ];
    let text = Some("4c4c4544-0047-4b10-8031-b5c04f4e4833".to_owned());
    // In SMBIOS' byte order and in IPMI's.
    let smbios = [
        0x44, 0x45, 0x4c, 0x4c, 0x47, 0x00, 0x10, 0x4b, 0x80, 0x31, 0xb5, 0xc0, 0x4f, 0x4e, 0x48,
        0x33,
    ];
    let mut backwards = plain;
    backwards.reverse();
    assert_eq!(guid::uuid_from_guid(&backwards), text);
    // Both 0x4b and 0x10 can be a version, so SMBIOS' and RFC 4122's order are both possible: no
    // UUID.
    assert_eq!(guid::uuid_from_guid(&plain), None);
    assert_eq!(guid::uuid_from_guid(&smbios), None);
    let plain = [
        0x4c, 0x4c, 0x45, 0x44, 0x00, 0x47, 0x4b, 0x90, 0x80, 0xf1, 0xb5, 0xc0, 0x4f, 0x4e, 0x48,
        0x33,
    ];
    assert_eq!(
        guid::uuid_from_guid(&plain).as_deref(),
        Some("4c4c4544-0047-4b90-80f1-b5c04f4e4833")
    );
    for nothing in [&[0; 16][..], &[0xff; 16], &[], &plain[..15]] {
        assert_eq!(guid::uuid_from_guid(nothing), None);
    }
}

#[test]
fn a_product_is_told_where_it_is_known() {
    let info = "Device ID                 : 0\nManufacturer Name         : DELL Inc\nProduct Name              : PowerEdge\n";
    assert_eq!(
        parse_product_name(info).as_deref(),
        Some("DELL Inc PowerEdge")
    );
    let info =
        "Manufacturer Name         : Unknown (0x1)\nProduct Name              : Unknown (0xF02)\n";
    assert_eq!(parse_product_name(info), None);
}
