//! Specification §4.1, §4.2 and §4.4: the table row by row, the links, the release permit, the
//! guards, upstream's own script, requests, and a model of everything with the real power decision.

mod claims;
mod clear;
mod cluster_links;
mod confirming;
mod context;
mod decisions;
mod doubtful_backup;
mod entitlement;
mod guards;
mod kit;
mod leftovers;
mod legacy;
mod links;
mod lost_lease;
mod marked_again;
mod model;
mod prepare;
mod request;
mod restore;
mod restore_steps;
mod script;
mod silence;
mod table;
mod town;
mod two_clusters;
