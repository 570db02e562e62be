//! Drain rules against the real controllers of Deployments, ReplicaSets, Jobs and budgets. Only the
//! scheduler and the kubelets are played here.

mod machine_rules_rights;
mod rights;
mod roll_first;
mod wait_completed;
mod workload;
