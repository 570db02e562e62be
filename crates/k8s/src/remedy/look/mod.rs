//! What a remediation asks for afresh.

mod fresh;
mod leftovers;

pub(crate) use fresh::NODE_LEASES;
pub(super) use fresh::beat;
