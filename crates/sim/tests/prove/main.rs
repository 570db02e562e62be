//! `cargo xtask prove`: every perturbation of every scenario, and random runs. Without
//! an option a seeded sample of both. `cargo xtask test` leaves this program out.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod campaign;
mod perturbations;
mod random;
