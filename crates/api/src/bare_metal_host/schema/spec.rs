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
                flag_schema("Whether it should be on. Reboot annotations overrule it to off."),
            ),
            ("bmc", bmc_schema()),
            ("power", power_schema()),
            ("consumerRef", consumer_schema()),
            (
                "externallyProvisioned",
                flag_schema(
                    "Something else has put the image on it: only its power is looked after.",
                ),
            ),
            (
                "disablePowerOff",
                flag_schema("It is never powered off: its BMC loses power with it, say."),
            ),
            (
                "description",
                json!({ "type": "string", "description": "What people know it by." }),
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
            "How its BMC is reached.",
            &["address", "credentialsName"],
            [
                (
                    "address",
                    address_schema(
                        "As metal3 writes it, like redfish://192.0.2.1/redfish/v1/Systems/1.",
                    ),
                ),
                (
                    "credentialsName",
                    text_schema(
                        "The Secret in the host's namespace with username and password, and ca.crt if its \
                         certificate is from a CA of your own.",
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
                        "As in spec.bmc, or a fence agent: fence+fence_apc://pdu?plug=3.",
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
                "All outlets of a host with two power supplies, say.",
                1,
                MAX_DEVICES,
                &device,
            ),
        )],
    );
    object_schema(
        "What cuts its power where the BMC does not.",
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
    flag_schema("Takes any certificate: whoever is between us and the BMC can have the password.")
}

fn flag_schema(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn consumer_schema() -> Value {
    let part =
        |name: &str| json!({ "type": "string", "description": format!("The {name} of it.") });
    let reference = object_schema(
        "What uses the host: a Machine, say.",
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
