//! Interprets ipmitool's output. Pure: a table and functions over it.
//!
//! Source: ipmitool 1.8.19, `src/plugins/lanplus/lanplus.c`, `lib/ipmi_raw.c`, run with one `-v`:
//! without it a wrong password, a dead port and a hung BMC give the same output. Completion codes:
//! IPMI 2.0 table 5-2.

use dogwatch_core::power::{BmcFault, FaultClass};

use crate::child::{ChildExit, redacted_last_line};

/// Why a request got no data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IpmiError {
    /// No session with this cipher suite; another suite may work.
    Suite(BmcFault),
    /// The BMC's completion code (IPMI 2.0 table 5-2).
    Completion(u8),
    /// The request was sent in a session, and no answer came.
    Silent,
    /// Any other fault.
    Fault(BmcFault),
}

impl IpmiError {
    /// The fault when all cipher suites have failed.
    pub(super) fn no_suite_left() -> Self {
        IpmiError::Suite(BmcFault::without_effect(
            FaultClass::Refused,
            SUITE_NOT_OFFERED,
        ))
    }
}

/// What a text in the output means.
#[derive(Clone, Copy)]
enum FailureMeaning {
    /// Only the cipher suite failed.
    Suite,
    /// No session was made, so no command ran.
    NoSession(FaultClass),
}

const SUITE_NOT_OFFERED: &str = "the BMC refuses this cipher suite: write ?ciphersuite=NUMBER into the address, or enable another one on the BMC";
const PRIVILEGE_REFUSED: &str = "the user may not use the requested privilege level: raise the user's level on the BMC, or write ?privilegelevel=OPERATOR into the address";
const NO_FREE_SESSION: &str = "the BMC has too many sessions; it closes old ones within minutes";

const NO_SESSION_ANSWER: &str = "no session: the BMC ignores this cipher suite, or it hangs";

/// Ordered from specific to general: the first text that occurs counts.
const FAILURE_TEXTS: [(&str, FailureMeaning, &str); 20] = [
    (
        "Address lookup for",
        FailureMeaning::NoSession(FaultClass::Unreachable),
        "no name server knows the BMC's name",
    ),
    (
        "Could not open socket",
        FailureMeaning::NoSession(FaultClass::Unreachable),
        "there is no route to the BMC's address",
    ),
    (
        "Get Auth Capabilities error: ",
        FailureMeaning::NoSession(FaultClass::Refused),
        "the BMC does not report its login methods",
    ),
    (
        "Error issuing Get Channel Authentication Capabilities",
        FailureMeaning::NoSession(FaultClass::Unreachable),
        "no answer: the address or the network is wrong, or the BMC hangs or has no power",
    ),
    (
        "does not support IPMI v2",
        FailureMeaning::NoSession(FaultClass::Unsupported),
        "the BMC does not answer IPMI 2.0 over LAN: enable it on the BMC",
    ),
    (
        ": unauthorized name",
        FailureMeaning::NoSession(FaultClass::WrongCredentials),
        "the BMC does not know this user, or does not allow it on this channel",
    ),
    (
        ": invalid name length",
        FailureMeaning::NoSession(FaultClass::WrongCredentials),
        "the BMC does not know this user",
    ),
    (
        "RAKP 2 HMAC is invalid",
        FailureMeaning::NoSession(FaultClass::WrongCredentials),
        "the password is wrong, or the BMC also needs a key (K_g)",
    ),
    (
        "RAKP 4 message indicates an error : invalid integrity check value",
        FailureMeaning::NoSession(FaultClass::WrongCredentials),
        "the password is wrong, or the BMC also needs a key (K_g)",
    ),
    (
        ": unauthorized role requested",
        FailureMeaning::NoSession(FaultClass::Refused),
        PRIVILEGE_REFUSED,
    ),
    (
        ": invalid role",
        FailureMeaning::NoSession(FaultClass::Refused),
        PRIVILEGE_REFUSED,
    ),
    (
        ": insufficient resources",
        FailureMeaning::NoSession(FaultClass::Refused),
        NO_FREE_SESSION,
    ),
    (
        "message indicates an error",
        FailureMeaning::NoSession(FaultClass::Refused),
        "the BMC refuses a session",
    ),
    (
        "response message : insufficient resources",
        FailureMeaning::NoSession(FaultClass::Refused),
        NO_FREE_SESSION,
    ),
    (
        "Error in open session response message",
        FailureMeaning::Suite,
        SUITE_NOT_OFFERED,
    ),
    (
        "is not what we asked for",
        FailureMeaning::Suite,
        SUITE_NOT_OFFERED,
    ),
    (
        "Unsupported cipher suite ID",
        FailureMeaning::Suite,
        SUITE_NOT_OFFERED,
    ),
    (
        "RAKP 4 message has invalid integrity check value",
        FailureMeaning::Suite,
        "the BMC implements this cipher suite incorrectly: write ?ciphersuite=3 into the address, or update the BMC",
    ),
    (
        "no response from RAKP",
        FailureMeaning::NoSession(FaultClass::TimedOut),
        "the BMC stopped answering while a session was set up",
    ),
    (
        "Unable to establish IPMI v2",
        FailureMeaning::Suite,
        NO_SESSION_ANSWER,
    ),
];

