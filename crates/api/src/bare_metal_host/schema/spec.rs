//! Schema of `spec`.

use serde_json::{Value, json};

use super::super::{MAX_DEVICES, MAX_LEVELS};
use super::preserve_unknown_fields;
use crate::schema_parts::{
    cel_rule, list_schema, object_schema, text_schema, with_keyword, with_rules,
};

const MAX_ADDRESS_CHARS: usize = 2048;

pub(super) fn spec_schema() -> Value {
    let spec = object_schema(
        "What the host should be.",
        &["online"],
        [
            (
                "online",
                flag_schema(
                    "Whether the host should be on. Reboot annotations override it to off.",
                ),
            ),
            ("bmc", bmc_schema()),
            ("power", power_schema()),
            ("consumerRef", consumer_schema()),
            (
                "externallyProvisioned",
                flag_schema("Another program installed the image: only the power is controlled."),
            ),
            (
                "disablePowerOff",
                flag_schema(
                    "The host is never powered off, for example because its BMC loses power with it.",
                ),
            ),
            (
                "description",
                json!({ "type": "string", "description": "A description for people." }),
            ),
        ],
    );
    // metal3's webhook refuses it too.
    preserve_unknown_fields(with_rules(
        spec,
        [json!({
            "rule": "self.online || !has(self.disablePowerOff) || !self.disablePowerOff",
            "message": "a host with disablePowerOff cannot be offline: set online to true, or disablePowerOff to false",
            "fieldPath": ".disablePowerOff",
        })],
    ))
}

/// metal3 accepts an empty address without a Secret: a host without BMC. An invalid address is
/// accepted too, because the object may be older than the check; the condition then reports it.
fn bmc_schema() -> Value {
    preserve_unknown_fields(with_rules(
        object_schema(
            "How to reach the host's BMC.",
            &["address", "credentialsName"],
            [
                (
                    "address",
                    address_schema(
                        "An address as metal3 writes it, like redfish://192.0.2.1/redfish/v1/Systems/1.",
                    ),
                ),
                (
                    "credentialsName",
                    text_schema(
                        "The Secret in the host's namespace with username and password, and with \
                         ca.crt if a CA of your own signed the BMC's certificate.",
                        253,
                    ),
                ),
                ("disableCertificateVerification", skip_verification_schema()),
            ],
        ),
        [cel_rule(
            "self.address == '' || self.credentialsName != ''",
            "credentialsName must name the Secret with username and password",
        )],
    ))
}

fn power_schema() -> Value {
    let device = object_schema(
        "A BMC, or an outlet of a PDU.",
        &["address", "credentialsName"],
        [
            (
                "address",
                with_keyword(
                    address_schema(
                        "An address as in spec.bmc, or a fence agent: fence+fence_apc://pdu?plug=3.",
                    ),
                    "minLength",
                    json!(1),
                ),
            ),
            (
                "credentialsName",
                with_keyword(
                    text_schema(
                        "The Secret in the host's namespace with username and password.",
                        253,
                    ),
                    "minLength",
                    json!(1),
                ),
            ),
            ("disableCertificateVerification", skip_verification_schema()),
        ],
    );
    let level = object_schema(
        "Devices that together cut the power: all of them must succeed.",
        &["devices"],
        [(
            "devices",
            list_schema(
                "For example, all outlets of a host with two power supplies.",
                1,
                MAX_DEVICES,
                &device,
            ),
        )],
    );
    object_schema(
        "What cuts the host's power when the BMC cannot.",
        &["levels"],
        [(
            "levels",
            list_schema("Tried in order, after spec.bmc.", 1, MAX_LEVELS, &level),
        )],
    )
}

fn address_schema(description: &str) -> Value {
    with_rules(
        text_schema(description, MAX_ADDRESS_CHARS),
        [
            cel_rule(
                "!self.contains('@')",
                "leave user and password out of the address: they belong in the Secret that credentialsName names",
            ),
            cel_rule(r"!self.matches(r'\s')", "leave blanks out of the address"),
        ],
    )
}

fn skip_verification_schema() -> Value {
    flag_schema(
        "Accepts any certificate: anybody on the network path to the BMC can read the password.",
    )
}

fn flag_schema(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn consumer_schema() -> Value {
    let part =
        |name: &str| json!({ "type": "string", "description": format!("The {name} of it.") });
    let reference = object_schema(
        "The object that uses the host, for example a Machine.",
        &[],
        [
            ("apiVersion", part("version")),
            ("kind", part("kind")),
            ("namespace", part("namespace")),
            ("name", part("name")),
            ("uid", part("UID")),
            ("resourceVersion", part("resource version")),
            ("fieldPath", part("part")),
        ],
    );
    with_keyword(reference, "x-kubernetes-map-type", json!("atomic"))
}
