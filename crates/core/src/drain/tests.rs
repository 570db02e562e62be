//! The promises of the drain, by name.