/// Returns what ipmitool printed, or why it failed.
pub(super) fn parse_ipmitool_output(ended: ChildExit, password: &str) -> Result<String, IpmiError> {
    if ended.code == Some(0) {
        return Ok(ended.stdout);
    }
    if let Some(at) = ended.stderr.find("Unable to send RAW command (") {
        return Err(parse_raw_error(&ended.stderr[at..]));
    }
    if let Some(trouble) = parse_privilege_error(&ended.stderr) {
        return Err(trouble);
    }
    let table = FAILURE_TEXTS
        .iter()
        .find(|(text, ..)| ended.stderr.contains(text));
    Err(match table {
        Some((_, FailureMeaning::Suite, message)) => {
            IpmiError::Suite(BmcFault::without_effect(FaultClass::Refused, *message))
        }
        Some((_, FailureMeaning::NoSession(class), message)) => {
            IpmiError::Fault(BmcFault::without_effect(*class, *message))
        }
        // A cipher suite that ipmitool itself does not know ends it with a failed assertion.
        None if ended.stderr.contains("Assertion") => IpmiError::Suite(BmcFault::without_effect(
            FaultClass::Unsupported,
            SUITE_NOT_OFFERED,
        )),
        None => {
            let said = redacted_last_line(ended.stderr.lines(), password);
            let message = format!("ipmitool failed with an unknown error; it printed: {said}");
            IpmiError::Fault(BmcFault::with_unknown_effect(FaultClass::Refused, message))
        }
    })
}

/// Reads the result of the first request in a session, which sets its privilege level. A refusal
/// names a reason. Without a reason there was no answer; ipmitool also goes on this way after a
/// session that it could not make.
fn parse_privilege_error(stderr: &str) -> Option<IpmiError> {
    let is_it = |line: &&str| line.starts_with("Set Session Privilege Level to ");
    let line = stderr.lines().find(is_it)?;
    Some(if line.contains("failed:") {
        IpmiError::Fault(BmcFault::without_effect(
            FaultClass::Refused,
            PRIVILEGE_REFUSED,
        ))
    } else {
        IpmiError::Suite(BmcFault::without_effect(
            FaultClass::TimedOut,
            NO_SESSION_ANSWER,
        ))
    })
}

/// Reads `Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x2 rsp=0xd4): Insufficient
/// …`. Without `rsp` no answer came.
fn parse_raw_error(text: &str) -> IpmiError {
    let inner = text.split(')').next().unwrap_or_default();
    let code = inner
        .split_once("rsp=0x")
        .and_then(|(_, code)| u8::from_str_radix(code, 16).ok());
    match code {
        Some(code) => IpmiError::Completion(code),
        None => IpmiError::Silent,
    }
}

/// The bytes that `ipmitool raw` prints: ` 01 00 40`, on several lines if there are many.
pub(super) fn parse_raw_bytes(printed: &str) -> Result<Vec<u8>, BmcFault> {
    let byte = |word| {
        u8::from_str_radix(word, 16)
            .ok()
            .filter(|_| str::len(word) == 2)
    };
    let all: Option<Vec<u8>> = printed.split_whitespace().map(byte).collect();
    all.ok_or_else(|| {
        BmcFault::without_effect(FaultClass::Contradiction, "ipmitool printed no bytes")
    })
}

/// Converts a completion code into a fault. For some codes the BMC cannot tell whether it ran the
/// command; one code means that it ran an earlier copy of the same request.
pub(super) fn completion_code_fault(code: u8) -> BmcFault {
    let (class, text) = match code {
        0xc0 => (FaultClass::Refused, "the BMC is busy"),
        0xc1 | 0xc2 => (
            FaultClass::Unsupported,
            "the BMC does not support the command",
        ),
        0xc3 => (FaultClass::TimedOut, "the BMC reports an internal timeout"),
        0xc7 | 0xc9 | 0xcc => (
            FaultClass::Unsupported,
            "the BMC does not support this power command",
        ),
        0xce => (
            FaultClass::Refused,
            "the BMC cannot report the result of the command",
        ),
        0xcf => (FaultClass::Refused, "the BMC has already run the request"),
        0xd0..=0xd2 => (FaultClass::Refused, "the BMC is starting or being updated"),
        0xd3 => (FaultClass::Refused, "a part of the BMC cannot be reached"),
        0xd4 => (FaultClass::Refused, PRIVILEGE_REFUSED),
        0xd5 => (
            FaultClass::Refused,
            "the command is not possible in the present state",
        ),
        0xd6 => (
            FaultClass::Unsupported,
            "the command is disabled on the BMC",
        ),
        _ => (FaultClass::Refused, "the BMC gives no reason"),
    };
    let message = format!("the BMC refuses with completion code {code:#04x}: {text}");
    let may_have_run = matches!(code, 0xc3 | 0xce | 0xcf | 0xff);
    BmcFault {
        class,
        message,
        may_have_run,
    }
}
