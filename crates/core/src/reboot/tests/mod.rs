//! The promises of specification §2.1 to §2.5, sentence by sentence; and a model world in which
//! messages are late, lost or repeated.

mod abort;
mod clocks;
mod drain_texts;
mod drain_waits;
mod draining;
mod fenced;
mod gates;
mod group;
mod holding;
mod idle;
mod kit;
mod lock;
mod methods;
mod model;
mod mute;
mod phase_events;
mod policy;
mod rebooting;
mod releases;
mod report;
mod request_label;
mod returning;
mod runs;
mod soft_reboot;
mod trigger_conditions;
mod triggers;
mod until;
