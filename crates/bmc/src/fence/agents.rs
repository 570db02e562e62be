//! What is known of ClusterLabs' fence agents: which are refused and which options are not a host's to give.
//!
//! Source: fence-agents 4.12.1, each agent's source and metadata.

use std::collections::BTreeMap;

use dogwatch_core::power::{Class, Fault};

const IPMI: &str =
    "it puts the password on ipmitool's command line: write ipmi://HOST, which does not";
const SNMP: &str = "it puts community and password on snmpset's command line: use the device's agent for ssh or HTTPS";
const VMWARE: &str = "it puts the password on a command line: use fence_vmware_rest";
const NO_POWER: &str = "it does not switch the power, so that its \"off\" proves nothing: name a BMC, a PDU or a hypervisor";

/// Refused by name, with the better way.
const AGENTS: [(&str, &str); 32] = [
    ("fence_ipmilan", IPMI),
    ("fence_ipmilanplus", IPMI),
    ("fence_idrac", IPMI),
    ("fence_ilo3", IPMI),
    ("fence_ilo4", IPMI),
    ("fence_ilo5", IPMI),
    ("fence_ilo6", IPMI),
    ("fence_imm", IPMI),
    ("fence_apc_snmp", SNMP),
    ("fence_tripplite_snmp", SNMP),
    ("fence_eaton_snmp", SNMP),
    ("fence_emerson", SNMP),
    ("fence_ibmblade", SNMP),
    ("fence_intelmodular", SNMP),
    ("fence_ipdu", SNMP),
    ("fence_lindypdu", SNMP),
    ("fence_vmware", VMWARE),
    // Storage and networks are cut, or nothing at all is.
    ("fence_ack_manual", NO_POWER),
    ("fence_brocade", NO_POWER),
    ("fence_cisco_mds", NO_POWER),
    ("fence_compute", NO_POWER),
    ("fence_crosslink", NO_POWER),
    ("fence_dummy", NO_POWER),
    ("fence_evacuate", NO_POWER),
    ("fence_heuristics_ping", NO_POWER),
    ("fence_ifmib", NO_POWER),
    ("fence_kdump", NO_POWER),
    ("fence_mpath", NO_POWER),
    ("fence_sanbox2", NO_POWER),
    ("fence_sanlock", NO_POWER),
    ("fence_sbd", NO_POWER),
    ("fence_scsi", NO_POWER),
];

/// An option in an agent's metadata that shows what the agent runs, whatever its name.
const TELLTALES: [(&str, &str); 2] = [("ipmitool_path", IPMI), ("snmpset_path", SNMP)];

/// Options that no address may give; core's grammar refuses more. Whoever may write a host may switch its power, and no more.
const OPTIONS: [(&str, &str); 12] = [
    ("missing_as_off", "what is not there would read as off"),
    ("quiet", "it would hide what the agent says"),
    ("plug_separator", "one host is one plug"),
    ("ssl_insecure", "set disableCertificateVerification instead"),
    ("runonwarn", "it names a program"),
    ("runonfail", "it names a program"),
    ("exec", "it names a program"),
    ("openrc", "it names a script that is run"),
    ("version", "it would be carried out instead of the command"),
    ("help", "it would be carried out instead of the command"),
    ("boto3_debug", "it writes the password to a log"),
    ("apikey", "secrets belong in the Secret"),
];

/// What ends a word or begins a command in a shell. fence_virsh, fence_vbox and others write an option as it is
/// into a command line on the machine that they log in to.
const SHELLS: [char; 10] = ['\'', '"', '`', '$', ';', '&', '|', '<', '>', '\\'];

/// Options without which an agent takes the first or last thing that it finds.
const NEEDED: [(&str, &str, &str); 1] = [(
    "fence_redfish",
    "systems_uri",
    "it takes any system of the BMC: write redfish://HOST, or name systems_uri",
)];

/// Options whose default cannot do any more: `-1 -c blowfish`, and no ssh speaks protocol 1.
const DEFAULTS: [(&str, &str, &str); 1] = [("fence_apc", "ssh_options", "")];

/// The options that take the place of an agent's own defaults.
pub(super) fn defaults(agent: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_it = DEFAULTS.iter().filter(move |(whose, ..)| *whose == agent);
    of_it.map(|(_, option, value)| (*option, *value))
}

fn unsupported(message: String) -> Result<(), Fault> {
    Err(Fault::harmless(Class::Unsupported, message))
}

/// Whether the name can be a file's in the agents' folder, and nothing is known against the agent.
pub(super) fn check_agent(name: &str) -> Result<(), Fault> {
    let rest = name.strip_prefix("fence_").unwrap_or_default();
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if rest.is_empty() || !rest.bytes().all(is_word) {
        return unsupported(
            "a fence agent is named fence_ and lower-case letters, digits and '_'".to_owned(),
        );
    }
    match AGENTS.iter().find(|(agent, _)| *agent == name) {
        Some((_, why)) => unsupported(format!("{name} is refused: {why}")),
        None => Ok(()),
    }
}

/// What its metadata says against an agent.
pub(super) fn check_telltales(name: &str, has: impl Fn(&str) -> bool) -> Result<(), Fault> {
    match TELLTALES.iter().find(|(option, _)| has(option)) {
        Some((_, why)) => unsupported(format!("{name} is refused: {why}")),
        None => Ok(()),
    }
}

/// Only one that cuts storage or a network is meant to be switched on by the node itself.
pub(super) fn check_fabric(name: &str, is_fabric: bool) -> Result<(), Fault> {
    if is_fabric {
        return unsupported(format!("{name} is refused: {NO_POWER}"));
    }
    Ok(())
}

/// Whether these options may be given, and all that are needed are.
pub(super) fn check_options(agent: &str, options: &BTreeMap<String, String>) -> Result<(), Fault> {
    for (name, value) in options {
        if let Some((_, why)) = OPTIONS.iter().find(|(refused, _)| refused == name) {
            return unsupported(format!("the option {name} is refused: {why}"));
        }
        if value.chars().any(char::is_control) {
            return unsupported(format!(
                "the option {name} has a line break or another control character"
            ));
        }
        if value.starts_with('-') || value.contains(SHELLS) {
            return unsupported(format!(
                "the option {name} begins with '-', or has one of the signs that a shell goes by: agents make \
                 command lines of such values; name the device by another name, as its UUID"
            ));
        }
    }
    let needed = NEEDED.iter().filter(|(whose, ..)| *whose == agent);
    for (_, option, why) in needed {
        if !options.contains_key(*option) {
            return unsupported(format!("{agent} lacks the option {option}: {why}"));
        }
    }
    Ok(())
}
