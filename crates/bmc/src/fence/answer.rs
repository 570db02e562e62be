//! What an agent's exit code and words mean. Pure.
//!
//! Source: ClusterLabs' Fence Agent API; fence-agents 4.12.1, `lib/fencing.py`, whose failures all have exit code 1.

use dogwatch_core::power::{Answer, Class, Fault, Reading};

use crate::child::{Ended, said};

const ON: i32 = 0;
/// Also how Python and shells end where a script is missing or misused: the words must say it too.
const OFF: i32 = 2;

/// When it fails so, whether a command may have gone out before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before it speaks to the device, or while it logs in.
    Before,
    /// At any time: every agent reads the state before the command and after.
    Any,
}

/// Words on standard error, the class, when, and what is to be said where the agent's words do not. The first that occurs
/// counts.
const TEXTS: [(&str, Class, When, &str); 18] = [
    (
        "CERTIFICATE_VERIFY_FAILED",
        Class::Tls,
        When::Any,
        "the certificate is not from a CA that is known",
    ),
    (
        "SSL certificate problem",
        Class::Tls,
        When::Any,
        "the certificate is not from a CA that is known",
    ),
    (
        "Connection refused",
        Class::Unreachable,
        When::Any,
        "nothing listens at the address",
    ),
    (
        "No route to host",
        Class::Unreachable,
        When::Any,
        "there is no route to the address",
    ),
    (
        "Network is unreachable",
        Class::Unreachable,
        When::Any,
        "there is no route to the address",
    ),
    (
        "Name or service not known",
        Class::Unreachable,
        When::Any,
        "the name is not known to any name server",
    ),
    (
        "Could not resolve",
        Class::Unreachable,
        When::Any,
        "the name is not known to any name server",
    ),
    (
        "Unable to connect/login",
        // Not told apart; asked too often, a device that refuses a password locks the account.
        Class::WrongCredentials,
        When::Before,
        "it could not connect or not log in: the address, the network, or user and password",
    ),
    (
        "Unable to get PowerState",
        Class::WrongCredentials,
        When::Any,
        "the answer holds no power state: user and password, or systems_uri, are wrong",
    ),
    (
        "login password",
        Class::WrongCredentials,
        When::Before,
        "it lacks a password",
    ),
    (
        "enter password",
        Class::WrongCredentials,
        When::Before,
        "it lacks a password",
    ),
    (
        "login name",
        Class::WrongCredentials,
        When::Before,
        "it lacks a user",
    ),
    (
        "correct privileges",
        Class::Refused,
        When::Any,
        "the user may not do this",
    ),
    (
        "plug is not available",
        Class::NoSuchSystem,
        When::Any,
        "the plug is not there, or its state cannot be read",
    ),
    (
        "You have to enter plug",
        Class::NoSuchSystem,
        When::Before,
        "name the plug: ?plug=NUMBER",
    ),
    (
        "Timed out waiting to power",
        Class::TimedOut,
        When::Any,
        "the command was taken and the state did not follow",
    ),
    (
        "timed out",
        Class::TimedOut,
        When::Any,
        "the device fell silent",
    ),
    (
        "not executable",
        Class::Unsupported,
        When::Before,
        "a program that it needs is not installed where the controller runs",
    ),
];

/// The power, from `action=status`: only exit code and words together are off.
pub(super) fn reading(agent: &str, ended: &Ended, password: &str) -> Result<Reading, Fault> {
    let says = |word: &str| ended.stdout.lines().any(|line| line.trim() == word);
    match (ended.code, says("Status: ON"), says("Status: OFF")) {
        (Some(ON), true, false) => Ok(Reading::On),
        (Some(OFF), false, true) => Ok(Reading::Off),
        (Some(ON), ..) | (_, true, _) | (_, _, true) => {
            let message = format!(
                "{agent} contradicts itself: exit code {}, and it said: {}",
                code(ended),
                said(ended.stdout.lines(), password)
            );
            Err(Fault::harmless(Class::Contradiction, message))
        }
        (Some(_) | None, false, false) => Err(failure(agent, ended, password)),
    }
}

/// How `action=on` or `action=off` ended: an agent says yes only once it has seen the state.
pub(super) fn answer(agent: &str, ended: &Ended, password: &str) -> Result<Answer, Fault> {
    if ended.code != Some(0) {
        return Err(failure(agent, ended, password));
    }
    Ok(if ended.stdout.contains("Success: Already") {
        Answer::AlreadyThere
    } else {
        Answer::Accepted
    })
}

/// Why it failed, as far as its words tell.
pub(super) fn failure(agent: &str, ended: &Ended, password: &str) -> Fault {
    let table = TEXTS.iter().find(|(text, ..)| ended.stderr.contains(text));
    if let Some((_, class, when, means)) = table {
        return Fault {
            class: *class,
            message: format!("{agent}: {means}"),
            may_have_run: *when == When::Any,
        };
    }
    let lines = ended.stderr.lines().chain(ended.stdout.lines());
    let lines: Vec<_> = lines.map(words).collect();
    let message = format!(
        "{agent} failed with exit code {}; it said: {}",
        code(ended),
        said(lines.into_iter(), password)
    );
    Fault::unknown_end(Class::Refused, message)
}

/// A line of an agent's log without its time, which would make each message another one: `2026-11-21 23:34:51,522 ERROR: text`.
/// The hint that ends each usage error says nothing.
fn words(line: &str) -> &str {
    let text = line.split_once("ERROR: ").map_or(line, |(_, text)| text);
    if text.starts_with("Please use '-h'") {
        return "";
    }
    text
}

fn code(ended: &Ended) -> String {
    ended
        .code
        .map_or("none".to_owned(), |code| code.to_string())
}
