//! What ipmitool's words mean. Pure: a table and a function over it.
//!
//! Source: ipmitool 1.8.19, `src/plugins/lanplus/lanplus.c`, `lib/ipmi_raw.c`, run with one `-v`: without it a
//! wrong password, a dead port and a hung BMC read the same. Completion codes: IPMI 2.0 table 5-2.

use dogwatch_core::power::{Class, Fault};

use crate::child::{Ended, said};

/// Why a request was not answered with data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No session with this cipher suite; another one may do.
    Suite(Fault),
    /// The BMC's own number for why not (IPMI 2.0 table 5-2).
    Completion(u8),
    /// A session was made, the request was sent in it, and no answer came.
    Silent,
    /// Anything else.
    Fault(Fault),
}

impl Trouble {
    /// No cipher suite is left to try.
    pub(super) fn no_suite() -> Self {
        Trouble::Suite(Fault::harmless(Class::Refused, NOT_OFFERED))
    }
}

/// What is known when a text is read.
#[derive(Clone, Copy)]
enum Meaning {
    /// It concerns the cipher suite alone.
    Suite,
    /// No session was made, so nothing ran.
    NoSession(Class),
}

const NOT_OFFERED: &str = "the BMC refuses this cipher suite: write ?ciphersuite=NUMBER into the address, or enable another one on the BMC";
const ROLE: &str = "the user may not have the privilege level that is asked for: raise it on the BMC, or write ?privilegelevel=OPERATOR into the address";
const FULL: &str = "the BMC has no room for another session; it frees old ones within minutes";

const SILENT: &str = "no session: the BMC refuses this cipher suite without a word, or it hangs";

/// From the particular to the general: the first that occurs counts.
const TEXTS: [(&str, Meaning, &str); 20] = [
    (
        "Address lookup for",
        Meaning::NoSession(Class::Unreachable),
        "the BMC's name is not known to any name server",
    ),
    (
        "Could not open socket",
        Meaning::NoSession(Class::Unreachable),
        "there is no route to the BMC's address",
    ),
    (
        "Get Auth Capabilities error: ",
        Meaning::NoSession(Class::Refused),
        "the BMC does not say how to log in to it",
    ),
    (
        "Error issuing Get Channel Authentication Capabilities",
        Meaning::NoSession(Class::Unreachable),
        "no answer: the address or the network is wrong, or the BMC hangs or has no power",
    ),
    (
        "does not support IPMI v2",
        Meaning::NoSession(Class::Unsupported),
        "the BMC speaks no IPMI 2.0 over LAN: enable it on the BMC",
    ),
    (
        ": unauthorized name",
        Meaning::NoSession(Class::WrongCredentials),
        "the BMC knows no such user, or not on this channel",
    ),
    (
        ": invalid name length",
        Meaning::NoSession(Class::WrongCredentials),
        "the BMC knows no such user",
    ),
    (
        "RAKP 2 HMAC is invalid",
        Meaning::NoSession(Class::WrongCredentials),
        "the password is wrong, or the BMC asks for a key (K_g) as well",
    ),
    (
        "RAKP 4 message indicates an error : invalid integrity check value",
        Meaning::NoSession(Class::WrongCredentials),
        "the password is wrong, or the BMC asks for a key (K_g) as well",
    ),
    (
        ": unauthorized role requested",
        Meaning::NoSession(Class::Refused),
        ROLE,
    ),
    (": invalid role", Meaning::NoSession(Class::Refused), ROLE),
    (
        ": insufficient resources",
        Meaning::NoSession(Class::Refused),
        FULL,
    ),
    (
        "message indicates an error",
        Meaning::NoSession(Class::Refused),
        "the BMC refuses a session",
    ),
    (
        "response message : insufficient resources",
        Meaning::NoSession(Class::Refused),
        FULL,
    ),
    (
        "Error in open session response message",
        Meaning::Suite,
        NOT_OFFERED,
    ),
    ("is not what we asked for", Meaning::Suite, NOT_OFFERED),
    ("Unsupported cipher suite ID", Meaning::Suite, NOT_OFFERED),
    (
        "RAKP 4 message has invalid integrity check value",
        Meaning::Suite,
        "the BMC computes this cipher suite wrongly: write ?ciphersuite=3 into the address, or update the BMC",
    ),
    (
        "no response from RAKP",
        Meaning::NoSession(Class::TimedOut),
        "the BMC fell silent while a session was made",
    ),
    ("Unable to establish IPMI v2", Meaning::Suite, SILENT),
];

