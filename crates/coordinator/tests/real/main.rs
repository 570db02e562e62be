//! The coordinator as it is shipped, against a real API server: several processes at once, each with
//! files, a reboot command and a simulated kubelet of its own.

mod support;

mod admission;
mod commands;
mod drain;
mod gates;
mod happy;
mod idle;
mod interrupted;
mod kubelet;
mod lock;
mod outage;
mod rights;
mod start;
mod triggers;
mod unprivileged;
