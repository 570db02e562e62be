//! The reboot lock over HTTP: the lock API and FleetLock. Source: specification §2.7.
//!
//! `service` is what both protocols ask for; `http` (the protocols) and `engine` (the lock itself)
//! stand on its two sides.

pub mod engine;
pub mod http;
pub mod service;
