//! The patch types without field owners: JSON, merge and strategic merge.

pub(crate) mod json;
pub(crate) mod merge;
pub(crate) mod strategic;
