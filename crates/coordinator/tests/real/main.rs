//! Runs the shipped coordinator against a real API server: several processes at once, each with its
//! own files, reboot command and simulated kubelet.

mod support;

mod admission;
mod commands;
mod conditions;
mod drain;
mod gates;
mod happy;
mod idle;
mod interrupted;
mod kubelet;
mod lock;
mod outage;
mod readiness;
mod rights;
mod rollout;
mod soft_reboot;
mod start;
mod triggers;
mod unprivileged;
