use super::*;
use crate::Password;

const METADATA: &str = r#"<?xml version="1.0" ?>
<resource-agent name="fence_plug" shortdesc="A &quot;plug&quot;">
<longdesc>fence_plug switches &lt;plugs&gt;.</longdesc>
<parameters>
	<parameter name="action" unique="0" required="1"><content type="string" default="reboot"/></parameter>
	<parameter name="ip" unique="0" required="1" obsoletes="ipaddr"><content type="string"/></parameter>
	<parameter name="ipaddr" unique="0" required="1" deprecated="1"><content type="string"/></parameter>
	<parameter name="login" unique="0" required="1" deprecated="1"><content type="string"/></parameter>
	<parameter name="username" unique="0" required="1" obsoletes="login"><content type="string"/></parameter>
	<parameter name="password" unique="0" required="0" obsoletes="passwd"><content type="string"/></parameter>
	<parameter name="plug" unique="0" required="1" obsoletes="port"><content type="string"/></parameter>
	<parameter name="old-name" unique="0" required="0"><content type="string"/></parameter>
	<parameter name="ssl_insecure" unique="0" required="0"><content type="boolean"/></parameter>
</parameters>
<actions>
	<action name="on" automatic="0"/>
	<action name="off"/>
	<action name="status"/>
</actions>
</resource-agent>
"#;

fn ended(code: i32, stdout: &str, stderr: &str) -> ChildExit {
    ChildExit {
        code: Some(code),
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    }
}

fn credentials(password: &str) -> Credentials {
    Credentials {
        username: "admin".to_owned(),
        password: Password::new(password),
        ca: None,
    }
}

fn target(options: &[(&str, &str)]) -> FenceTarget {
    let options = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    FenceTarget {
        agent: "fence_plug".to_owned(),
        host: "192.0.2.1".to_owned(),
        port: None,
        options: options.collect(),
    }
}

fn metadata() -> AgentMetadata {
    AgentMetadata::parse("fence_plug", METADATA).expect("written above")
}

fn lines(target: &FenceTarget, password: &str, verify: bool) -> Result<String, BmcFault> {
    input::render_stdin("off", target, &credentials(password), verify, &metadata())
}

#[test]
fn only_exit_code_and_words_together_are_off() {
    use FaultClass::{Contradiction, Refused};
    for (code, stdout, reading) in [
        (0, "Status: ON\n", Ok(PowerReading::On)),
        (2, "Status: OFF\n", Ok(PowerReading::Off)),
        (2, "warning: old\nStatus: OFF\n", Ok(PowerReading::Off)),
        // Python that cannot open the script; misuse of a shell.
        (2, "", Err(Refused)),
        (2, "Status: ON\n", Err(Contradiction)),
        (2, "Status: ON\nStatus: OFF\n", Err(Contradiction)),
        (2, "not Status: OFF\n", Err(Refused)),
        (2, "Status: OFFLINE\n", Err(Refused)),
        (0, "Status: OFF\n", Err(Contradiction)),
        (0, "", Err(Contradiction)),
        (1, "Status: OFF\n", Err(Contradiction)),
        (1, "", Err(Refused)),
        (127, "", Err(Refused)),
    ] {
        let said = answer::parse_power_status("fence_plug", &ended(code, stdout, ""), "");
        assert_eq!(
            said.map_err(|fault| fault.class),
            reading,
            "{code} {stdout:?}"
        );
    }
    let killed = ChildExit {
        code: None,
        ..ended(0, "Status: OFF\n", "")
    };
    assert!(answer::parse_power_status("fence_plug", &killed, "").is_err());
}

/// Texts as fence-agents 4.12.1 prints them.
#[test]
fn a_failure_says_what_is_wrong_and_whether_the_command_may_have_run() {
    for (stderr, class, may_have_run) in [
        (
            "ERROR: Unable to connect/login to fencing device\n",
            FaultClass::WrongCredentials,
            false,
        ),
        (
            "ERROR: Failed: Timed out waiting to power OFF\n",
            FaultClass::TimedOut,
            true,
        ),
        ("ERROR: Connection timed out\n", FaultClass::TimedOut, true),
        (
            "ERROR: Failed: Unable to obtain correct plug status or plug is not available\n",
            FaultClass::NoSuchSystem,
            true,
        ),
        (
            "ERROR: Failed: You have to enter plug number or machine identification\n",
            FaultClass::NoSuchSystem,
            false,
        ),
        (
            "ERROR: Failed: You have to enter password or password script\n",
            FaultClass::WrongCredentials,
            false,
        ),
        (
            "(Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate\n",
            FaultClass::Tls,
            true,
        ),
        (
            "[Errno 111] Connection refused'))\n",
            FaultClass::Unreachable,
            true,
        ),
        (
            "The command was not found or was not executable: /usr/bin/telnet.\n",
            FaultClass::Unsupported,
            false,
        ),
        (
            "Traceback (most recent call last):\n",
            FaultClass::Refused,
            true,
        ),
        ("", FaultClass::Refused, true),
    ] {
        let fault =
            answer::parse_command_answer("fence_plug", &ended(1, "", stderr), "").unwrap_err();
        assert_eq!(
            (fault.class, fault.may_have_run),
            (class, may_have_run),
            "{stderr}"
        );
        assert!(fault.message.starts_with("fence_plug"), "{fault}");
    }
}

