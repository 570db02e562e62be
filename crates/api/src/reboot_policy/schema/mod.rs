//! The schema of a policy: structural OpenAPI with CEL rules.
//!
//! Each text and each list has a maximum size, or the API server would refuse the rules (it adds up
//! what they could cost). A rule's message says what to write; the API server names the field
//! before it.

mod gate;
pub(crate) mod selector;
mod spec;
mod status;
pub(crate) mod window;

use serde_json::{Value, json};

use super::policy_name::{MAX_POLICY_NAME_BYTES, POLICY_NAME_RULE};
use super::{API_VERSION, KIND};
use crate::crd_definition;
use crate::schema_parts as words;
use words::with_rules;

pub(super) fn root_schema() -> Value {
    let mut whole = crd_definition::resource_schema(
        "The rules for the planned reboots of the nodes that it selects. The policy's name is \
         also the name of their group, which shares a lock and a budget. The coordinator's flags \
         apply to each field that is not set. https://dogwatch.dev/reboot-policy",
        (API_VERSION, KIND),
        &["spec"],
        spec::spec_schema(),
        status::status_schema(),
    );
    let name = json!({ "type": "string", "maxLength": MAX_POLICY_NAME_BYTES });
    whole["properties"]["metadata"]["properties"] = json!({ "name": name });
    with_rules(
        whole,
        [
            json!({
                "rule": "self.metadata.name.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') \
                         && self.metadata.name != 'remedy' && !self.metadata.name.startsWith('remedy-')",
                "message": POLICY_NAME_RULE,
                "fieldPath": ".metadata.name",
            }),
            json!({
                "rule": "self.metadata.name != 'control-plane' || (has(self.spec.nodeSelector) && (\
                         (has(self.spec.nodeSelector.matchLabels) && \
                         'node-role.kubernetes.io/control-plane' in self.spec.nodeSelector.matchLabels) || \
                         (has(self.spec.nodeSelector.matchExpressions) && \
                         self.spec.nodeSelector.matchExpressions.exists(e, \
                         e.key == 'node-role.kubernetes.io/control-plane' && e.operator in ['In', 'Exists']))))",
                "message": "a policy with the name control-plane must select the label \
                            node-role.kubernetes.io/control-plane: its group is the control plane",
                "fieldPath": ".spec.nodeSelector",
            }),
        ],
    )
}
