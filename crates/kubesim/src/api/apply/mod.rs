//! Server-side apply: structured merge with an owner for every field.
//!
//! It follows the behaviour of `sigs.k8s.io/structured-merge-diff` v6, which Kubernetes 1.36 uses:
//! an applier owns the fields that it sends; an applier that would change a field of another one is
//! refused; a field that an applier no longer sends is removed, unless somebody else owns it too.

pub(crate) mod applying;
mod compare;
pub(crate) mod field_set;
pub(crate) mod managed_fields;
mod merge;
