//! Asks the devices of one host, by the rights of whoever runs this.

use std::time::Duration;

use dogwatch_bmc::{Credentials, Fault, Options, Password};
use dogwatch_core::explain::{POWER_CONTROL_READY, host_condition, place};
use dogwatch_core::power::{About, Class, Command, Device, Host, Reading, reason};
use dogwatch_k8s::host::SecretTrouble;

use super::checked::{Checked, Works, next_of};
use crate::cluster::Connected;

/// Every device of every level.
pub async fn host(
    connected: &Connected,
    host: &Host,
    options: &Options,
    within: Duration,
) -> Vec<Checked> {
    if host.levels.iter().all(|level| level.devices.is_empty()) {
        return vec![Checked::no(host, None, reason::NO_BMC, "it has no BMC")];
    }
    let mut checked = Vec::new();
    for (level, devices) in host.levels.iter().enumerate() {
        for device in &devices.devices {
            checked.push(one(connected, host, level, device, options, within).await);
        }
    }
    checked
}

async fn one(
    connected: &Connected,
    host: &Host,
    level: usize,
    device: &Device,
    options: &Options,
    within: Duration,
) -> Checked {
    let at = |reason: &str, message: String| Checked {
        bmc: device.address.as_ref().ok().map(place),
        ..Checked::no(host, Some(level), reason, message)
    };
    let address = match &device.address {
        Ok(address) => address,
        Err(bad) => return at(reason::INVALID_ADDRESS, bad.to_string()),
    };
    let namespace = &host.name.namespace;
    let credentials = match credentials(connected, namespace, &device.credentials).await {
        Ok(credentials) => credentials,
        Err(Trouble {
            reason,
            message,
            works,
        }) => {
            return Checked {
                works,
                next: None,
                ..at(reason, message)
            };
        }
    };
    let found = match dogwatch_bmc::connect(address, &credentials, device.verify, options) {
        Ok(bmc) => {
            let found = look(bmc.as_ref(), within).await;
            bmc.close(within).await;
            found
        }
        Err(fault) => Err(fault),
    };
    match found {
        Ok((about, reading)) => well(at(reason::CHECKED, String::new()), about, reading),
        Err(fault) => failed(host, at(fault.class.reason(), fault.message), fault.class),
    }
}

/// A BMC that is out of reach from here is judged by the controller, which asks from within the cluster.
fn failed(host: &Host, checked: Checked, class: Class) -> Checked {
    let is_reached = host_condition(host, POWER_CONTROL_READY)
        .is_some_and(|condition| condition.status == "True");
    let is_no_way = matches!(class, Class::Unreachable | Class::TimedOut);
    if is_reached && is_no_way {
        return Checked {
            works: Works::Unknown,
            message: format!(
                "{}; the power controller reaches it: its last check succeeded",
                checked.message
            ),
            next: Some("to use the controller's result: dogwatch check hosts --from-status".into()),
            ..checked
        };
    }
    Checked {
        next: Some(next_of(class)),
        ..checked
    }
}

/// Both have to answer: one that can be logged into and not be read is of no use to a fence.
async fn look(bmc: &dyn dogwatch_bmc::Bmc, within: Duration) -> Result<(About, Reading), Fault> {
    let about = bmc.about(within).await?;
    Ok((about, bmc.read(within).await?))
}

fn well(checked: Checked, about: About, reading: Reading) -> Checked {
    let power = match reading {
        Reading::On => "On",
        Reading::Off => "Off",
        Reading::PoweringOn => "PoweringOn",
        Reading::PoweringOff => "PoweringOff",
    };
    let lacking: Vec<&str> = [Command::On, Command::Off]
        .into_iter()
        .filter(|command| !about.can(*command))
        .map(Command::as_str)
        .collect();
    let checked = Checked {
        power: Some(power),
        product: about.product,
        system_uuid: about.system_uuid,
        ..checked
    };
    if lacking.is_empty() {
        return Checked {
            works: Works::Yes,
            message: "it answers, and knows the commands".into(),
            next: None,
            ..checked
        };
    }
    let class = Class::Unsupported;
    Checked {
        reason: class.reason().into(),
        message: format!("it answers, and does not know {}", lacking.join(" and ")),
        next: Some(next_of(class)),
        ..checked
    }
}

struct Trouble {
    reason: &'static str,
    message: String,
    works: Works,
}

async fn credentials(
    connected: &Connected,
    namespace: &str,
    name: &str,
) -> Result<Credentials, Trouble> {
    match connected.fleet.bmc_secret(namespace, name).await {
        Ok(secret) => Ok(Credentials {
            username: secret.username,
            password: Password::new(secret.password),
            ca: secret.ca,
        }),
        // Ours, not the controller's: of its own right nothing is known.
        Err(SecretTrouble::Missing { reason, .. }) if reason == reason::SECRET_FORBIDDEN => {
            Err(Trouble {
                reason,
                message: format!(
                    "you may not read Secret {namespace}/{name}: ask for that right, or take the controller's word with --from-status"
                ),
                works: Works::Unknown,
            })
        }
        Err(SecretTrouble::Missing { reason, message }) => Err(Trouble {
            reason,
            message,
            works: Works::No,
        }),
        Err(SecretTrouble::NotNow(error)) => Err(Trouble {
            reason: reason::NOT_CHECKED,
            message: format!(
                "Secret {namespace}/{name} could not be read: {}",
                error.in_words()
            ),
            works: Works::Unknown,
        }),
    }
}
