//! Leader election: at most one process acts for the whole cluster at a time.
//!
//! **For:** [`LeadershipHandle`], which components ask; [`LeaderElection`], the loop behind it.
//! **May touch:** the Lease `controller.dogwatch.dev`, through `dogwatch_k8s::leader`.
//! **Promises:** those of `dogwatch_core::leader`. The handle computes its answer from the clock
//! each time, so that a late notification does no harm.

mod election;

pub use dogwatch_runtime::leadership::LeadershipHandle;
pub use election::LeaderElection;
