//! The verbs, each in the order in which the real server checks things.

pub(super) mod binding;
pub(super) mod body;
pub(super) mod create;
pub(super) mod delete;
pub(super) mod eviction;
pub(super) mod list;
pub(super) mod patch;
pub(super) mod read;
pub(super) mod update;
pub(super) mod watching;
