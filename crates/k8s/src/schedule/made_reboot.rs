//! The NodeReboots that schedules make: reads those of one schedule, and creates one.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_api::node_reboot::{NodeReboot, NodeRebootSpec, RebootMethod};
use dogwatch_api::{CONTROLLER, annotation, label};
use dogwatch_core::duration::format_duration;
use dogwatch_core::schedule::{
    MadeNodeReboot, MadeNodeReboots, MadeNodeRebootsRead, MadeRebootEnd, NodeRebootDraft,
};
use jiff::Timestamp;
use kube::{Api, ResourceExt as _};

use super::{ScheduleClient, pages};
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::field_manager::post_params_for;
use crate::node_reboot::{NodeRebootObject, convert_node_reboot};

/// How the creation of a NodeReboot ended.
#[derive(Debug)]
pub enum NodeRebootCreation {
    Created(MadeNodeReboot),
    /// Another object has the name. It is ours if the list shows it.
    NameTaken,
    /// The kind is not installed any more, or the right to create it is missing.
    Unavailable(String),
}

impl ScheduleClient {
    /// The NodeReboots that the schedule has made; `taken`: the time of the read.
    pub async fn read_node_reboots(
        &self,
        schedule_uid: &str,
        taken: Duration,
    ) -> MadeNodeRebootsRead {
        let ours = format!("{}={schedule_uid}", label::SCHEDULE_UID);
        let listed = pages::list_selected_pages(&self.reboot_api(), &ours, made_node_reboot).await;
        let made = match listed {
            Ok(made) => MadeNodeReboots::Known(by_name(made)),
            Err(error) => match find_unavailable_cause(&error, "list") {
                Some(why) => MadeNodeReboots::Unavailable(why),
                None => MadeNodeReboots::Unreadable(format!(
                    "NodeReboots cannot be listed: {}",
                    error.error_chain()
                )),
            },
        };
        MadeNodeRebootsRead {
            made,
            refused: None,
            taken,
        }
    }

    /// Creates the NodeReboot, unless an object has its name.
    ///
    /// # Errors
    /// It may have been created all the same.
    pub async fn create_node_reboot(
        &self,
        draft: &NodeRebootDraft,
    ) -> Result<NodeRebootCreation, Error> {
        let api = Api::<NodeReboot>::all(self.client.clone());
        let params = post_params_for(CONTROLLER);
        match with_timeout(api.create(&params, &node_reboot_object(draft))).await {
            Ok(_) => Ok(NodeRebootCreation::Created(created_node_reboot(draft))),
            Err(error) if error.kind() == ApiErrorKind::AlreadyExists => {
                Ok(NodeRebootCreation::NameTaken)
            }
            Err(error) => match find_unavailable_cause(&error, "create") {
                Some(why) => Ok(NodeRebootCreation::Unavailable(why)),
                None => Err(error),
            },
        }
    }

    fn reboot_api(&self) -> Api<NodeRebootObject> {
        Api::all(self.client.clone())
    }
}

/// Why no NodeReboot can be made until somebody changes the cluster. A webhook that refuses one is no
/// such cause: the node must not be asked in another way then.
pub(super) fn find_unavailable_cause(error: &Error, verb: &str) -> Option<String> {
    if error.kind() == ApiErrorKind::NotFound {
        return Some("the kind NodeReboot is not installed".into());
    }
    error
        .is_missing_right(verb)
        .then(|| format!("the controller has no right to {verb} NodeReboots"))
}

fn by_name(made: Vec<MadeNodeReboot>) -> BTreeMap<String, MadeNodeReboot> {
    made.into_iter()
        .map(|one| (one.name.clone(), one))
        .collect()
}

/// With `apiVersion` and `kind`: the API server creates nothing without them.
pub(super) fn node_reboot_object(draft: &NodeRebootDraft) -> NodeReboot {
    let spec = NodeRebootSpec {
        node_name: draft.target.name.clone(),
        node_uid: Some(draft.node_uid.clone()),
        method: Some(RebootMethod::Reboot),
        reason: Some(draft.reason.clone()),
        requester: Some(draft.requester.clone()),
        ttl_after_finished: Some(format_duration(draft.ttl)),
        ..NodeRebootSpec::default()
    };
    let mut object = NodeReboot::new(&draft.name, spec);
    let uid = draft.schedule_uid.clone();
    object.metadata.labels = Some([(label::SCHEDULE_UID.to_owned(), uid)].into());
    let at = draft.at.to_string();
    object.metadata.annotations = Some([(annotation::SCHEDULED_FOR.to_owned(), at)].into());
    object
}

fn created_node_reboot(draft: &NodeRebootDraft) -> MadeNodeReboot {
    MadeNodeReboot {
        name: draft.name.clone(),
        node: draft.target.name.clone(),
        node_uid: Some(draft.node_uid.clone()),
        at: Some(draft.at),
        end: None,
    }
}

/// One whose spec or status cannot be parsed has not ended.
pub(super) fn made_node_reboot(object: &NodeRebootObject) -> MadeNodeReboot {
    let reboot = convert_node_reboot(object);
    let at = object.annotations().get(annotation::SCHEDULED_FOR);
    let plan = reboot.plan.as_ref().ok();
    let end = reboot.final_condition().map(|ended| MadeRebootEnd {
        is_success: ended.status == "True",
        reason: ended.reason.clone(),
        message: ended.message.clone(),
        at: ended.last_transition.unwrap_or(Timestamp::MAX),
    });
    MadeNodeReboot {
        node: plan.map_or_else(String::new, |plan| plan.node.to_string()),
        node_uid: plan.and_then(|plan| plan.node_uid.clone()),
        at: at.and_then(|at| at.parse().ok()),
        end,
        name: reboot.name,
    }
}
