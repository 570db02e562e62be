//! Tests the Redfish driver with stub BMCs that serve documents, under paused time.

mod commands;
mod finding;
mod logins;
mod makers;
mod stub;
mod tasks;
