//! Tests of specification §3.1 to §3.3 for decisions: tables, metal3's own cases, and a model.

mod annotations;
mod ask;
mod attack;
pub(crate) mod bmc;
mod crash;
mod flags;
mod guards;
mod identity;
mod levels;
mod lies;
mod life;
mod metal3;
pub(crate) mod model;
mod now;
mod off;
mod on;
mod person;
mod readiness;
mod theirs;
mod theirs_model;
mod times;
mod witness;
pub(crate) mod world;
