//! `spec`: metal3's fields about power, and Dogwatch's own. The comments are what `kubectl explain`
//! shows.
//!
//! The power controller reads a host field by field (`dogwatch_k8s::host`): one that does not fit
//! these types must neither vanish nor look safer than it is.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use crate::schema::{rule_at, validation_rule};

/// How many levels a host can have beside `spec.bmc`.
pub const MAX_LEVELS: usize = 4;
/// How many devices a level can have.
pub const MAX_DEVICES: usize = 8;

/// `spec` of a host. The rule is also in metal3's webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(
    extend("x-kubernetes-preserve-unknown-fields" = true),
    extend("x-kubernetes-validations" = [rule_at(
        ".disablePowerOff",
        "self.online || !has(self.disablePowerOff) || !self.disablePowerOff",
        "a host with disablePowerOff cannot be offline: set online to true, or disablePowerOff to false",
    )]),
))]
#[serde(rename_all = "camelCase")]
pub struct BareMetalHostSpec {
    /// Whether the host should be on. Reboot annotations override it to off.
    pub online: bool,
    /// How to reach the host's BMC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmc: Option<HostBmc>,
    /// What cuts the host's power when the BMC cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<HostPowerLevels>,
    /// The object that uses the host, for example a Machine.
    #[cfg_attr(test, schemars(extend("x-kubernetes-map-type" = "atomic")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_ref: Option<HostConsumerReference>,
    /// Another program installed the image: only the power is controlled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub externally_provisioned: Option<bool>,
    /// The host is never powered off, for example because its BMC loses power with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_power_off: Option<bool>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// `spec.bmc`. metal3 accepts an empty address without a Secret: a host without BMC. An invalid
/// address is accepted too, because the object may be older than the check; the condition then
/// reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(
    extend("x-kubernetes-preserve-unknown-fields" = true),
    extend("x-kubernetes-validations" = [validation_rule(
        "self.address == '' || self.credentialsName != ''",
        "credentialsName must name the Secret with username and password",
    )]),
))]
#[serde(rename_all = "camelCase")]
pub struct HostBmc {
    /// An address as metal3 writes it, like redfish://192.0.2.1/redfish/v1/Systems/1.
    #[cfg_attr(test, schemars(
        length(max = 2048),
        extend("x-kubernetes-validations" = address_rules()),
    ))]
    pub address: String,
    /// The Secret in the host's namespace with username and password, and with ca.crt if a CA of
    /// your own signed the BMC's certificate.
    #[cfg_attr(test, schemars(length(max = 253)))]
    pub credentials_name: String,
    /// Accepts any certificate: anybody on the network path to the BMC can read the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_certificate_verification: Option<bool>,
}

/// `spec.power`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostPowerLevels {
    /// Tried in order, after spec.bmc.
    #[cfg_attr(test, schemars(length(min = 1, max = MAX_LEVELS)))]
    pub levels: Vec<HostPowerLevel>,
}

/// Devices that together cut the power: all of them must succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostPowerLevel {
    /// For example, all outlets of a host with two power supplies.
    #[cfg_attr(test, schemars(length(min = 1, max = MAX_DEVICES)))]
    pub devices: Vec<HostPowerDevice>,
}

/// A BMC, or an outlet of a PDU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostPowerDevice {
    /// An address as in spec.bmc, or a fence agent: fence+fence_apc://pdu?plug=3.
    #[cfg_attr(test, schemars(
        length(min = 1, max = 2048),
        extend("x-kubernetes-validations" = address_rules()),
    ))]
    pub address: String,
    /// The Secret in the host's namespace with username and password.
    #[cfg_attr(test, schemars(length(min = 1, max = 253)))]
    pub credentials_name: String,
    /// Accepts any certificate: anybody on the network path to the BMC can read the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_certificate_verification: Option<bool>,
}

/// `spec.consumerRef`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct HostConsumerReference {
    /// The version of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// The kind of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The namespace of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The UID of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The resource version of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// The part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
}

#[cfg(test)]
fn address_rules() -> [serde_json::Value; 2] {
    [
        validation_rule(
            "!self.contains('@')",
            "leave user and password out of the address: they belong in the Secret that credentialsName names",
        ),
        validation_rule(r"!self.matches(r'\s')", "leave blanks out of the address"),
    ]
}
