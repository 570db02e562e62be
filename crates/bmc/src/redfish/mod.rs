//! Redfish.

mod exchange;

pub use exchange::Exchange;
