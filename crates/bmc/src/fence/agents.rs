//! Rules about ClusterLabs' fence agents: which agents are refused, and which options a host may
//! not set.
//!
//! Source: fence-agents 4.12.1, each agent's source and metadata.

use std::collections::BTreeMap;

use dogwatch_core::power::{BmcFault, FaultClass};

const IPMI_REFUSAL: &str =
    "it puts the password on ipmitool's command line: write ipmi://HOST, which does not";
const SNMP_REFUSAL: &str = "it puts community and password on snmpset's command line: use the device's agent for ssh or HTTPS";
const VMWARE_REFUSAL: &str = "it puts the password on a command line: use fence_vmware_rest";
const NO_POWER_REFUSAL: &str = "it does not switch the power, so its \"off\" proves nothing: use the agent of a BMC, a PDU or a hypervisor";

/// Agents that are refused, each with the better way.
const REFUSED_AGENTS: [(&str, &str); 32] = [
    ("fence_ipmilan", IPMI_REFUSAL),
    ("fence_ipmilanplus", IPMI_REFUSAL),
    ("fence_idrac", IPMI_REFUSAL),
    ("fence_ilo3", IPMI_REFUSAL),
    ("fence_ilo4", IPMI_REFUSAL),
    ("fence_ilo5", IPMI_REFUSAL),
    ("fence_ilo6", IPMI_REFUSAL),
    ("fence_imm", IPMI_REFUSAL),
    ("fence_apc_snmp", SNMP_REFUSAL),
    ("fence_tripplite_snmp", SNMP_REFUSAL),
    ("fence_eaton_snmp", SNMP_REFUSAL),
    ("fence_emerson", SNMP_REFUSAL),
    ("fence_ibmblade", SNMP_REFUSAL),
    ("fence_intelmodular", SNMP_REFUSAL),
    ("fence_ipdu", SNMP_REFUSAL),
    ("fence_lindypdu", SNMP_REFUSAL),
    ("fence_vmware", VMWARE_REFUSAL),
    // These cut storage or networks, or cut nothing.
    ("fence_ack_manual", NO_POWER_REFUSAL),
    ("fence_brocade", NO_POWER_REFUSAL),
    ("fence_cisco_mds", NO_POWER_REFUSAL),
    ("fence_compute", NO_POWER_REFUSAL),
    ("fence_crosslink", NO_POWER_REFUSAL),
    ("fence_dummy", NO_POWER_REFUSAL),
    ("fence_evacuate", NO_POWER_REFUSAL),
    ("fence_heuristics_ping", NO_POWER_REFUSAL),
    ("fence_ifmib", NO_POWER_REFUSAL),
    ("fence_kdump", NO_POWER_REFUSAL),
    ("fence_mpath", NO_POWER_REFUSAL),
    ("fence_sanbox2", NO_POWER_REFUSAL),
    ("fence_sanlock", NO_POWER_REFUSAL),
    ("fence_sbd", NO_POWER_REFUSAL),
    ("fence_scsi", NO_POWER_REFUSAL),
];

/// An option in an agent's metadata that reveals which program the agent runs, whatever its name.
const REFUSED_METADATA_OPTIONS: [(&str, &str); 2] = [
    ("ipmitool_path", IPMI_REFUSAL),
    ("snmpset_path", SNMP_REFUSAL),
];

/// Options that no address may set; the address grammar in core refuses more. Whoever may write a
/// host may switch its power, and no more.
const REFUSED_OPTIONS: [(&str, &str); 12] = [
    (
        "missing_as_off",
        "with it, a missing plug would be reported as off",
    ),
    ("quiet", "it would hide the output of the agent"),
    ("plug_separator", "one host may have only one plug"),
    (
        "ssl_insecure",
        "set disableCertificateVerification on the host instead",
    ),
    ("runonwarn", "it names a program"),
    ("runonfail", "it names a program"),
    ("exec", "it names a program"),
    ("openrc", "it names a script that the agent would run"),
    (
        "version",
        "the agent would run it instead of Dogwatch's command",
    ),
    (
        "help",
        "the agent would run it instead of Dogwatch's command",
    ),
    ("boto3_debug", "it writes the password to a log"),
    ("apikey", "put secrets into the Secret of the BMC"),
];

