//! The three ways to patch that know nothing of owners: merge, JSON and strategic merge.

pub(crate) mod json;
pub(crate) mod merge;
pub(crate) mod strategic;
