//! Fresh reads of a remediation.

mod fresh_reads;
mod leftovers;

pub(crate) use fresh_reads::NODE_LEASE_NAMESPACE;
pub(super) use fresh_reads::heartbeat_of;
