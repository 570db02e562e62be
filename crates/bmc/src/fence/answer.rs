//! Interprets a fence agent's exit code and output. Pure.
//!
//! Source: ClusterLabs' Fence Agent API; fence-agents 4.12.1, `lib/fencing.py`, where every failure
//! has exit code 1.

use dogwatch_core::power::{BmcFault, CommandAnswer, FaultClass, PowerReading};

use crate::child::{ChildExit, redacted_last_line};

const EXIT_CODE_ON: i32 = 0;
/// Python and shells use this exit code too if a script is missing or misused, so the output must
/// say "off" as well.
const EXIT_CODE_OFF: i32 = 2;

/// At which stage an agent fails: whether it may have sent a command before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FailureStage {
    /// Before it speaks to the device, or during login.
    Before,
    /// At any time: every agent reads the state before and after the command.
    Any,
}

/// A text on standard error, its class, its stage, and the message to use instead of the agent's
/// own text. The first text that occurs counts.
const FAILURE_TEXTS: [(&str, FaultClass, FailureStage, &str); 18] = [
    (
        "CERTIFICATE_VERIFY_FAILED",
        FaultClass::Tls,
        FailureStage::Any,
        "the certificate is not signed by a known CA",
    ),
    (
        "SSL certificate problem",
        FaultClass::Tls,
        FailureStage::Any,
        "the certificate is not signed by a known CA",
    ),
    (
        "Connection refused",
        FaultClass::Unreachable,
        FailureStage::Any,
        "no program listens at the address",
    ),
    (
        "No route to host",
        FaultClass::Unreachable,
        FailureStage::Any,
        "there is no route to the address",
    ),
    (
        "Network is unreachable",
        FaultClass::Unreachable,
        FailureStage::Any,
        "there is no route to the address",
    ),
    (
        "Name or service not known",
        FaultClass::Unreachable,
        FailureStage::Any,
        "no name server knows the name",
    ),
    (
        "Could not resolve",
        FaultClass::Unreachable,
        FailureStage::Any,
        "no name server knows the name",
    ),
    (
        "Unable to connect/login",
        // The agent does not say which of the two it is. Too many attempts with a wrong password
        // lock the account.
        FaultClass::WrongCredentials,
        FailureStage::Before,
        "it could not connect or log in: check the address, the network, the user and the password",
    ),
    (
        "Unable to get PowerState",
        FaultClass::WrongCredentials,
        FailureStage::Any,
        "the answer contains no power state: check the user, the password and systems_uri",
    ),
    (
        "login password",
        FaultClass::WrongCredentials,
        FailureStage::Before,
        "it lacks a password",
    ),
    (
        "enter password",
        FaultClass::WrongCredentials,
        FailureStage::Before,
        "it lacks a password",
    ),
    (
        "login name",
        FaultClass::WrongCredentials,
        FailureStage::Before,
        "it lacks a user",
    ),
    (
        "correct privileges",
        FaultClass::Refused,
        FailureStage::Any,
        "the user may not do this",
    ),
    (
        "plug is not available",
        FaultClass::NoSuchSystem,
        FailureStage::Any,
        "the plug does not exist, or its state cannot be read",
    ),
    (
        "You have to enter plug",
        FaultClass::NoSuchSystem,
        FailureStage::Before,
        "add the plug to the address: ?plug=NUMBER",
    ),
    (
        "Timed out waiting to power",
        FaultClass::TimedOut,
        FailureStage::Any,
        "the device accepted the command, but the power state did not change",
    ),
    (
        "timed out",
        FaultClass::TimedOut,
        FailureStage::Any,
        "the device stopped answering",
    ),
    (
        "not executable",
        FaultClass::Unsupported,
        FailureStage::Before,
        "a program that the agent needs is not installed where the controller runs",
    ),
];

/// The power state from `action=status`. Only exit code and output together mean "off".
pub(super) fn parse_power_status(
    agent: &str,
    ended: &ChildExit,
    password: &str,
) -> Result<PowerReading, BmcFault> {
    let says = |word: &str| ended.stdout.lines().any(|line| line.trim() == word);
    match (ended.code, says("Status: ON"), says("Status: OFF")) {
        (Some(EXIT_CODE_ON), true, false) => Ok(PowerReading::On),
        (Some(EXIT_CODE_OFF), false, true) => Ok(PowerReading::Off),
        (Some(EXIT_CODE_ON), ..) | (_, true, _) | (_, _, true) => {
            let message = format!(
                "{agent} contradicts itself: exit code {}, but it printed: {}",
                exit_code_text(ended),
                redacted_last_line(ended.stdout.lines(), password)
            );
            Err(BmcFault::without_effect(FaultClass::Contradiction, message))
        }
        (Some(_) | None, false, false) => Err(parse_failure(agent, ended, password)),
    }
}

/// The result of `action=on` or `action=off`. An agent reports success only after it has read the
/// new state.
pub(super) fn parse_command_answer(
    agent: &str,
    ended: &ChildExit,
    password: &str,
) -> Result<CommandAnswer, BmcFault> {
    if ended.code != Some(0) {
        return Err(parse_failure(agent, ended, password));
    }
    Ok(if ended.stdout.contains("Success: Already") {
        CommandAnswer::AlreadyThere
    } else {
        CommandAnswer::Accepted
    })
}

/// The cause of a failure, as far as the output names it.
pub(super) fn parse_failure(agent: &str, ended: &ChildExit, password: &str) -> BmcFault {
    let table = FAILURE_TEXTS
        .iter()
        .find(|(text, ..)| ended.stderr.contains(text));
    if let Some((_, class, when, means)) = table {
        return BmcFault {
            class: *class,
            message: format!("{agent}: {means}"),
            may_have_run: *when == FailureStage::Any,
        };
    }
    let lines = ended.stderr.lines().chain(ended.stdout.lines());
    let lines: Vec<_> = lines.map(strip_log_prefix).collect();
    let message = format!(
        "{agent} failed with exit code {}; it printed: {}",
        exit_code_text(ended),
        redacted_last_line(lines.into_iter(), password)
    );
    BmcFault::with_unknown_effect(FaultClass::Refused, message)
}

/// Removes the time from a line of an agent's log, because a changing time would make each message
/// a new one: `2026-11-21 23:34:51,522 ERROR: text`. Also removes the hint at the end of each usage
/// error.
fn strip_log_prefix(line: &str) -> &str {
    let text = line.split_once("ERROR: ").map_or(line, |(_, text)| text);
    if text.starts_with("Please use '-h'") {
        return "";
    }
    text
}

fn exit_code_text(ended: &ChildExit) -> String {
    ended
        .code
        .map_or("none".to_owned(), |code| code.to_string())
}
