//! Specification §3.1 to §3.3 as far as it is decided here: tables, metal3's own cases, and a model.

mod annotations;
mod ask;
mod attack;
mod bmc;
mod crash;
mod guards;
mod levels;
mod lies;
mod metal3;
mod model;
mod off;
mod on;
mod readiness;
mod times;
mod world;
