//! The promises of specification §2.1 to §2.5, sentence by sentence; and a model world in which
//! messages are late, lost or repeated.

mod abort;
mod clocks;
mod draining;
mod fenced;
mod gates;
mod group;
mod kit;
mod lock;
mod model;
mod policy;
mod rebooting;
mod report;
mod returning;
mod runs;
mod triggers;
mod until;
