//! What the API shows of `dogwatch controller`.

use jiff::Timestamp;

use super::human_format::format_ago;
use crate::Now;
use crate::leader::LEASE_DURATION;

/// The leader, according to the leader Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedController {
    Unknown,
    Nobody,
    /// The Lease names a leader, which may be dead.
    Leads {
        holder: String,
        /// The last renewal of the Lease, by the leader's clock.
        renewed: Option<Timestamp>,
    },
}

impl ObservedController {
    /// The leader as a line of a chain; `None` if the Lease could not be read.
    pub(super) fn to_sentence(&self, now: Now) -> Option<String> {
        match self {
            ObservedController::Unknown => None,
            ObservedController::Nobody => Some("no dogwatch controller leads".to_owned()),
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
        let leads = match self {
            ObservedController::Unknown => return None,
            ObservedController::Nobody => false,
            ObservedController::Leads { renewed, .. } => {
                renewed.is_none_or(|at| now.elapsed_since(at) <= LEASE_DURATION * 2)
            }
        };
        if !leads {
            let text =
                "start the controller: dogwatch manifests | kubectl apply --server-side -f -";
            return Some(text.to_owned());
        }
        is_idle.then(|| format!("run the controller with --components {components}"))
    }
}
