//! What a remediation asks for afresh.

mod fresh;
mod leftovers;

pub(super) use fresh::beat;
