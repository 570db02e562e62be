//! The drain of one node over the API server: one watch on its pods, evictions, lookups, budgets.
//!
//! **For:** to run a [`dogwatch_core::drain::Drain`], which makes all decisions.
//! **May touch:** pods of one node (list, watch, evict, delete), DaemonSets and budgets (read).
//! **Promises:** one list and one watch on the pods, one call per eviction, one per DaemonSet, one
//! list of budgets, and a watch on budgets only where one holds a pod up; every eviction and
//! deletion carries the pod's UID; it goes on until it is dropped, whatever the API server says,
//! and says in [`Progress`](dogwatch_core::drain::Progress) what it cannot do; nothing here is left to chance, so that under a
//! paused clock the same world gives the same calls.
//!
//! Source: specification §2.3.

mod answer;
mod attachments;
mod budget;
mod call;
mod pod;
mod runner;

pub(crate) use budget::seen as budget_seen;
pub(crate) use pod::{TaintRef, seen as pod_seen, tolerates};

pub use attachments::{Attachments, AttachmentsHandle};
pub use call::ask_to_go;
pub use runner::{Handle, Runner};
