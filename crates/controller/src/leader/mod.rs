//! Leading: at most one process acts for the whole cluster at a time.
//!
//! **For:** [`Leadership`], what components ask; [`Election`], the loop behind it.
//! **May touch:** the Lease `controller.dogwatch.dev`, through `dogwatch_k8s::leader`.
//! **Promises:** what `dogwatch_core::leader` does; the handle's answer is made from the clock each
//! time, so that nothing has to be told in time.

mod handle;
mod run;

pub use handle::Leadership;
pub use run::Election;
