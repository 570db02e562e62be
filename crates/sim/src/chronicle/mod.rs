//! What happens in a simulated cluster, as people read it, and whether the promises held.
//!
//! **For:** scenarios, the demo and randomised runs: they all see the same changes, in the order of
//! the API server's own versions, and judge them by the same [`Checks`].
//! **May touch:** the embedded API server's watches; no client, no timer.
//! **Promises:** every change of a Node, Lease, pod, budget or Event is seen once; what is judged
//! does not depend on what Dogwatch says of itself, but on what stands on the objects.

mod checks;
mod host;
mod lines;
mod names;
mod object;
mod observer;

pub use checks::{Checks, Violation};
pub use host::host_of;
pub use lines::{Entry, LEAD, Text, lines};
pub use names::Names;
pub use object::{NodeView, PodView, budget_shortage, holder_of, text};
pub use observer::{Change, Kind, Observer};
