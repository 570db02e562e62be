use proptest::prelude::*;

use super::answer::bytes;
use super::*;

fn ended(code: Option<i32>, stdout: &str, stderr: &str) -> child::Ended {
    child::Ended {
        code,
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    }
}

fn read(code: Option<i32>, stdout: &str, stderr: &str) -> Result<Reading, Fault> {
    let printed = printed(ended(code, stdout, stderr), "sekret16").map_err(fault_of)?;
    power_of(&bytes(&printed)?)
}

#[test]
fn only_a_whole_chassis_status_without_the_power_bit_is_off() {
    for (printed, reading) in [
        (" 00 00 00\n", Some(Reading::Off)),
        (" 01 00 00\n", Some(Reading::On)),
        (" 61 10 40 70\n", Some(Reading::On)),
        (" 60 10 40 70\n", Some(Reading::Off)),
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

/// Each text as ipmitool 1.8.19 printed it against ipmi_sim, or as it stands in its source; the class; what is said.
const FAILURES: [(&str, Class, &str); 12] = [
    (
        "Address lookup for bmc1 failed\nCould not open socket!\n",
        Class::Unreachable,
        "name",
    ),
    (
        "Get Auth Capabilities error\nError issuing Get Channel Authentication Capabilities request\n",
        Class::Unreachable,
        "hangs or has no power",
    ),
    (
        "> RAKP 2 HMAC is invalid\n",
        Class::WrongCredentials,
        "password",
    ),
    (
        "RAKP 2 message indicates an error : unauthorized name\n",
        Class::WrongCredentials,
        "no such user",
    ),
    (
        "RAKP 2 message indicates an error : unauthorized role requested\n",
        Class::Refused,
        "privilege",
    ),
    (
        "RAKP 2 message indicates an error : insufficient resources for session\n",
        Class::Refused,
        "session",
    ),
    (
        "Error in open session response message : insufficient resources for session\n",
        Class::Refused,
        "room",
    ),
    (
        "Error in open session response message : invalid authentication algorithm\n",
        Class::Refused,
        "ciphersuite",
    ),
    (
        "Set Session Privilege Level to ADMINISTRATOR failed: Insufficient privilege level\n",
        Class::Refused,
        "privilege",
    ),
    (
        "Set Session Privilege Level to ADMINISTRATOR failed\n",
        Class::TimedOut,
        "hangs",
    ),
    (
        "This BMC does not support IPMI v2 / RMCP+\n",
        Class::Unsupported,
        "enable",
    ),
    ("", Class::Refused, "or it hangs"),
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
        (0xc0, Class::Refused, false),
        (0xc1, Class::Unsupported, false),
        (0xc3, Class::TimedOut, true),
        (0xcc, Class::Unsupported, false),
        (0xce, Class::Refused, true),
        (0xcf, Class::Refused, true),
        (0xd4, Class::Refused, false),
        (0xd6, Class::Unsupported, false),
        (0xff, Class::Refused, true),
    ] {
        let text = format!(
            "Discovered IPMB address 0x0\nUnable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x2 rsp=0x{code:02x}): Some text\n"
        );
        let trouble = printed(ended(Some(1), "", &text), "").unwrap_err();
        assert_eq!(trouble, Trouble::Completion(code));
        let fault = fault_of(trouble);
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
    let fault = fault_of(printed(ended(Some(1), "", text), "").unwrap_err());
    assert_eq!((fault.class, fault.may_have_run), (Class::TimedOut, true));
}

#[test]
fn what_nobody_knows_is_told_without_the_password() {
    let fault = fault_of(printed(ended(Some(1), "", "odd: sekret16\n"), "sekret16").unwrap_err());
    assert_eq!(
        fault.message,
        "ipmitool failed in a way that is not known; it said: odd: ***"
    );
    assert!(fault.may_have_run);
}

#[test]
fn what_ipmi_cannot_carry_is_refused_before_anything_is_sent() {
    let target = |privilege: &str| Target {
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
            Some(Class::WrongCredentials),
        ),
        ("admin", "", "ADMINISTRATOR", Some(Class::WrongCredentials)),
        (
            "admin",
            "two\nlines",
            "ADMINISTRATOR",
            Some(Class::WrongCredentials),
        ),
        (
            &long,
            "sekret16",
            "ADMINISTRATOR",
            Some(Class::WrongCredentials),
        ),
        ("admin", "sekret16", "ROOT", Some(Class::Unsupported)),
    ] {
        let credentials = Credentials {
            username: username.into(),
            password: Password::new(password),
            ca: None,
        };
        let made = Ipmi::new(Path::new("ipmitool"), target(privilege), &credentials);
        let fault = made.err();
        assert_eq!(fault.as_ref().map(|fault| fault.class), class, "{fault:?}");
        assert!(fault.is_none_or(|fault| !fault.may_have_run));
    }
}

#[test]
fn a_cipher_suite_that_worked_goes_first_until_it_fails() {
    let suites = Suites::new(None);
    assert_eq!((suites.in_order(), suites.known()), (vec![17, 3], None));
    suites.worked(3);
    assert_eq!((suites.in_order(), suites.known()), (vec![3, 17], Some(3)));
    suites.failed(17);
    assert_eq!(suites.known(), Some(3));
    suites.failed(3);
    assert_eq!((suites.in_order(), suites.known()), (vec![17, 3], None));
    let fixed = Suites::new(Some(8));
    fixed.failed(8);
    assert_eq!((fixed.in_order(), fixed.known()), (vec![8], Some(8)));
}

#[test]
fn a_uuid_is_told_only_where_the_bytes_can_be_read_in_one_way() {
    let plain = [
        0x4c, 0x4c, 0x45, 0x44, 0x00, 0x47, 0x4b, 0x10, 0x80, 0x31, 0xb5, 0xc0, 0x4f, 0x4e, 0x48,
        0x33,
    ];
    let text = Some("4c4c4544-0047-4b10-8031-b5c04f4e4833".to_owned());
    // As SMBIOS has it, as IPMI wants it.
    let smbios = [
        0x44, 0x45, 0x4c, 0x4c, 0x47, 0x00, 0x10, 0x4b, 0x80, 0x31, 0xb5, 0xc0, 0x4f, 0x4e, 0x48,
        0x33,
    ];
    let mut backwards = plain;
    backwards.reverse();
    assert_eq!(guid::uuid(&backwards), text);
    // 0x4b and 0x10 are both fit for a version: SMBIOS' order, or RFC 4122's? Not told.
    assert_eq!(guid::uuid(&plain), None);
    assert_eq!(guid::uuid(&smbios), None);
    let plain = [
        0x4c, 0x4c, 0x45, 0x44, 0x00, 0x47, 0x4b, 0x90, 0x80, 0xf1, 0xb5, 0xc0, 0x4f, 0x4e, 0x48,
        0x33,
    ];
    assert_eq!(
        guid::uuid(&plain).as_deref(),
        Some("4c4c4544-0047-4b90-80f1-b5c04f4e4833")
    );
    for nothing in [&[0; 16][..], &[0xff; 16], &[], &plain[..15]] {
        assert_eq!(guid::uuid(nothing), None);
    }
}

#[test]
fn a_product_is_told_where_it_is_known() {
    let info = "Device ID                 : 0\nManufacturer Name         : DELL Inc\nProduct Name              : PowerEdge\n";
    assert_eq!(product(info).as_deref(), Some("DELL Inc PowerEdge"));
    let info =
        "Manufacturer Name         : Unknown (0x1)\nProduct Name              : Unknown (0xF02)\n";
    assert_eq!(product(info), None);
}
