//! Leading: at most one process acts for the whole cluster at a time.

mod handle;

pub use handle::Leadership;
