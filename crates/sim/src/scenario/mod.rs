//! Runs scripts against a simulated cluster, and writes the timeline of what happened.
//!
//! **For:** behaviour that can be read and reviewed: `scenarios/NAME.txt` is a script, and
//! `NAME.out` beside it is its timeline. A bug report becomes a script.
//! **May touch:** only the embedded cluster. Needs tokio's paused time on a current-thread runtime.
//! **Promises:** the same script gives the same bytes. The promises of
//! [`crate::observer::PromiseChecks`] are checked at every change and at the end of every script,
//! even if the script does not ask for it.
//!
//! A script has one command per line; `#` begins a comment. `cluster`, `workload`, `config`,
//! `node`, `host`, `machine` and `policy` describe the setup, `start` builds it, and all later
//! commands act on it. For a line that cannot be parsed, the error lists similar forms. If
//! `each NAME=VALUES…` is the first command, the script runs once for every combination, `$NAME`
//! stands for the value, and the output has only the final results.

mod bare_metal_hosts;
mod call_rate;
mod cluster_api_objects;
mod combinations;
mod command;
mod command_parser;
mod condition;
mod condition_parser;
mod controller_process;
mod controllers;
mod decision_log;
mod end_state;
mod explanation;
mod faults;
mod fleet_view;
mod line_forms;
mod line_words;
mod lock_caller;
mod node_facts;
mod node_reboot_objects;
mod patient_run;
mod perform;
mod perturbation;
mod policy;
mod remediation_objects;
mod rollout_state;
mod run;
mod run_view;
mod scenario_cluster;
mod schedule_objects;
mod script_parser;
mod setup;
mod timeline;

pub use bare_metal_hosts::{BareMetalCommand, HostSetup};
pub use combinations::{ExpandedScript, expand_script};
pub use command::{
    ClusterDisruption, HostCommand, PrometheusChange, ScenarioSetup, ScriptCommand, ScriptLine,
    UserCommand, ViewCommand,
};
pub use condition::ScenarioCondition;
pub use controllers::ControllerCommand;
pub use decision_log::DecisionLog;
pub use end_state::EndState;
pub use faults::{FaultRules, ScriptedFault, ScriptedFaultRule};
pub use node_facts::NodeFact;
pub use patient_run::{PatientOutcome, run_patiently};
pub use perturbation::{
    CallCounts, EventChange, Perturbation, ReadCall, ReadChange, USUAL_DELAY, WriteCrash,
};
pub use remediation_objects::MachineSetup;
pub use run::{ScenarioError, ScenarioOutcome, run_script};
pub use scenario_cluster::{ScenarioBuildError, ScenarioCluster, ScenarioHost, coordinator_user};
pub use script_parser::{ParsedScript, ScriptError, parse_script};
pub use timeline::{ScenarioTimeline, TimelineLine};
