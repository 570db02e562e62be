//! Probes the devices of one host with the rights of the person who runs the command.

use std::time::Duration;

use dogwatch_bmc::{BmcFault, Credentials, DriverOptions, Password};
use dogwatch_core::explain::{POWER_CONTROL_READY, host_condition, scheme_and_host};
use dogwatch_core::power::{
    BmcInfo, FaultClass, HostSnapshot, PowerCommand, PowerDevice, PowerReading, PowerReason,
};
use dogwatch_k8s::host::BmcSecretError;

use super::device_check::{DeviceCheck, PowerControlWorks, next_step_of_class};
use crate::cluster::ConnectedCluster;

pub async fn probe_host(
    connected: &ConnectedCluster,
    host: &HostSnapshot,
    options: &DriverOptions,
    within: Duration,
) -> Vec<DeviceCheck> {
    if host.levels.iter().all(|level| level.devices.is_empty()) {
        return vec![DeviceCheck::not_working(
            host,
            None,
            PowerReason::NoBMC,
            "the host has no BMC",
        )];
    }
    let mut checked = Vec::new();
    for (level, devices) in host.levels.iter().enumerate() {
        for device in &devices.devices {
            checked.push(probe_device(connected, host, level, device, options, within).await);
        }
    }
    checked
}

async fn probe_device(
    connected: &ConnectedCluster,
    host: &HostSnapshot,
    level: usize,
    device: &PowerDevice,
    options: &DriverOptions,
    within: Duration,
) -> DeviceCheck {
    let at = |reason: PowerReason, message: String| DeviceCheck {
        bmc: device.address.as_ref().ok().map(scheme_and_host),
        ..DeviceCheck::not_working(host, Some(level), reason, message)
    };
    let address = match &device.address {
        Ok(address) => address,
        Err(bad) => return at(PowerReason::InvalidBMCAddress, bad.to_string()),
    };
    let namespace = &host.name.namespace;
    let credentials = match read_credentials(connected, namespace, &device.credentials).await {
        Ok(credentials) => credentials,
        Err(CredentialsError {
            reason,
            message,
            works,
        }) => {
            return DeviceCheck {
                works,
                next: None,
                ..at(reason, message)
            };
        }
    };
    let found = match dogwatch_bmc::connect_driver(address, &credentials, device.verify, options) {
        Ok(bmc) => {
            let found = read_about_and_power(bmc.as_ref(), within).await;
            bmc.close_session(within).await;
            found
        }
        Err(fault) => Err(fault),
    };
    match found {
        Ok((about, reading)) => {
            answered_probe(at(PowerReason::Checked, String::new()), about, reading)
        }
        Err(fault) => failed_probe(
            host,
            at(fault.class.power_reason(), fault.message),
            fault.class,
        ),
    }
}

/// When this machine cannot reach a BMC, the controller's result counts: it asks from within the
/// cluster.
fn failed_probe(host: &HostSnapshot, checked: DeviceCheck, class: FaultClass) -> DeviceCheck {
    let is_reached = host_condition(host, POWER_CONTROL_READY)
        .is_some_and(|condition| condition.status == "True");
    let is_no_way = matches!(class, FaultClass::Unreachable | FaultClass::TimedOut);
    if is_reached && is_no_way {
        return DeviceCheck {
            works: PowerControlWorks::Unknown,
            message: format!(
                "{}; the power controller reaches it: its last check succeeded",
                checked.message
            ),
            next: Some("to use the controller's result: dogwatch check hosts --from-status".into()),
            ..checked
        };
    }
    DeviceCheck {
        next: Some(next_step_of_class(class)),
        ..checked
    }
}

/// Both calls must succeed: a BMC that accepts the login but cannot be read is of no use for
/// fencing.
async fn read_about_and_power(
    bmc: &dyn dogwatch_bmc::Bmc,
    within: Duration,
) -> Result<(BmcInfo, PowerReading), BmcFault> {
    let about = bmc.describe_device(within).await?;
    Ok((about, bmc.read_power(within).await?))
}

fn answered_probe(checked: DeviceCheck, about: BmcInfo, reading: PowerReading) -> DeviceCheck {
    let lacking: Vec<&str> = [PowerCommand::On, PowerCommand::Off]
        .into_iter()
        .filter(|command| !about.supports_command(*command))
        .map(PowerCommand::as_str)
        .collect();
    let checked = DeviceCheck {
        power: Some(reading.as_str()),
        product: about.product,
        system_uuid: about.system_uuid,
        ..checked
    };
    if lacking.is_empty() {
        return DeviceCheck {
            works: PowerControlWorks::Yes,
            message: "the device answers and supports the commands".into(),
            next: None,
            ..checked
        };
    }
    let class = FaultClass::Unsupported;
    DeviceCheck {
        reason: class.power_reason().to_string(),
        message: format!(
            "the device answers, but does not support {}",
            lacking.join(" and ")
        ),
        next: Some(next_step_of_class(class)),
        ..checked
    }
}

struct CredentialsError {
    reason: PowerReason,
    message: String,
    works: PowerControlWorks,
}

async fn read_credentials(
    connected: &ConnectedCluster,
    namespace: &str,
    name: &str,
) -> Result<Credentials, CredentialsError> {
    match connected.fleet.read_bmc_secret(namespace, name).await {
        Ok(secret) => Ok(Credentials {
            username: secret.username,
            password: Password::new(secret.password),
            ca: secret.ca,
        }),
        // The person lacks the right, which says nothing about the controller's rights.
        Err(BmcSecretError::Missing { reason, .. }) if reason == PowerReason::SecretForbidden => {
            Err(CredentialsError {
                reason,
                message: format!(
                    "you may not read Secret {namespace}/{name}: ask for that right, or show the controller's result with --from-status"
                ),
                works: PowerControlWorks::Unknown,
            })
        }
        Err(BmcSecretError::Missing { reason, message }) => Err(CredentialsError {
            reason,
            message,
            works: PowerControlWorks::No,
        }),
        Err(BmcSecretError::Transient(error)) => Err(CredentialsError {
            reason: PowerReason::NotCheckedYet,
            message: format!(
                "Secret {namespace}/{name} could not be read: {}",
                error.error_chain()
            ),
            works: PowerControlWorks::Unknown,
        }),
    }
}
