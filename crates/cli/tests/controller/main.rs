//! Runs `dogwatch controller` as processes against the real API server.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod alerts;
mod leading;
mod lock;
mod metal;
mod policies;
mod power;
mod recount;
mod remedy;
mod removal;
mod rights;
mod support;
mod web;
