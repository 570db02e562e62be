//! A node that is held out of service, by its coordinator, for somebody who works on it. Its
//! coordinator may be silent for long. Source: specification §10.1.

use super::healing_case::HealerDecision;
use super::node::NodeCase;
use crate::decision::decision_with_cause;
use crate::reboot::{self, RebootReason, RebootRecord, TakeoverStep};

impl NodeCase<'_> {
    /// Left alone while the request for the hold is there; then brought back into service, if its
    /// coordinator does not.
    pub(super) fn decide_holding_phase(&self, record: &RebootRecord) -> HealerDecision {
        if reboot::is_hold_requested(self.node, record) {
            let text = reboot::describe_hold(&record.trigger);
            return decision_with_cause(RebootReason::Held, text);
        }
        if let Some(decision) = self.watch_for_sign() {
            return decision;
        }
        let text = format!("the hold was withdrawn, and {}", self.describe_silence());
        self.take_over_or_watch(&TakeoverStep::Return, RebootReason::HoldEnded, text)
    }
}
