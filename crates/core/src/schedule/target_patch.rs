//! Builds the patch that asks a target and marks it, or that only marks it.

use dogwatch_api::annotation;

use super::snapshot::{StandingRequest, TargetObject};
use super::target::{
    RebootRequestPatch, ScheduleMark, ScheduleMarks, ScheduleTarget, ScheduleTargetKind,
};
use super::target_state::TargetResolver;
use crate::reboot::RebootRequest;

impl TargetResolver<'_> {
    pub(super) fn build_request_patch(
        &self,
        kind: ScheduleTargetKind,
        object: &TargetObject,
        marks: &ScheduleMarks,
    ) -> RebootRequestPatch {
        let is_asked = object.request != StandingRequest::Absent;
        let mut patch = self.build_mark_patch(kind, object, marks, None);
        if let Some(mark) = patch.marks.get_mut(&self.seen.schedule.uid) {
            mark.noted = is_asked;
        }
        patch.request = (!is_asked).then(|| self.build_request_annotation(kind));
        patch
    }

    /// Marks the target, and requests nothing.
    pub(super) fn build_mark_patch(
        &self,
        kind: ScheduleTargetKind,
        object: &TargetObject,
        marks: &ScheduleMarks,
        node_reboot: Option<String>,
    ) -> RebootRequestPatch {
        let living = &self.seen.living;
        let schedule = &self.seen.schedule;
        let mut marks: ScheduleMarks = marks
            .iter()
            .filter(|(uid, _)| living.contains(*uid))
            .map(|(uid, mark)| (uid.clone(), mark.clone()))
            .collect();
        let mark = ScheduleMark {
            by: schedule.name.to_string(),
            at: self.current.at,
            noted: false,
            node_reboot,
        };
        marks.insert(schedule.uid.clone(), mark);
        RebootRequestPatch {
            target: ScheduleTarget {
                kind,
                name: object.name.clone(),
            },
            uid: object.uid.clone(),
            resource_version: object.resource_version.clone(),
            marks,
            request: None,
        }
    }

    fn build_request_annotation(&self, kind: ScheduleTargetKind) -> (&'static str, String) {
        let name = &self.seen.schedule.name;
        match kind {
            ScheduleTargetKind::Node => {
                let request = RebootRequest {
                    // Contains the time, so that two occurrences make two requests.
                    reason: format!("{} (scheduled for {})", self.plan.reason, self.current.at),
                    requester: format!("rebootschedule/{name}"),
                    not_before: None,
                    ..RebootRequest::default()
                };
                let text = serde_json::to_string(&request).expect("two texts serialise");
                (annotation::REBOOT_REQUESTED, text)
            }
            ScheduleTargetKind::Host => {
                let value = serde_json::json!({ "mode": self.plan.mode.as_str() });
                (annotation::METAL3_REBOOT, value.to_string())
            }
        }
    }
}