/// What it printed, or why it did not.
pub(super) fn printed(ended: Ended, password: &str) -> Result<String, Trouble> {
    if ended.code == Some(0) {
        return Ok(ended.stdout);
    }
    if let Some(at) = ended.stderr.find("Unable to send RAW command (") {
        return Err(unanswered(&ended.stderr[at..]));
    }
    if let Some(trouble) = no_privilege(&ended.stderr) {
        return Err(trouble);
    }
    let table = TEXTS.iter().find(|(text, ..)| ended.stderr.contains(text));
    Err(match table {
        Some((_, Meaning::Suite, message)) => {
            Trouble::Suite(Fault::harmless(Class::Refused, *message))
        }
        Some((_, Meaning::NoSession(class), message)) => {
            Trouble::Fault(Fault::harmless(*class, *message))
        }
        // A cipher suite that ipmitool does not know itself ends it on an assertion.
        None if ended.stderr.contains("Assertion") => {
            Trouble::Suite(Fault::harmless(Class::Unsupported, NOT_OFFERED))
        }
        None => {
            let said = said(ended.stderr.lines(), password);
            let message = format!("ipmitool failed in a way that is not known; it said: {said}");
            Trouble::Fault(Fault::unknown_end(Class::Refused, message))
        }
    })
}

/// The first request in a session sets its privilege level. Refused, it names a reason; without one there was no answer, which is
/// also how ipmitool goes on after a session that it could not make.
fn no_privilege(stderr: &str) -> Option<Trouble> {
    let is_it = |line: &&str| line.starts_with("Set Session Privilege Level to ");
    let line = stderr.lines().find(is_it)?;
    Some(if line.contains("failed:") {
        Trouble::Fault(Fault::harmless(Class::Refused, ROLE))
    } else {
        Trouble::Suite(Fault::harmless(Class::TimedOut, SILENT))
    })
}

/// `Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x2 rsp=0xd4): Insufficient …`; without `rsp`
/// no answer came.
fn unanswered(text: &str) -> Trouble {
    let inner = text.split(')').next().unwrap_or_default();
    let code = inner
        .split_once("rsp=0x")
        .and_then(|(_, code)| u8::from_str_radix(code, 16).ok());
    match code {
        Some(code) => Trouble::Completion(code),
        None => Trouble::Silent,
    }
}

/// The bytes that `ipmitool raw` prints: ` 01 00 40`, on several lines where there are many.
pub(super) fn bytes(printed: &str) -> Result<Vec<u8>, Fault> {
    let byte = |word| {
        u8::from_str_radix(word, 16)
            .ok()
            .filter(|_| str::len(word) == 2)
    };
    let all: Option<Vec<u8>> = printed.split_whitespace().map(byte).collect();
    all.ok_or_else(|| Fault::harmless(Class::Contradiction, "ipmitool printed no bytes"))
}

/// A completion code as a fault. Some say that the BMC cannot tell whether it ran the command; one, that
/// an earlier copy of the same request was run.
pub(super) fn refusal(code: u8) -> Fault {
    let (class, text) = match code {
        0xc0 => (Class::Refused, "it is busy"),
        0xc1 | 0xc2 => (Class::Unsupported, "it does not know the command"),
        0xc3 => (Class::TimedOut, "it timed out inside"),
        0xc7 | 0xc9 | 0xcc => (Class::Unsupported, "it does not know this way to switch"),
        0xce => (Class::Refused, "it cannot tell what came of it"),
        0xcf => (Class::Refused, "it ran the request already"),
        0xd0..=0xd2 => (Class::Refused, "it is being updated or starts"),
        0xd3 => (Class::Refused, "a part of it cannot be reached"),
        0xd4 => (Class::Refused, ROLE),
        0xd5 => (Class::Refused, "not in its present state"),
        0xd6 => (Class::Unsupported, "the command is disabled on it"),
        _ => (Class::Refused, "it does not say why"),
    };
    let message = format!("the BMC refuses with completion code {code:#04x}: {text}");
    let may_have_run = matches!(code, 0xc3 | 0xce | 0xcf | 0xff);
    Fault {
        class,
        message,
        may_have_run,
    }
}
