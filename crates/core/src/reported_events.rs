//! Sends each Event of one subject once.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use crate::Now;
use crate::decision::DecisionEvent;

/// How many Events of one subject are remembered. A reboot or a remediation sends about ten.
const MAX_REMEMBERED_EVENTS: usize = 64;

/// An Event is sent only about what is at most this old: a leader that starts later does not repeat
/// old Events.
const MAX_EVENT_AGE: Duration = Duration::from_hours(1);

/// Whether what happened then is still worth an Event.
pub(crate) fn is_recent_news(happened: Timestamp, now: Now) -> bool {
    now.elapsed_since(happened) < MAX_EVENT_AGE && happened <= now.wall
}

/// The Events of one subject that were sent.
#[derive(Debug, Clone, Default)]
pub struct ReportedEvents(VecDeque<DecisionEvent>);

impl ReportedEvents {
    pub fn was_reported(&self, event: &DecisionEvent) -> bool {
        self.0.contains(event)
    }

    /// Those of `events` that were not sent yet, in order.
    pub fn unreported_of(&self, events: &[DecisionEvent]) -> Vec<DecisionEvent> {
        let unreported = events.iter().filter(|event| !self.was_reported(event));
        unreported.cloned().collect()
    }

    pub fn record_event(&mut self, event: DecisionEvent) {
        if self.was_reported(&event) {
            return;
        }
        self.0.push_back(event);
        if self.0.len() > MAX_REMEMBERED_EVENTS {
            self.0.pop_front();
        }
    }

    pub fn record_events(&mut self, events: &[DecisionEvent]) {
        for event in events {
            self.record_event(event.clone());
        }
    }

    /// Forgets the Events that are not in `events`: when one of them comes again, it is sent again.
    pub fn forget_unlisted(&mut self, events: &[DecisionEvent]) {
        self.0.retain(|event| events.contains(event));
    }

    /// Forgets all: every Event may be sent again.
    pub fn forget_all(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::EventSeverity;

    fn event(message: &str) -> DecisionEvent {
        DecisionEvent {
            severity: EventSeverity::Normal,
            reason: "Because",
            message: message.into(),
        }
    }

    #[test]
    fn an_event_is_sent_once_until_it_is_forgotten() {
        let mut reported = ReportedEvents::default();
        let both = [event("a"), event("b")];
        assert_eq!(reported.unreported_of(&both), both);
        reported.record_event(event("a"));
        assert_eq!(reported.unreported_of(&both), [event("b")]);
        reported.record_events(&both);
        assert!(reported.unreported_of(&both).is_empty());
        reported.forget_unlisted(&[event("b")]);
        assert_eq!(reported.unreported_of(&both), [event("a")]);
        reported.forget_all();
        assert_eq!(reported.unreported_of(&both), both);
    }

    #[test]
    fn the_oldest_events_are_forgotten_when_there_are_too_many() {
        let mut reported = ReportedEvents::default();
        for number in 0..=MAX_REMEMBERED_EVENTS {
            reported.record_event(event(&number.to_string()));
        }
        assert!(!reported.was_reported(&event("0")) && reported.was_reported(&event("1")));
    }
}
