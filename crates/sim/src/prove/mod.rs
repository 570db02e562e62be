//! Perturbed and random runs of scripts, and what they prove.
//!
//! **For:** `cargo xtask prove`. A perturbed run is a scenario in which one event, read or write of
//! one process goes wrong. A random run is a script that was made from a seed. A script that fails
//! is made as short as possible.
//! **May touch:** only the embedded cluster, through [`crate::scenario`].
//! **Promises:** the same script and the same seed give the same verdict.

mod minimal_script;
mod perturbed_run;
mod random_script;

pub use minimal_script::find_minimal_script;
pub use perturbed_run::{
    BaseRun, PerturbationVerdict, ProofCase, choose_sample, insert_after_start, judge_perturbation,
    run_base,
};
pub use random_script::{random_script, run_random_script};
