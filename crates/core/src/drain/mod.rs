//! The drain of one node, as a machine of its own: events in, evictions out.
//!
//! Source: specification §2.3; the filters and answers are those of `kubectl drain`.

mod types;

pub use types::{
    Answer, Blocked, BudgetNumbers, DaemonSetRef, Dropped, EvictionId, Lookup, Owner, PodPhase, PodRef, PodSeen,
    Progress,
};