/// Characters that end a word or begin a command in a shell. fence_virsh, fence_vbox and others put
/// an option unquoted into a command line on the machine that they log in to.
const SHELL_METACHARACTERS: [char; 10] = ['\'', '"', '`', '$', ';', '&', '|', '<', '>', '\\'];

/// Options without which an agent acts on the first or last device that it finds.
const REQUIRED_OPTIONS: [(&str, &str, &str); 1] = [(
    "fence_redfish",
    "systems_uri",
    "without systems_uri it chooses any system of the BMC: write redfish://HOST, or set systems_uri",
)];

/// Options whose default no longer works: `-1 -c blowfish`, while no ssh speaks protocol 1 any
/// more.
const DEFAULT_OVERRIDES: [(&str, &str, &str); 1] = [("fence_apc", "ssh_options", "")];

/// The values that replace an agent's own defaults.
pub(super) fn default_overrides(agent: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_it = DEFAULT_OVERRIDES
        .iter()
        .filter(move |(whose, ..)| *whose == agent);
    of_it.map(|(_, option, value)| (*option, *value))
}

fn refuse_unsupported(message: String) -> Result<(), BmcFault> {
    Err(BmcFault::without_effect(FaultClass::Unsupported, message))
}

/// Checks that the name can be a file's name in the agents' folder, and that the agent is not
/// refused.
pub(super) fn check_agent(name: &str) -> Result<(), BmcFault> {
    let rest = name.strip_prefix("fence_").unwrap_or_default();
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if rest.is_empty() || !rest.bytes().all(is_word) {
        return refuse_unsupported(
            "write a fence agent's name as fence_ and lower-case letters, digits or '_'".to_owned(),
        );
    }
    match REFUSED_AGENTS.iter().find(|(agent, _)| *agent == name) {
        Some((_, why)) => refuse_unsupported(format!("{name} is refused: {why}")),
        None => Ok(()),
    }
}

/// Refuses an agent because of an option in its metadata.
pub(super) fn check_metadata_options(
    name: &str,
    has: impl Fn(&str) -> bool,
) -> Result<(), BmcFault> {
    match REFUSED_METADATA_OPTIONS
        .iter()
        .find(|(option, _)| has(option))
    {
        Some((_, why)) => refuse_unsupported(format!("{name} is refused: {why}")),
        None => Ok(()),
    }
}

/// Refuses fabric agents: only agents that cut storage or a network declare that the node switches
/// itself on again.
pub(super) fn check_fabric(name: &str, is_fabric: bool) -> Result<(), BmcFault> {
    if is_fabric {
        return refuse_unsupported(format!("{name} is refused: {NO_POWER_REFUSAL}"));
    }
    Ok(())
}

/// Checks that these options are allowed, and that all required options are present.
pub(super) fn check_options(
    agent: &str,
    options: &BTreeMap<String, String>,
) -> Result<(), BmcFault> {
    for (name, value) in options {
        if let Some((_, why)) = REFUSED_OPTIONS.iter().find(|(refused, _)| refused == name) {
            return refuse_unsupported(format!("the option {name} is refused: {why}"));
        }
        if value.chars().any(char::is_control) {
            return refuse_unsupported(format!(
                "the option {name} has a line break or another control character"
            ));
        }
        if value.starts_with('-') || value.contains(SHELL_METACHARACTERS) {
            return refuse_unsupported(format!(
                "the value of option {name} begins with '-' or has a character with a meaning in a shell, and agents put such values on command lines: use another name of the device, for example its UUID"
            ));
        }
    }
    let needed = REQUIRED_OPTIONS
        .iter()
        .filter(|(whose, ..)| *whose == agent);
    for (_, option, why) in needed {
        if !options.contains_key(*option) {
            return refuse_unsupported(format!("{agent} lacks the option {option}: {why}"));
        }
    }
    Ok(())
}
