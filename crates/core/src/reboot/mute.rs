//! Keeps NVSentinel from taking a node that reboots as planned for a sick one: a label that is set
//! where it is absent, when the drain begins, and removed by whoever set it. Source: specification
//! §10.6; promise S3.

use dogwatch_api::label::{NVSENTINEL_MANAGED, NVSENTINEL_MUTED};

use super::RebootContext;
use super::record::RebootRecord;

/// Whether the patch that begins the drain sets the label. One that is there, whatever its value,
/// is somebody else's, unless the record of this very reboot says that we set it.
pub(super) fn wants_mute_label(ctx: &RebootContext<'_>) -> bool {
    ctx.config.mute_nvsentinel && !ctx.node.labels.contains_key(NVSENTINEL_MANAGED)
}

/// `Some(false)`: the label is ours, and goes. `None`: it is not ours, or was changed since.
pub(super) fn unmute_change(ctx: &RebootContext<'_>, record: &RebootRecord) -> Option<bool> {
    let value = ctx.node.labels.get(NVSENTINEL_MANAGED);
    let is_ours = record.muted && value.is_some_and(|value| value == NVSENTINEL_MUTED);
    is_ours.then_some(false)
}
