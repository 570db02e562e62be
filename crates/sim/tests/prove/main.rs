//! `cargo xtask prove`: every perturbation of every scenario, and random runs. Without
//! an option a small seeded sample of both, also in `cargo xtask test`.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod campaign;
mod perturbations;
mod random;
