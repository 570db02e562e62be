//! Which of two hosts that claim one thing keeps it. Whoever may make a host could else stop the fencing of any other,
//! by claiming what that one has. Source: specification §6, "Hosts".

use jiff::Timestamp;

use super::host::Host;
use super::operator::OwnerRules;

/// The less, the earlier: a host of `--host-namespaces`, then the older one, then the one with the lesser UID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seniority {
    is_elsewhere: bool,
    created: Timestamp,
    uid: String,
}

impl Seniority {
    /// Of this host.
    pub fn of(host: &Host, rules: &OwnerRules) -> Self {
        Self {
            is_elsewhere: !rules.host_namespaces.contains(&host.name.namespace),
            created: host.created.unwrap_or(Timestamp::MAX),
            uid: host.uid.clone(),
        }
    }
}
