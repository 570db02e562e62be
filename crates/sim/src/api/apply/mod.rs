//! Server-side apply: structured merge with an owner for every field.
//!
//! Written after the behaviour of `sigs.k8s.io/structured-merge-diff` v6, which Kubernetes 1.36
//! uses: an applier owns what it sends, another applier that would change it is refused, and what
//! an applier no longer sends goes, unless somebody else owns it too.

pub(crate) mod applying;
mod compare;
pub(crate) mod managed;
mod merge;
pub(crate) mod paths;
