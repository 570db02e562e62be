//! What the API shows of `dogwatch controller`.

use std::time::Duration;

use jiff::Timestamp;

use super::human_format::format_ago;
use crate::Now;

/// A leader that has not renewed its Lease for this long no longer leads, as far as two clocks can
/// tell.
pub(super) const LEADER_RENEW_LIMIT: Duration = Duration::from_mins(1);

/// The leader, according to the leader Lease.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ObservedController {
    #[default]
    Unknown,
    Nobody,
    /// The last leader ended in good order, as in a rolling update.
    Ended {
        /// Its last renewal of the Lease, by its clock.
        renewed: Timestamp,
    },
    /// The Lease names a leader, which may be dead.
    Leads {
        holder: String,
        /// The last renewal of the Lease, by the leader's clock.
        renewed: Option<Timestamp>,
    },
}

impl ObservedController {
    /// Whether nobody leads: the Lease was not renewed for a minute, or never had a holder.
    /// A Lease that could not be read proves nothing.
    pub fn is_without_leader(&self, now: Now) -> bool {
        match self {
            ObservedController::Unknown => false,
            ObservedController::Nobody => true,
            ObservedController::Ended { renewed } => is_long_ago(*renewed, now),
            ObservedController::Leads { renewed, .. } => {
                renewed.is_some_and(|at| is_long_ago(at, now))
            }
        }
    }

    /// The leader as a line of a chain; `None` if the Lease could not be read.
    pub(super) fn to_sentence(&self, now: Now) -> Option<String> {
        match self {
            ObservedController::Unknown => None,
            ObservedController::Nobody => Some("no dogwatch controller leads".to_owned()),
            ObservedController::Ended { renewed } => Some(format!(
                "no dogwatch controller leads; the last one ended {}",
                format_ago(*renewed, now)
            )),
            ObservedController::Leads { holder, renewed } => Some(match renewed {
                Some(at) => format!("{holder} leads, renewed {}", format_ago(*at, now)),
                None => format!("{holder} leads"),
            }),
        }
    }

    /// Advises to start a controller if none leads, because nothing happens without one. If one
    /// leads but does nothing about the request (`is_idle`), advises to check that it runs with
    /// these `components`.
    pub(super) fn controller_advice(
        &self,
        is_idle: bool,
        components: &str,
        now: Now,
    ) -> Option<String> {
        if self.is_without_leader(now) {
            let text =
                "start the controller: dogwatch manifests | kubectl apply --server-side -f -";
            return Some(text.to_owned());
        }
        let is_idle = is_idle && matches!(self, ObservedController::Leads { .. });
        is_idle.then(|| format!("run the controller with --components {components}"))
    }
}

fn is_long_ago(renewed: Timestamp, now: Now) -> bool {
    now.elapsed_since(renewed) > LEADER_RENEW_LIMIT
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{at, now};
    use super::*;

    #[test]
    fn a_leader_that_has_just_ended_is_given_a_minute_for_the_next_one() {
        let ended = ObservedController::Ended { renewed: at(100) };
        assert!(!ended.is_without_leader(now(150)));
        assert_eq!(ended.controller_advice(true, "remediation", now(150)), None);
        assert!(ended.is_without_leader(now(161)));
        let advice = ended.controller_advice(false, "remediation", now(161));
        assert!(advice.unwrap().starts_with("start the controller"));
    }
}
