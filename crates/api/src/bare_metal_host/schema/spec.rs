//! `spec`.

use serde_json::{Value, json};

use super::super::{MAX_DEVICES, MAX_LEVELS};
use super::open;
use crate::schema_words::{list, object, rule, ruled, text, with};

/// The longest address that is read.
const LONGEST_ADDRESS: usize = 2048;

pub(super) fn spec() -> Value {
    let spec = object(
        "What the host should be.",
        &["online"],
        [
            (
                "online",
                flag("Whether it should be on. Reboot annotations overrule it to off."),
            ),
            ("bmc", bmc()),
            ("power", power()),
            ("consumerRef", consumer()),
            (
                "externallyProvisioned",
                flag("Something else has put the image on it: only its power is looked after."),
            ),
            (
                "disablePowerOff",
                flag("It is never powered off: its BMC loses power with it, say."),
            ),
            (
                "description",
                json!({ "type": "string", "description": "What people know it by." }),
            ),
        ],
    );
    // metal3's webhook refuses it too.
    open(ruled(
        spec,
        [json!({
            "rule": "self.online || !has(self.disablePowerOff) || !self.disablePowerOff",
            "message": "a host with disablePowerOff cannot be offline: set online to true, or disablePowerOff to false",
            "fieldPath": ".disablePowerOff",
        })],
    ))
}

/// metal3 takes an empty address with no Secret: a host without BMC. What is no address is taken, for
/// it may stand there since a time when it was one, and is then told in the condition.
fn bmc() -> Value {
    open(ruled(
        object(
            "How its BMC is reached.",
            &["address", "credentialsName"],
            [
                (
                    "address",
                    address("As metal3 writes it, like redfish://192.0.2.1/redfish/v1/Systems/1."),
                ),
                (
                    "credentialsName",
                    text(
                        "The Secret in the host's namespace with username and password, and ca.crt if its \
                         certificate is from a CA of your own.",
                        253,
                    ),
                ),
                ("disableCertificateVerification", unverified()),
            ],
        ),
        [rule(
            "self.address == '' || self.credentialsName != ''",
            "credentialsName must name the Secret with username and password",
        )],
    ))
}

fn power() -> Value {
    let device = object(
        "A BMC, or an outlet of a PDU.",
        &["address", "credentialsName"],
        [
            (
                "address",
                with(
                    address("As in spec.bmc, or a fence agent: fence+fence_apc://pdu?plug=3."),
                    "minLength",
                    json!(1),
                ),
            ),
            (
                "credentialsName",
                with(
                    text(
                        "The Secret in the host's namespace with username and password.",
                        253,
                    ),
                    "minLength",
                    json!(1),
                ),
            ),
            ("disableCertificateVerification", unverified()),
        ],
    );
    let level = object(
        "Devices that together cut the power: all of them must succeed.",
        &["devices"],
        [(
            "devices",
            list(
                "All outlets of a host with two power supplies, say.",
                1,
                MAX_DEVICES,
                &device,
            ),
        )],
    );
    object(
        "What cuts its power where the BMC does not.",
        &["levels"],
        [(
            "levels",
            list("Tried in order, after spec.bmc.", 1, MAX_LEVELS, &level),
        )],
    )
}

fn address(description: &str) -> Value {
    ruled(
        text(description, LONGEST_ADDRESS),
        [
            rule(
                "!self.contains('@')",
                "leave user and password out of the address: they belong in the Secret that credentialsName names",
            ),
            rule(r"!self.matches(r'\s')", "leave blanks out of the address"),
        ],
    )
}

fn unverified() -> Value {
    flag("Takes any certificate: whoever is between us and the BMC can have the password.")
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn consumer() -> Value {
    let part =
        |name: &str| json!({ "type": "string", "description": format!("The {name} of it.") });
    let reference = object(
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
    with(reference, "x-kubernetes-map-type", json!("atomic"))
}
