//! From an object to what decisions see.

use std::collections::BTreeMap;

use dogwatch_api::annotation::METAL3_REBOOT;
use dogwatch_core::power::{Address, BadAddress, Consumer, Device, Host, HostName, Level};
use kube::ResourceExt as _;
use serde_json::Value;

use super::object::HostObject;
use super::status;

/// What is kept of a host. What cannot be read of its `spec` becomes a level that cannot be used and
/// says why: nothing is sent to a host that is not understood.
pub fn convert(object: &HostObject) -> Host {
    let spec = Spec::of(&object.spec);
    Host {
        name: HostName::new(object.namespace().unwrap_or_default(), object.name_any()),
        uid: object.uid().unwrap_or_default(),
        created: object.metadata.creation_timestamp.as_ref().map(|at| at.0),
        resource_version: object.resource_version().unwrap_or_default(),
        deleting: object.metadata.deletion_timestamp.is_some(),
        annotations: annotations(object),
        online: spec.online,
        externally_provisioned: spec.externally_provisioned,
        disable_power_off: spec.disable_power_off,
        consumer: consumer(&object.spec["consumerRef"]),
        levels: spec.levels,
        status: status::read(object),
    }
}

/// Those that power is about, and ours. A host of metal3 can carry its whole hardware in one.
fn annotations(object: &HostObject) -> BTreeMap<String, String> {
    let all = object.annotations().iter();
    all.filter(|(name, _)| is_kept(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn is_kept(name: &str) -> bool {
    const METAL3: [&str; 2] = [
        "baremetalhost.metal3.io/paused",
        "baremetalhost.metal3.io/detached",
    ];
    name.starts_with(METAL3_REBOOT) || name.starts_with("dogwatch.dev/") || METAL3.contains(&name)
}

struct Spec {
    online: bool,
    externally_provisioned: Option<bool>,
    disable_power_off: bool,
    levels: Vec<Level>,
}

impl Spec {
    fn of(spec: &Value) -> Self {
        let mut problems = Vec::new();
        let mut flag = |name: &str| match &spec[name] {
            Value::Bool(flag) => Some(*flag),
            Value::Null => None,
            Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                problems.push(format!("spec.{name} is neither true nor false"));
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
            Some(problem) => vec![unusable(problem)],
            None => levels(spec),
        };
        Self {
            online: online.unwrap_or(true),
            externally_provisioned,
            disable_power_off: disable_power_off.unwrap_or(false),
            levels,
        }
    }
}

/// Whatever stands there is somebody: one who cannot be read is nobody's whom it could be compared with.
fn consumer(reference: &Value) -> Option<Consumer> {
    if reference.is_null() {
        return None;
    }
    let text = |name: &str| reference[name].as_str().unwrap_or_default().to_owned();
    let version = text("apiVersion");
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    Some(Consumer {
        group: group.to_owned(),
        kind: text("kind"),
        namespace: text("namespace"),
        name: text("name"),
    })
}

fn levels(spec: &Value) -> Vec<Level> {
    let first = bmc(&spec["bmc"]);
    let power = &spec["power"];
    let others = if power.is_null() || power.is_object() {
        further(&power["levels"])
    } else {
        vec![unusable("spec.power is no object")]
    };
    first.into_iter().chain(others).collect()
}

/// A host without BMC has no `bmc`, or an empty one.
fn bmc(bmc: &Value) -> Option<Level> {
    let is_empty = |name: &str| matches!(bmc[name].as_str(), Some("")) || bmc[name].is_null();
    match bmc {
        Value::Null => None,
        Value::Object(_) if is_empty("address") && is_empty("credentialsName") => None,
        Value::Object(_) => Some(Level {
            devices: vec![device(bmc, "spec.bmc")],
        }),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Some(unusable("spec.bmc is no object"))
        }
    }
}

fn further(levels: &Value) -> Vec<Level> {
    match levels {
        Value::Null => Vec::new(),
        Value::Array(levels) => levels
            .iter()
            .enumerate()
            .map(|(at, it)| level(it, at))
            .collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            vec![unusable("spec.power.levels is no list")]
        }
    }
}

fn level(level: &Value, at: usize) -> Level {
    let place = format!("spec.power.levels[{at}].devices");
    match &level["devices"] {
        Value::Array(devices) if !devices.is_empty() => {
            let devices = devices.iter().enumerate();
            Level {
                devices: devices
                    .map(|(at, it)| device(it, &format!("{place}[{at}]")))
                    .collect(),
            }
        }
        Value::Array(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_) => unusable(&format!("{place} is no list with a device in it")),
    }
}

fn device(device: &Value, place: &str) -> Device {
    let address = match device["address"].as_str() {
        Some(text) => Address::parse(text),
        None => Err(BadAddress("it is no text".to_owned())),
    };
    let address = address.map_err(|why| BadAddress(format!("{place}.address: {why}")));
    let (address, verify) = match &device["disableCertificateVerification"] {
        Value::Null => (address, true),
        Value::Bool(disabled) => (address, !disabled),
        Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            let problem =
                format!("{place}.disableCertificateVerification is neither true nor false");
            (Err(BadAddress(problem)), true)
        }
    };
    Device {
        address,
        credentials: device["credentialsName"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        verify,
    }
}

fn unusable(why: &str) -> Level {
    Level {
        devices: vec![Device {
            address: Err(BadAddress(why.to_owned())),
            credentials: String::new(),
            verify: true,
        }],
    }
}
