//! Converts BareMetalHosts for power decisions.

use std::collections::BTreeMap;

use dogwatch_api::annotation::METAL3_REBOOT;
use dogwatch_core::power::{
    BadBmcAddress, BmcAddress, HostConsumer, HostName, HostSnapshot, PowerDevice, PowerLevel,
};
use kube::ResourceExt as _;
use serde_json::Value;

use super::object::HostObject;
use super::status;

/// Keeps the fields that decisions need. An unreadable part of `spec` becomes an unusable level
/// with an explanation: nothing is sent to a host that we do not understand.
pub fn convert_host(object: &HostObject) -> HostSnapshot {
    let spec = ParsedHostSpec::parse_spec(&object.spec);
    HostSnapshot {
        name: HostName::new(object.namespace().unwrap_or_default(), object.name_any()),
        uid: object.uid().unwrap_or_default(),
        created: object.metadata.creation_timestamp.as_ref().map(|at| at.0),
        resource_version: object.resource_version().unwrap_or_default(),
        deleting: object.metadata.deletion_timestamp.is_some(),
        annotations: kept_annotations(object),
        online: spec.online,
        externally_provisioned: spec.externally_provisioned,
        disable_power_off: spec.disable_power_off,
        consumer: parse_consumer(&object.spec["consumerRef"]),
        levels: spec.levels,
        status: status::parse_status(object),
    }
}

/// Power annotations and ours. metal3 can store a host's whole hardware inventory in one
/// annotation.
fn kept_annotations(object: &HostObject) -> BTreeMap<String, String> {
    let all = object.annotations().iter();
    all.filter(|(name, _)| is_kept(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn is_kept(name: &str) -> bool {
    const METAL3_ANNOTATIONS: [&str; 2] = [
        "baremetalhost.metal3.io/paused",
        "baremetalhost.metal3.io/detached",
    ];
    name.starts_with(METAL3_REBOOT)
        || name.starts_with("dogwatch.dev/")
        || METAL3_ANNOTATIONS.contains(&name)
}

struct ParsedHostSpec {
    online: bool,
    externally_provisioned: Option<bool>,
    disable_power_off: bool,
    levels: Vec<PowerLevel>,
}

impl ParsedHostSpec {
    fn parse_spec(spec: &Value) -> Self {
        let mut problems = Vec::new();
        let mut flag = |name: &str| match &spec[name] {
            Value::Bool(flag) => Some(*flag),
            Value::Null => None,
            Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                problems.push(format!("spec.{name} is not true or false"));
                None
            }
        };
        let online = flag("online");
        let externally_provisioned = flag("externallyProvisioned");
        let disable_power_off = flag("disablePowerOff");
        if online.is_none() && problems.is_empty() {
            problems.push("spec.online is missing: write true or false".to_owned());
        }
        let levels = match problems.first() {
            Some(problem) => vec![unusable_level(problem)],
            None => parse_levels(spec),
        };
        Self {
            online: online.unwrap_or(true),
            externally_provisioned,
            disable_power_off: disable_power_off.unwrap_or(false),
            levels,
        }
    }
}

/// Any non-null value is a consumer. An unreadable one gets empty fields, which match no known
/// consumer.
fn parse_consumer(reference: &Value) -> Option<HostConsumer> {
    if reference.is_null() {
        return None;
    }
    let text = |name: &str| reference[name].as_str().unwrap_or_default().to_owned();
    let version = text("apiVersion");
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    Some(HostConsumer {
        group: group.to_owned(),
        kind: text("kind"),
        namespace: text("namespace"),
        name: text("name"),
    })
}

fn parse_levels(spec: &Value) -> Vec<PowerLevel> {
    let first = parse_bmc_level(&spec["bmc"]);
    let power = &spec["power"];
    let others = if power.is_null() || power.is_object() {
        parse_further_levels(&power["levels"])
    } else {
        vec![unusable_level("spec.power is not an object")]
    };
    first.into_iter().chain(others).collect()
}

/// A host without a BMC has no `bmc`, or an empty one.
fn parse_bmc_level(bmc: &Value) -> Option<PowerLevel> {
    let is_empty = |name: &str| matches!(bmc[name].as_str(), Some("")) || bmc[name].is_null();
    match bmc {
        Value::Null => None,
        Value::Object(_) if is_empty("address") && is_empty("credentialsName") => None,
        Value::Object(_) => Some(PowerLevel {
            devices: vec![parse_device(bmc, "spec.bmc")],
        }),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Some(unusable_level("spec.bmc is not an object"))
        }
    }
}

fn parse_further_levels(levels: &Value) -> Vec<PowerLevel> {
    match levels {
        Value::Null => Vec::new(),
        Value::Array(levels) => levels
            .iter()
            .enumerate()
            .map(|(at, it)| parse_level(it, at))
            .collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            vec![unusable_level("spec.power.levels is not a list")]
        }
    }
}

fn parse_level(level: &Value, at: usize) -> PowerLevel {
    let place = format!("spec.power.levels[{at}].devices");
    match &level["devices"] {
        Value::Array(devices) if !devices.is_empty() => {
            let devices = devices.iter().enumerate();
            PowerLevel {
                devices: devices
                    .map(|(at, it)| parse_device(it, &format!("{place}[{at}]")))
                    .collect(),
            }
        }
        Value::Array(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_) => {
            unusable_level(&format!("{place} is not a list with at least one device"))
        }
    }
}

fn parse_device(device: &Value, place: &str) -> PowerDevice {
    let address = match device["address"].as_str() {
        Some(text) => BmcAddress::parse(text),
        None => Err(BadBmcAddress("it is not text".to_owned())),
    };
    let address = address.map_err(|why| BadBmcAddress(format!("{place}.address: {why}")));
    let (address, verify) = match &device["disableCertificateVerification"] {
        Value::Null => (address, true),
        Value::Bool(disabled) => (address, !disabled),
        Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            let problem =
                format!("{place}.disableCertificateVerification is neither true nor false");
            (Err(BadBmcAddress(problem)), true)
        }
    };
    PowerDevice {
        address,
        credentials: device["credentialsName"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        verify,
    }
}

fn unusable_level(why: &str) -> PowerLevel {
    PowerLevel {
        devices: vec![PowerDevice {
            address: Err(BadBmcAddress(why.to_owned())),
            credentials: String::new(),
            verify: true,
        }],
    }
}
