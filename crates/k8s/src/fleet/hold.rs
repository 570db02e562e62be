//! Ends a hold that a person asked for by annotation. Source: specification §10.1.

use dogwatch_api::annotation;
use dogwatch_api::node_reboot::RebootMethod;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::is_written_by_person;
use dogwatch_core::reboot::{ParsedAnnotation, RebootRequest};
use serde_json::json;

use super::FleetClient;
use super::request::MAX_TRIES;
use crate::error::{ApiErrorKind, Error};
use crate::node::{get_node, observed_node};

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
    /// Removes a person's request for a hold from the Node. NodeReboots may have joined it: only if
    /// all of them are `released` (UIDs), because their owners would lose their hold with it.
    pub async fn withdraw_hold(
        &self,
        node: &NodeName,
        released: &[String],
    ) -> Result<HoldWithdrawal, Error> {
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
                    let asked = names_of_others(request, released);
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

/// The NodeReboots that the request serves, without those that a person has released from a request
/// of his own. The controller withdraws what it wrote itself.
fn names_of_others(request: &RebootRequest, released: &[String]) -> Vec<String> {
    let is_of_person = is_written_by_person(request);
    let is_done = |uid: &String| is_of_person && released.contains(uid);
    let others = request.node_reboots.iter().filter(|one| !is_done(&one.uid));
    others.map(|one| one.name.clone()).collect()
}
