//! What the API shows of `dogwatch controller`.

use jiff::Timestamp;

use super::words::ago;
use crate::Now;
use crate::leader::LEASE;

/// Whether one leads, by its Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControllerSeen {
    /// It could not be looked at.
    Unknown,
    /// Nobody leads.
    Nobody,
    /// It leads, or did.
    Leads {
        /// Which process.
        holder: String,
        /// When it last said so, by its own clock.
        renewed: Option<Timestamp>,
    },
}

impl ControllerSeen {
    /// Who leads, as a line of a chain; `None`: it could not be looked at.
    pub(super) fn in_words(&self, now: Now) -> Option<String> {
        match self {
            ControllerSeen::Unknown => None,
            ControllerSeen::Nobody => Some("no dogwatch controller leads".to_owned()),
            ControllerSeen::Leads { holder, renewed } => Some(match renewed {
                Some(at) => format!("{holder} leads, renewed {}", ago(*at, now)),
                None => format!("{holder} leads"),
            }),
        }
    }

    /// What to do: start one where nobody leads, for nothing happens by itself then; where one leads that
    /// `is_idle` about what is asked, see that it runs with these `components`.
    pub(super) fn advice(&self, is_idle: bool, components: &str, now: Now) -> Option<String> {
        let leads = match self {
            ControllerSeen::Unknown => return None,
            ControllerSeen::Nobody => false,
            ControllerSeen::Leads { renewed, .. } => {
                renewed.is_none_or(|at| now.since(at) <= LEASE * 2)
            }
        };
        if !leads {
            let text =
                "start the controller: dogwatch manifests | kubectl apply --server-side -f -";
            return Some(text.to_owned());
        }
        is_idle.then(|| format!("see that the controller runs with --components {components}"))
    }
}
