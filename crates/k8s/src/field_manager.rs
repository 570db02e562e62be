//! Patch and create parameters that name the field manager.

use kube::api::{PatchParams, PostParams};

pub(crate) fn patch_params_for(manager: &str) -> PatchParams {
    PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    }
}

pub(crate) fn post_params_for(manager: &str) -> PostParams {
    PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    }
}
