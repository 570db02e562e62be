//! Fence agents: which ones, and which options an address may give them.
//!
//! A person who may write a host may switch its power, and no more. Options that would run a
//! program of the writer's choice in the controller, or write a password somewhere, are refused.

use std::collections::BTreeMap;

use super::BadBmcAddress;
use super::url_text::{bad_address, parse_query};

/// Other names of `fence_ipmilan`, which passes the password to ipmitool on the command line.
/// Source: fence-agents' Makefile (`TARGET` and its symlinks); facts/bmc.md §3.
const IPMILAN_AGENTS: [&str; 8] = [
    "fence_ipmilan",
    "fence_ipmilanplus",
    "fence_idrac",
    "fence_ilo3",
    "fence_ilo4",
    "fence_ilo5",
    "fence_ilo6",
    "fence_imm",
];

const DRIVER_OPTIONS: [&str; 8] = [
    "action", "delay", "ip", "ipaddr", "ipport", "login", "username", "method",
];

/// With these options an agent writes or prints the password.
const LOGGING_OPTIONS: [&str; 5] = ["debug", "debug_file", "verbose", "verbose_level", "log"];

/// An option whose name contains one of these holds a secret. SNMP's community is a secret.
const SECRET_NAME_PARTS: [&str; 6] = [
    "pass",
    "secret",
    "token",
    "community",
    "credential",
    "private_key",
];

/// Options that name an outlet or a virtual machine. Their value may be any text.
const PLUG_OPTIONS: [&str; 2] = ["plug", "port"];

/// Options that become part of a command line, or that weaken TLS.
const REFUSED_OPTIONS: [(&str, &str); 3] = [
    (
        "identity_file",
        "leave out identity_file, because it becomes a part of ssh's command line; put the \
         password into the Secret that credentialsName names",
    ),
    (
        "notls",
        "leave out notls: without TLS, anybody on the network path could report that the host is off",
    ),
    (
        "tls1.0",
        "leave out tls1.0, because that version of TLS can be broken; update the device",
    ),
];

/// Accepts a name that is safe as a file name, of an agent that does not expose the password.
pub(super) fn check_agent(name: &str) -> Result<String, BadBmcAddress> {
    let rest = name.strip_prefix("fence_").unwrap_or_default();
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if !(1..=57).contains(&rest.len()) || !rest.bytes().all(is_word) {
        return bad_address(
            "the name of a fence agent is fence_ and lower-case letters, digits and '_', like fence+fence_apc://",
        );
    }
    if IPMILAN_AGENTS.contains(&name) {
        return Err(BadBmcAddress(format!(
            "{name} puts the password on a command line: write ipmi://HOST instead"
        )));
    }
    Ok(name.to_owned())
}

/// Refuses options that are given twice and options that an address may not set. Errors do not
/// repeat an option's name: by mistake it may be a password.
pub(super) fn parse_options(query: &str) -> Result<BTreeMap<String, String>, BadBmcAddress> {
    let mut options = BTreeMap::new();
    for (name, value) in parse_query(query)? {
        let name = name.replace('-', "_");
        check_option_name(&name)?;
        if value.chars().any(char::is_control) {
            return bad_address("an option's value has a line break or another control character");
        }
        if !PLUG_OPTIONS.contains(&&*name) && value.contains(char::is_whitespace) {
            return bad_address(
                "only the plug may have blanks: fence agents build command lines from the values of the other options",
            );
        }
        if PLUG_OPTIONS.contains(&&*name) && value.contains(',') {
            return bad_address(
                "fence agents switch each plug of a list with commas: name each outlet as a device of the level of its own",
            );
        }
        if options.insert(name, value).is_some() {
            return bad_address("an option is given twice");
        }
    }
    if PLUG_OPTIONS.iter().all(|name| options.contains_key(*name)) {
        return bad_address("port is the old name of plug: leave one of them out");
    }
    Ok(options)
}

fn check_option_name(name: &str) -> Result<(), BadBmcAddress> {
    let is_word =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_word) {
        return bad_address(
            "an option's name is not made of lower-case letters, digits, '_', '-' and '.'",
        );
    }
    if SECRET_NAME_PARTS.iter().any(|secret| name.contains(secret)) {
        return bad_address(
            "leave secrets out of the address: they belong in the Secret that credentialsName names",
        );
    }
    if DRIVER_OPTIONS.contains(&name) {
        return bad_address(
            "leave out action, delay, ip, ipport, login and method: the driver sets these options itself",
        );
    }
    if LOGGING_OPTIONS.contains(&name) {
        return bad_address(
            "leave out debug, verbose and log: they would write the password to a log",
        );
    }
    if let Some((_, why)) = REFUSED_OPTIONS.iter().find(|(refused, _)| *refused == name) {
        return bad_address(why);
    }
    if name.ends_with("_path") || name == "ssh_options" {
        return bad_address(
            "an address must not have options that name a program or its arguments (…_path, \
             ssh_options): leave them out",
        );
    }
    Ok(())
}
