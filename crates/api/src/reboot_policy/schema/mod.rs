//! The schema that the API server holds every policy to: structural OpenAPI with CEL rules.
//!
//! Each text has a longest length and each list a longest size, or the API server would not take
//! the rules (it adds up what they could cost). A rule's message says what to write; the API server
//! names the field before it.

mod gate;
pub(crate) mod selector;
mod spec;
mod status;
pub(crate) mod window;

use serde_json::{Value, json};

use super::name::{LONGEST, NAME_RULE};
use super::{API_VERSION, KIND};
use crate::definition;
use crate::schema_words as words;
use words::ruled;

/// The schema of the whole object.
pub(super) fn root() -> Value {
    let mut whole = definition::root(
        "What rules the planned reboots of the nodes that it selects. Its name is the name of their \
         group: of the lock they share, and of their budget. Where it is silent, the coordinator's \
         flags rule. https://dogwatch.dev/reboot-policy",
        (API_VERSION, KIND),
        &["spec"],
        spec::spec(),
        status::status(),
    );
    let name = json!({ "type": "string", "maxLength": LONGEST });
    whole["properties"]["metadata"]["properties"] = json!({ "name": name });
    ruled(
        whole,
        [
            json!({
                "rule": "self.metadata.name.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') \
                         && self.metadata.name != 'remedy' && !self.metadata.name.startsWith('remedy-')",
                "message": NAME_RULE,
                "fieldPath": ".metadata.name",
            }),
            json!({
                "rule": "self.metadata.name != 'control-plane' || (has(self.spec.nodeSelector) && (\
                         (has(self.spec.nodeSelector.matchLabels) && \
                         'node-role.kubernetes.io/control-plane' in self.spec.nodeSelector.matchLabels) || \
                         (has(self.spec.nodeSelector.matchExpressions) && \
                         self.spec.nodeSelector.matchExpressions.exists(e, \
                         e.key == 'node-role.kubernetes.io/control-plane' && e.operator in ['In', 'Exists']))))",
                "message": "a policy called control-plane must select by the label \
                            node-role.kubernetes.io/control-plane: its group is that of the control plane",
                "fieldPath": ".spec.nodeSelector",
            }),
        ],
    )
}
