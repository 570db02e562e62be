//! The dashboard: one page in a browser that shows the view of the fleet.
//!
//! **For:** `dogwatch dashboard` (on loopback, with the rights of the kubeconfig), component `web`
//! of the controller (in the cluster, read-only, actions with the viewer's own token), and
//! `dogwatch demo --dashboard`.
//! **May touch:** one listening socket, `/dev/urandom`, and what it is given: the newest
//! [`FleetView`](dogwatch_core::report::FleetView), and a [`CommandRunner`] that runs the command
//! lines of `dogwatch`.
//! **Promises:** the page and the server decide nothing: every word about the fleet is the view's or
//! a command's. Everything that the page does is a command line that it shows. No request changes
//! anything without the session of a one-time link, or a bearer token of its own.
//!
//! Serves S7 and S8. Source: specification §12.1.

mod access;
mod actions;
mod assets;
mod command;
mod command_routes;
mod connection;
mod events;
mod feed;
mod plain_page;
mod response;
mod routes;
mod server;
mod session;

pub use access::{DashboardAccess, HostNameError, HostNames};
pub use assets::{PageFile, list_page_files, page_fingerprint};
pub use command::{
    CommandOutcome, CommandOutput, CommandRights, CommandRunner, DashboardCommand, ViewerToken,
};
pub use feed::ViewReceiver;
pub use server::{DashboardConfig, DashboardError, DashboardLimits, DashboardServer};
