//! The Redfish driver over BMCs of documents, under paused time.

mod commands;
mod finding;
mod logins;
mod makers;
mod stub;
mod tasks;
