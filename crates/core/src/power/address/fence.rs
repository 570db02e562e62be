//! Fence agents: which ones, and which options an address may give them.
//!
//! Who may write a host may switch its power, and no more: an option that would run a program of the
//! writer's choice in the controller, or write a password somewhere, is refused.

use std::collections::BTreeMap;

use super::BadAddress;
use super::text::{bad, pairs};

/// Agents that are fence_ipmilan under another name: it gives the password to ipmitool on its command
/// line. Source: fence-agents' Makefile (`TARGET` and its symlinks); facts/bmc.md §3.
const IPMILAN: [&str; 8] = [
    "fence_ipmilan",
    "fence_ipmilanplus",
    "fence_idrac",
    "fence_ilo3",
    "fence_ilo4",
    "fence_ilo5",
    "fence_ilo6",
    "fence_imm",
];

/// Options that the driver sets itself.
const OURS: [&str; 8] = [
    "action", "delay", "ip", "ipaddr", "ipport", "login", "username", "method",
];

/// What an agent writes or prints with these holds the password.
const TALK: [&str; 5] = ["debug", "debug_file", "verbose", "verbose_level", "log"];

/// In the name of every option that holds a secret. SNMP's community is one.
const SECRET: [&str; 6] = [
    "pass",
    "secret",
    "token",
    "community",
    "credential",
    "private_key",
];

/// What an outlet or a virtual machine is called by, which may be any text.
const PLUGS: [&str; 2] = ["plug", "port"];

/// Options that end up on a command line, or that weaken TLS.
const REFUSED: [(&str, &str); 3] = [
    (
        "identity_file",
        "identity_file becomes a part of ssh's command line: leave it out, and put the password into the Secret that credentialsName names",
    ),
    (
        "notls",
        "notls turns TLS off, so that anybody on the way could say that the host is off: leave it out",
    ),
    (
        "tls1.0",
        "tls1.0 allows only a TLS that can be broken: leave it out, and update the device",
    ),
];

/// A name that can be a file's, and of an agent that keeps the password to itself.
pub(super) fn agent(name: &str) -> Result<String, BadAddress> {
    let rest = name.strip_prefix("fence_").unwrap_or_default();
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if !(1..=57).contains(&rest.len()) || !rest.bytes().all(is_word) {
        return bad(
            "a fence agent is named fence_ and lower-case letters, digits and '_', like fence+fence_apc://",
        );
    }
    if IPMILAN.contains(&name) {
        return Err(BadAddress(format!(
            "{name} puts the password on a command line: write ipmi://HOST, which does not"
        )));
    }
    Ok(name.to_owned())
}

/// The options, each once and none that is not the address' to give. Their names are not repeated: a
/// slip of the pen can make a name of a password.
pub(super) fn options(query: &str) -> Result<BTreeMap<String, String>, BadAddress> {
    let mut options = BTreeMap::new();
    for (name, value) in pairs(query)? {
        let name = name.replace('-', "_");
        check_name(&name)?;
        if value.chars().any(char::is_control) {
            return bad("an option's value has a line break or another control character");
        }
        if !PLUGS.contains(&&*name) && value.contains(char::is_whitespace) {
            return bad(
                "only the plug may have blanks: agents make command lines of the other options' values",
            );
        }
        if options.insert(name, value).is_some() {
            return bad("an option is given twice");
        }
    }
    Ok(options)
}

fn check_name(name: &str) -> Result<(), BadAddress> {
    let is_word =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_word) {
        return bad("an option's name is not made of lower-case letters, digits, '_', '-' and '.'");
    }
    if SECRET.iter().any(|secret| name.contains(secret)) {
        return bad(
            "leave secrets out of the address: they belong in the Secret that credentialsName names",
        );
    }
    if OURS.contains(&name) {
        return bad(
            "the driver itself sets action, delay, ip, ipport, login and method: leave them out of the options",
        );
    }
    if TALK.contains(&name) {
        return bad("debug, verbose and log would write the password somewhere: leave them out");
    }
    if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return bad(why);
    }
    if name.ends_with("_path") || name == "ssh_options" {
        return bad(
            "options that name a program or its arguments (…_path, ssh_options) are not the address' to give",
        );
    }
    Ok(())
}
