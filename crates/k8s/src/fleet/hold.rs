//! Holds a node and ends its hold: by a NodeReboot, or by the annotation of a request where that
//! kind is not installed. Source: specification §10.1.

use dogwatch_api::annotation;
use dogwatch_api::node_reboot::{NodeReboot, NodeRebootPhase, NodeRebootSpec, RebootMethod};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::{ParsedAnnotation, RebootRequest};
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::FleetClient;
use super::request::{FIELD_MANAGER, MAX_TRIES};
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::field_manager::post_params_for;
use crate::node::{get_node, observed_node};
use crate::node_reboot::NodeRebootObject;

/// A NodeReboot of method Hold that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeHold {
    pub name: String,
    pub uid: String,
    pub requester: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldWithdrawal {
    Withdrawn,
    /// The Node carries no request for a hold.
    NotAsked,
    /// The controller carries these NodeReboots to the Node; it withdraws the request.
    OfNodeReboots(Vec<String>),
    /// The request cannot be read.
    Unreadable(String),
    NoSuchNode,
}

impl FleetClient {
    /// The holds of this node that have not ended; `None`: the kind NodeReboot is not installed.
    pub async fn list_holds(&self, node: &NodeName) -> Result<Option<Vec<NodeHold>>, Error> {
        let api = Api::<NodeRebootObject>::all(self.client.clone());
        match with_timeout(api.list(&ListParams::default())).await {
            Ok(list) => {
                let holds = list.items.iter();
                Ok(Some(holds.filter_map(|one| open_hold(one, node)).collect()))
            }
            Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a NodeReboot that holds the Node of this UID.
    pub async fn create_hold(
        &self,
        name: &str,
        node: &NodeName,
        uid: &str,
        request: &RebootRequest,
    ) -> Result<(), Error> {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let spec = NodeRebootSpec {
            node_name: node.to_string(),
            node_uid: Some(uid.to_owned()),
            method: Some(RebootMethod::Hold),
            reason: text(&request.reason),
            requester: text(&request.requester),
            ..NodeRebootSpec::default()
        };
        let api = Api::<NodeReboot>::all(self.client.clone());
        let params = post_params_for(FIELD_MANAGER);
        with_timeout(api.create(&params, &NodeReboot::new(name, spec))).await?;
        Ok(())
    }

    /// Deletes the NodeReboot, which ends its hold. One that is gone already is no error.
    pub async fn delete_hold(&self, hold: &NodeHold) -> Result<(), Error> {
        let api = Api::<NodeRebootObject>::all(self.client.clone());
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(hold.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match with_timeout(api.delete(&hold.name, &params)).await {
            Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(()),
            done => done.map(|_| ()),
        }
    }

    /// Removes a person's request for a hold from the Node.
    pub async fn withdraw_hold(&self, node: &NodeName) -> Result<HoldWithdrawal, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let Some(object) = get_node(&self.client, node.as_str()).await? else {
                return Ok(HoldWithdrawal::NoSuchNode);
            };
            let Ok(seen) = observed_node(&object) else {
                return Ok(HoldWithdrawal::NoSuchNode);
            };
            match &seen.request {
                ParsedAnnotation::Bad { why } => {
                    return Ok(HoldWithdrawal::Unreadable(why.clone()));
                }
                ParsedAnnotation::Is(request) if request.method == RebootMethod::Hold => {
                    let asked = request.node_reboots.iter().map(|one| one.name.clone());
                    let asked: Vec<String> = asked.collect();
                    if !asked.is_empty() {
                        return Ok(HoldWithdrawal::OfNodeReboots(asked));
                    }
                }
                ParsedAnnotation::Is(_) | ParsedAnnotation::Absent => {
                    return Ok(HoldWithdrawal::NotAsked);
                }
            }
            let gone = json!({ annotation::REBOOT_REQUESTED: null });
            match self.annotate_node(&object, &gone).await {
                Ok(()) => return Ok(HoldWithdrawal::Withdrawn),
                Err(error) if error.kind() == ApiErrorKind::Conflict && tries < MAX_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A hold of this node, unless it has ended or is being deleted.
fn open_hold(object: &NodeRebootObject, node: &NodeName) -> Option<NodeHold> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let is_hold = object.spec["method"] == RebootMethod::Hold.as_str()
        && object.spec["nodeName"] == node.as_str();
    let has_ended = object.status["phase"] == NodeRebootPhase::Finished.as_str()
        || object.metadata.deletion_timestamp.is_some();
    (is_hold && !has_ended).then(|| NodeHold {
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        requester: text(&object.spec["requester"]),
    })
}