#[test]
fn an_agents_own_words_are_told_without_the_password_and_the_time() {
    for (words, told) in [
        (
            "INFO: ssh admin:sekret16@pdu\n\n2026-11-21 23:34:51,522 ERROR: Please use '-h' for usage\n",
            "INFO: ssh admin:***@pdu",
        ),
        (
            "2026-11-21 23:34:51,522 ERROR: Couldn't get power information\n",
            "Couldn't get power information",
        ),
        ("", "nothing"),
    ] {
        let fault = answer::parse_failure("fence_plug", &ended(1, "", words), "sekret16");
        let message = format!("fence_plug failed with exit code 1; it printed: {told}");
        assert_eq!(fault.message, message);
    }
}

#[test]
fn already_so_is_an_answer() {
    for (stdout, answered) in [
        ("Success: Powered OFF\n", CommandAnswer::Accepted),
        ("Success: Already OFF\n", CommandAnswer::AlreadyThere),
    ] {
        let said = answer::parse_command_answer("fence_plug", &ended(0, stdout, ""), "");
        assert_eq!(said, Ok(answered));
    }
}

#[test]
fn options_are_lines_with_the_agents_own_names() {
    let written = lines(
        &target(&[("plug", "4"), ("old_name", "x")]),
        "sekret16",
        true,
    )
    .unwrap();
    assert_eq!(
        written,
        "action=off\nip=192.0.2.1\nusername=admin\npassword=sekret16\nold-name=x\nplug=4\n"
    );
}

#[test]
fn a_default_that_cannot_do_any_more_is_replaced() {
    let metadata = METADATA.replace("old-name", "ssh_options");
    let metadata = AgentMetadata::parse("fence_apc", &metadata).unwrap();
    let mut target = target(&[("plug", "4")]);
    target.agent = "fence_apc".to_owned();
    let lines = input::render_stdin("off", &target, &credentials("sekret16"), true, &metadata);
    assert!(lines.unwrap().contains("ssh_options=\n"));
}

#[test]
fn the_certificate_is_left_unverified_only_where_that_is_wanted() {
    let target = target(&[("plug", "4")]);
    assert!(
        !lines(&target, "sekret16", true)
            .unwrap()
            .contains("ssl_insecure")
    );
    assert!(
        lines(&target, "sekret16", false)
            .unwrap()
            .contains("ssl_insecure=1\n")
    );
}

/// Reads a line as `lib/fencing.py` does: stripped, and without one pair of quotes.
#[test]
fn a_value_arrives_as_it_was_written() {
    for (value, line) in [
        ("a b", "password=a b\n"),
        ("a=b#c", "password=a=b#c\n"),
        ("\"quoted\"", "password=\"\"quoted\"\"\n"),
        ("\"", "password=\"\n"),
        (" blanks ", "password=\" blanks \"\n"),
    ] {
        let written = lines(&target(&[("plug", "4")]), value, true).unwrap();
        assert!(written.contains(line), "{value:?}: {written}");
    }
}

#[test]
fn an_option_that_the_agent_does_not_have_is_refused_by_name() {
    let fault = lines(&target(&[("plugg", "4")]), "sekret16", true).unwrap_err();
    assert_eq!(fault.message, "fence_plug has no option plugg");
    let mut target = target(&[]);
    target.port = Some(161);
    let fault = lines(&target, "sekret16", true).unwrap_err();
    assert_eq!(fault.message, "fence_plug has no option ipport");
}

fn made(agent: &str, options: &[(&str, &str)], password: &str) -> Result<FenceDriver, BmcFault> {
    let target = FenceTarget {
        agent: agent.to_owned(),
        ..target(options)
    };
    FenceDriver::new(Path::new("/usr/sbin"), target, &credentials(password), true)
}

