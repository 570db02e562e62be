//! One line for each host.

use jiff::Timestamp;
use serde::Serialize;

use super::asked::{asked, wanted};
use super::{POWER_AS_WANTED, POWER_CONTROL_READY, host_condition};
use crate::name::NodeName;
use crate::power::{Address, Host, HostName};

/// One host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `On`, `Off`, `PoweringOn`, `PoweringOff`, `Unknown`; absent where no power controller has
    /// looked at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<&'static str>,
    /// When the newest reading was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Timestamp>,
    /// When off was confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_confirmed_at: Option<Timestamp>,
    /// Where the power is wanted: `on`, `off`, `held off` or `reboot`.
    pub wanted: &'static str,
    /// `spec.online`.
    pub online: bool,
    /// The keys that hold it off (`reboot.metal3.io/KEY`) and are obeyed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_off_by: Vec<String>,
    /// Since when a reboot is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_since: Option<Timestamp>,
    /// Whether power control would work now: `True`, `False`, `Unknown`; absent where it was never
    /// checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_control_ready: Option<String>,
    /// Why it would not: a reason and a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<String>,
    /// The Node that runs on it, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its first BMC: scheme and host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bmc: Option<String>,
    /// Why its power is as it is: one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The rows of these hosts: those whose power is not as wanted, or cannot be controlled, first; then by
/// namespace and name.
pub fn host_rows<'a>(
    hosts: impl IntoIterator<Item = &'a Host>,
    node: impl Fn(&HostName) -> Option<NodeName>,
) -> Vec<HostRow> {
    let mut hosts: Vec<&Host> = hosts.into_iter().collect();
    hosts.sort_by_cached_key(|host| (is_well(host), host.name.clone()));
    let row = |host: &Host| host_row(host, node(&host.name).as_ref());
    hosts.into_iter().map(row).collect()
}

/// The row of one host.
pub fn host_row(host: &Host, node: Option<&NodeName>) -> HostRow {
    let status = &host.status;
    let (why, ready) = (
        host_condition(host, POWER_AS_WANTED),
        host_condition(host, POWER_CONTROL_READY),
    );
    let held_off_by = asked(host).into_iter().filter(|asked| asked.is_obeyed);
    HostRow {
        namespace: host.name.namespace.clone(),
        name: host.name.name.clone(),
        power: status.power.state.map(crate::power::State::as_str),
        observed_at: status.power.observed_at,
        off_confirmed_at: status.power.off_confirmed_at,
        wanted: wanted(host).as_str(),
        online: host.online,
        held_off_by: held_off_by.filter_map(|asked| asked.request.key).collect(),
        pending_since: status
            .pending_reboot_since
            .filter(|_| status.pending_reboot_since > status.last_powered_on),
        power_control_ready: ready.map(|ready| ready.status.clone()),
        not_ready: ready
            .filter(|ready| ready.status != "True")
            .map(|ready| format!("{}: {}", ready.reason, ready.message)),
        node: node.map(ToString::to_string),
        bmc: bmc(host),
        reason: why.map(|why| why.reason.clone()),
        message: why.map(|why| why.message.clone()),
    }
}

fn is_well(host: &Host) -> bool {
    [POWER_AS_WANTED, POWER_CONTROL_READY]
        .iter()
        .filter_map(|kind| host_condition(host, kind))
        .all(|condition| condition.status == "True")
}

/// Scheme and host of `spec.bmc`: no path, no option, and so no secret.
fn bmc(host: &Host) -> Option<String> {
    let device = host.levels.first()?.devices.first()?;
    Some(match &device.address {
        Ok(address) => place(address),
        Err(_) => "invalid".into(),
    })
}

/// Scheme and host of an address.
pub fn place(address: &Address) -> String {
    let text = address.to_string();
    let Some((scheme, rest)) = text.split_once("://") else {
        return text;
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    format!("{scheme}://{}", &rest[..end])
}
