//! The status rows of hosts.

use jiff::Timestamp;
use serde::Serialize;

use super::requests::{explained_annotations, wanted_power};
use super::{POWER_AS_WANTED, POWER_CONTROL_READY, host_condition};
use crate::name::NodeName;
use crate::power::{BmcAddress, HostName, HostSnapshot};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRow {
    pub namespace: String,
    pub name: String,
    /// `On`, `Off`, `PoweringOn`, `PoweringOff`, `Unknown`; absent until a power controller has
    /// read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<&'static str>,
    /// When the newest reading was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_confirmed_at: Option<Timestamp>,
    /// `on`, `off`, `held off` or `reboot`.
    pub wanted: &'static str,
    /// `spec.online`.
    pub online: bool,
    /// The obeyed keys that hold it off (`reboot.metal3.io/KEY`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_off_by: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_since: Option<Timestamp>,
    /// Whether power control would work now: `True`, `False`, `Unknown`; absent until the first
    /// check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_control_ready: Option<String>,
    /// Why power control would not work: reason and message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<String>,
    /// The Node that runs on it, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Scheme and host name of its first BMC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bmc: Option<String>,
    /// The reason of its present power, one CamelCase word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Rows sorted: first hosts whose power is not as wanted or cannot be controlled, then by namespace
/// and name.
pub fn host_rows<'a>(
    hosts: impl IntoIterator<Item = &'a HostSnapshot>,
    node: impl Fn(&HostName) -> Option<NodeName>,
) -> Vec<HostRow> {
    let mut hosts: Vec<&HostSnapshot> = hosts.into_iter().collect();
    hosts.sort_by_cached_key(|host| (is_healthy(host), host.name.clone()));
    let row = |host: &HostSnapshot| host_row(host, node(&host.name).as_ref());
    hosts.into_iter().map(row).collect()
}

pub fn host_row(host: &HostSnapshot, node: Option<&NodeName>) -> HostRow {
    let status = &host.status;
    let (why, ready) = (
        host_condition(host, POWER_AS_WANTED),
        host_condition(host, POWER_CONTROL_READY),
    );
    let held_off_by = explained_annotations(host)
        .into_iter()
        .filter(|asked| asked.is_obeyed);
    HostRow {
        namespace: host.name.namespace.clone(),
        name: host.name.name.clone(),
        power: status.power.state.map(crate::power::PowerState::as_str),
        observed_at: status.power.observed_at,
        off_confirmed_at: status.power.off_confirmed_at,
        wanted: wanted_power(host).as_str(),
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
        bmc: bmc_endpoint(host),
        reason: why.map(|why| why.reason.clone()),
        message: why.map(|why| why.message.clone()),
    }
}

fn is_healthy(host: &HostSnapshot) -> bool {
    [POWER_AS_WANTED, POWER_CONTROL_READY]
        .iter()
        .filter_map(|kind| host_condition(host, kind))
        .all(|condition| condition.status == "True")
}

/// Scheme and host name of `spec.bmc`, without path and options and therefore without secrets.
fn bmc_endpoint(host: &HostSnapshot) -> Option<String> {
    let device = host.levels.first()?.devices.first()?;
    Some(match &device.address {
        Ok(address) => scheme_and_host(address),
        Err(_) => "invalid".into(),
    })
}

pub fn scheme_and_host(address: &BmcAddress) -> String {
    let text = address.to_string();
    let Some((scheme, rest)) = text.split_once("://") else {
        return text;
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    format!("{scheme}://{}", &rest[..end])
}
