//! Specification §4.2: requests, in the town with the real power decision.

pub(super) mod desk;

mod bad;
mod cancel;
mod flow;
mod healthy_again;
mod person;
mod random;
mod retry;
mod steps;
mod upstream;
