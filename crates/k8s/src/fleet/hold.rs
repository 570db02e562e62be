//! Ends a hold that a person asked for by annotation. Source: specification §10.1.

use dogwatch_api::annotation;
use dogwatch_api::node_reboot::RebootMethod;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::ParsedAnnotation;
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
