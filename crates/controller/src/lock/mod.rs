//! The reboot lock over HTTP: the lock API and FleetLock. Source: specification §2.7.
//!
//! `service` is the interface between `http` (the protocols) and `engine` (the lock itself).

pub mod engine;
pub mod http;
pub mod service;
