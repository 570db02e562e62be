//! What is waited for: in the controller's words, until when, and how far it is.

use super::chain::Chain;
use super::lines::lasted;
use super::row::WRONG_ON_OBJECTS;
use super::timeline::{timeline, took};
use crate::explain::Topic;
use crate::explain::words::due;
use crate::remedy::reason;

impl Chain<'_> {
    /// The controller's own words; and what stands in the way as it is now, where that needs no reading.
    pub(super) fn says(&mut self) {
        let because = &self.judged.decision.because;
        let said = self.judged.said();
        if let Some(said) = said {
            self.add(Topic::Says, format!("{}: {}", said.reason, said.message));
        }
        let is_another = said.is_none_or(|said| said.reason != because.reason);
        let is_known = said.is_none() || needs_no_reading(because.reason);
        if self.judged.is_under_way() && is_another && is_known {
            let text = format!("as it stands now: {}: {}", because.reason, because.message);
            self.add(Topic::Says, text);
        }
    }

    pub(super) fn deadline(&mut self) {
        if let Some(text) = self.attempt_ends() {
            self.add(Topic::Deadline, text);
        }
        let decision = &self.judged.decision;
        let is_timed = [reason::COOLING_DOWN, reason::PLANNED_REBOOT];
        let wake = decision.wake.as_ref();
        if let Some(wake) = wake.filter(|_| is_timed.contains(&decision.because.reason)) {
            let left = wake.at.saturating_sub(self.now.mono);
            let left = jiff::SignedDuration::try_from(left).unwrap_or_default();
            let at = self.now.wall.checked_add(left).unwrap_or(self.now.wall);
            self.add(
                Topic::Deadline,
                format!("{}: {}", wake.why, due(at, self.now)),
            );
        }
    }

    fn attempt_ends(&self) -> Option<String> {
        let request = self.case.request.as_ref()?;
        let attempt = request
            .status
            .attempt
            .filter(|_| request.status.ended_at.is_none())?;
        let timeout = request.strategy.as_ref().ok()?.timeout;
        let timeout = jiff::SignedDuration::try_from(timeout).ok()?;
        let at = attempt.started_at.checked_add(timeout).ok()?;
        let text = format!("attempt {} ends {}", attempt.number, due(at, self.now));
        Some(text)
    }

    pub(super) fn steps(&mut self) {
        let steps = timeline(self.case);
        for step in &steps {
            self.add(Topic::Step, step.line());
        }
        if let Some(ms) = took(&steps).filter(|_| steps.len() > 1) {
            self.add(
                Topic::Step,
                format!("{} from the first to the last", lasted(ms)),
            );
        }
    }

    pub(super) fn controller(&mut self) {
        if let Some(text) = self.view.controller.in_words(self.now) {
            self.add(Topic::Controller, text);
        }
    }
}

/// Reasons that follow from objects alone, so that they hold whatever the controller has read.
fn needs_no_reading(word: &str) -> bool {
    let others = [
        reason::CONTROL_PLANE_ONE_BY_ONE,
        reason::TOO_MANY_FENCED,
        reason::COOLING_DOWN,
        reason::PLANNED_REBOOT,
        reason::ORPHANED_KEY,
    ];
    WRONG_ON_OBJECTS.contains(&word) || others.contains(&word)
}
