//! Who writes: the field manager that each write names.

use kube::api::{PatchParams, PostParams};

/// Patches as `manager`.
pub(crate) fn patched_by(manager: &str) -> PatchParams {
    PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    }
}

/// Makes objects as `manager`.
pub(crate) fn made_by(manager: &str) -> PostParams {
    PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    }
}