#[test]
fn what_is_no_safe_agent_is_refused_with_the_better_way_named() {
    for (agent, says) in [
        ("fence_ipmilan", "ipmi://HOST"),
        ("fence_ilo5", "ipmi://HOST"),
        ("fence_apc_snmp", "snmpset"),
        ("fence_kdump", "proves nothing"),
        ("fence_ack_manual", "proves nothing"),
        ("fence_dummy", "proves nothing"),
        ("fence_../../bin/sh", "lower-case"),
        ("fence_", "lower-case"),
        ("ipmitool", "lower-case"),
        ("fence_redfish", "systems_uri"),
    ] {
        let fault = made(agent, &[], "sekret16").unwrap_err();
        assert_eq!(
            (fault.class, fault.may_have_run),
            (FaultClass::Unsupported, false)
        );
        assert!(fault.message.contains(says), "{agent}: {fault}");
    }
    assert!(made("fence_apc", &[("plug", "1")], "sekret16").is_ok());
}

#[test]
fn no_option_hides_or_widens_what_an_agent_does() {
    for name in [
        "missing_as_off",
        "quiet",
        "ssl_insecure",
        "runonwarn",
        "exec",
        "apikey",
    ] {
        let fault = made("fence_apc", &[("plug", "1"), (name, "1")], "sekret16").unwrap_err();
        assert_eq!(fault.class, FaultClass::Unsupported);
        assert!(fault.message.contains(name), "{fault}");
    }
    for (options, password) in [
        (&[("plug", "1\naction=on")][..], "sekret16"),
        (&[("plug", "1")], "a\nb"),
    ] {
        assert!(
            made("fence_apc", options, password).is_err(),
            "a line break adds an option"
        );
    }
}

#[test]
fn metadata_is_read_and_what_is_none_is_refused() {
    let metadata = metadata();
    assert!(
        metadata.has_option("plug") && metadata.has_action("off") && !metadata.has_action("reboot")
    );
    assert!(!metadata.is_fabric);
    let fabric = METADATA.replace("automatic=\"0\"", "automatic=\"1\"");
    assert!(
        AgentMetadata::parse("fence_plug", &fabric)
            .unwrap()
            .is_fabric
    );
    let half = &METADATA[..METADATA.len() / 2];
    let bomb =
        "<!DOCTYPE a [<!ENTITY b \"c\">]><resource-agent><action name=\"off\"/></resource-agent>";
    for nothing in [
        "",
        "usage: fence_plug",
        "<a/>",
        "<resource-agent/>",
        half,
        bomb,
    ] {
        let fault = AgentMetadata::parse("fence_plug", nothing).unwrap_err();
        assert_eq!(fault.class, FaultClass::Contradiction, "{nothing}");
    }
}

#[test]
fn a_user_name_cannot_become_a_command() {
    let with_user = |username: &str| {
        let credentials = Credentials {
            username: username.to_owned(),
            ..credentials("sekret16")
        };
        FenceDriver::new(Path::new("/"), target(&[("plug", "1")]), &credentials, true)
    };
    for username in [
        "\"-oProxyCommand=touch /tmp/x\" a",
        "-oProxyCommand=reboot",
        "a -oProxyCommand=reboot",
        "a\u{a0}b",
        "'a'",
    ] {
        let fault = with_user(username).unwrap_err();
        assert_eq!(
            (fault.class, fault.may_have_run),
            (FaultClass::WrongCredentials, false)
        );
        assert!(!fault.message.contains(username), "{fault}");
    }
    for username in [
        "admin",
        "DOMAIN\\admin",
        "admin@vsphere.local",
        "root@pam!token",
        "a-b_c",
    ] {
        assert!(with_user(username).is_ok(), "{username}");
    }
}

#[test]
fn an_option_cannot_become_a_command() {
    let with_plug = |value| {
        let target = target(&[("plug", value)]);
        FenceDriver::new(Path::new("/"), target, &credentials("p"), true)
    };
    for value in [
        "vm;reboot",
        "vm|sh",
        "vm&",
        "$(reboot)",
        "`reboot`",
        "vm > /etc/x",
        "a\"b",
        "it's",
        "-oProxyCommand=x",
        "a\\b",
    ] {
        let fault = with_plug(value).unwrap_err();
        assert_eq!(fault.class, FaultClass::Unsupported, "{value}");
        assert!(fault.message.contains("plug"), "{fault}");
    }
    for value in [
        "1",
        "4,5",
        "web (1)",
        "i-0abc",
        "/redfish/v1/Systems/1",
        "tag:Name=a",
        "https://h:8006/api?x=y",
    ] {
        assert!(with_plug(value).is_ok(), "{value}");
    }
}
