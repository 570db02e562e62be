//! Writes annotation `dogwatch.dev/estimated-start` of Nodes.
//!
//! **For:** what `dogwatch_core::report::plan_start_marks` plans.
//! **May touch:** this one annotation.
//! **Promises:** a Node of another UID is not patched.

use dogwatch_api::{CONTROLLER, annotation};
use dogwatch_core::report::StartMarkPatch;
use k8s_openapi::api::core::v1::Node;
use kube::api::Patch;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::error::{Error, with_timeout};
use crate::field_manager::patch_params_for;

#[derive(Clone)]
pub struct StartMarkClient {
    client: Client,
}

impl StartMarkClient {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// # Errors
    /// Also if the Node is gone, or another one of its name is there.
    pub async fn patch_node(&self, patch: &StartMarkPatch) -> Result<(), Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let (name, params) = (patch.node.as_str(), patch_params_for(CONTROLLER));
        let body = Patch::Merge(mark_patch(patch));
        with_timeout(nodes.patch_metadata(name, &params, &body)).await?;
        Ok(())
    }
}

fn mark_patch(patch: &StartMarkPatch) -> Value {
    let start = patch.start.map(|at| at.to_string());
    json!({ "metadata": {
        "uid": patch.uid,
        "annotations": { annotation::ESTIMATED_START: start },
    }})
}

#[cfg(test)]
mod tests {
    use dogwatch_core::name::NodeName;

    use super::*;
    use crate::node::observed_node;

    #[test]
    fn a_mark_reads_back_as_it_was_written_and_null_removes_it() {
        let mut patch = StartMarkPatch {
            node: NodeName::new("n1").unwrap(),
            uid: "u1".into(),
            start: "2026-12-24T02:00:00Z".parse().ok(),
        };
        let mut written = mark_patch(&patch);
        written["metadata"]["name"] = json!("n1");
        let node: Node = serde_json::from_value(written).unwrap();
        assert_eq!(observed_node(&node).unwrap().estimated_start, patch.start);
        patch.start = None;
        let removed = json!({ "uid": "u1", "annotations": { annotation::ESTIMATED_START: null } });
        assert_eq!(mark_patch(&patch)["metadata"], removed);
    }
}
