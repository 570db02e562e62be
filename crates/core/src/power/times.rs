//! The three times of a reboot, in their order whatever any clock says. Source: specification §3.2.

use jiff::{SignedDuration, Timestamp};

use super::host::HostStatus;
use crate::Now;

pub(super) use crate::time::micros;

/// Now, but later than all three times that stand there. `None`: there is no later time.
pub(super) fn next(status: &HostStatus, now: Now) -> Option<Timestamp> {
    let standing = [
        status.pending_reboot_since,
        status.last_powered_on,
        status.power.off_confirmed_at,
    ];
    let Some(newest) = standing.into_iter().flatten().max() else {
        return Some(micros(now.wall));
    };
    let later = newest.checked_add(SignedDuration::from_micros(1)).ok()?;
    // Cut to microseconds it must still be later.
    let later = micros(later);
    Some(micros(now.wall).max(later)).filter(|time| *time > newest)
}
