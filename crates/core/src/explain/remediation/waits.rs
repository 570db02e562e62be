//! The lines about what a remediation waits for: the controller's condition, deadlines, completed
//! steps.

use super::chain::RemediationExplainer;
use super::lines::format_millis;
use super::timeline::{remediation_timeline, total_millis};
use crate::explain::ExplanationTopic;
use crate::explain::human_format::format_due;
use crate::remediation::{ReasonSource, RemediationReason};

impl RemediationExplainer<'_> {
    /// The controller's condition, and the present obstacle if that needs no reading of the power.
    pub(super) fn add_decision(&mut self) {
        let because = &self.assessed.decision.cause;
        let said = self.assessed.controller_condition();
        if let Some(said) = said {
            self.add_line(
                ExplanationTopic::Says,
                format!("{}: {}", said.reason, said.message),
            );
        }
        let is_another = said.is_none_or(|said| said.reason != because.reason.as_str());
        let is_known = said.is_none() || because.reason.known_from() == ReasonSource::Objects;
        if self.assessed.is_under_way() && is_another && is_known {
            let text = format!("current state: {}: {}", because.reason, because.message);
            self.add_line(ExplanationTopic::Says, text);
        }
    }

    pub(super) fn add_deadline(&mut self) {
        if let Some(text) = self.attempt_end_text() {
            self.add_line(ExplanationTopic::Deadline, text);
        }
        let decision = &self.assessed.decision;
        let is_timed = [
            RemediationReason::CoolingDown,
            RemediationReason::PlannedReboot,
        ];
        let wake = decision.wake.as_ref();
        if let Some(wake) = wake.filter(|_| is_timed.contains(&decision.cause.reason)) {
            let left = wake.at.saturating_sub(self.now.mono);
            let left = jiff::SignedDuration::try_from(left).unwrap_or_default();
            let at = self.now.wall.checked_add(left).unwrap_or(self.now.wall);
            self.add_line(
                ExplanationTopic::Deadline,
                format!("{}: {}", wake.why, format_due(at, self.now)),
            );
        }
    }

    fn attempt_end_text(&self) -> Option<String> {
        let request = self.remediation.request.as_ref()?;
        let attempt = request
            .status
            .attempt
            .filter(|_| request.status.ended_at.is_none())?;
        let timeout = request.strategy.as_ref().ok()?.timeout;
        let timeout = jiff::SignedDuration::try_from(timeout).ok()?;
        let at = attempt.started_at.checked_add(timeout).ok()?;
        let text = format!(
            "attempt {} ends {}",
            attempt.number,
            format_due(at, self.now)
        );
        Some(text)
    }

    pub(super) fn add_steps(&mut self) {
        let steps = remediation_timeline(self.remediation);
        for step in &steps {
            self.add_line(ExplanationTopic::Step, step.to_line());
        }
        if let Some(ms) = total_millis(&steps).filter(|_| steps.len() > 1) {
            self.add_line(
                ExplanationTopic::Step,
                format!("{} from the first to the last", format_millis(ms)),
            );
        }
    }

    pub(super) fn add_controller(&mut self) {
        if let Some(text) = self.view.controller.to_sentence(self.now) {
            self.add_line(ExplanationTopic::Controller, text);
        }
    }
}
