//! Keeps the three times of a reboot in order, whatever any clock says. Source: specification §3.2.

use jiff::{SignedDuration, Timestamp};

use super::host::HostStatus;
use crate::Now;

pub(super) use crate::time::truncate_to_micros;

/// Now, or just after the latest of the three recorded times. `None`: there is no later time.
pub(super) fn next_status_time(status: &HostStatus, now: Now) -> Option<Timestamp> {
    let standing = [
        status.pending_reboot_since,
        status.last_powered_on,
        status.power.off_confirmed_at,
    ];
    let Some(newest) = standing.into_iter().flatten().max() else {
        return Some(truncate_to_micros(now.wall));
    };
    let later = newest.checked_add(SignedDuration::from_micros(1)).ok()?;
    // It must still be later after truncation to microseconds.
    let later = truncate_to_micros(later);
    Some(truncate_to_micros(now.wall).max(later)).filter(|time| *time > newest)
}
