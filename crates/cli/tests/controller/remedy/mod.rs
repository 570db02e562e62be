//! Remediation by real processes over a network, with the shipped rights and policies.

pub mod form;
mod hand;
mod over_ipmi;
pub mod stage;

use rustix::process::Signal;
use serde_json::Value;

use self::form::{Form, LETS_GO};
use self::stage::{LEADS, Stage, simulated_bmc};
use crate::metal::PASSWORD;
use crate::support::{Controller, eventually};

macro_rules! killed_at_every_step {
    ($($name:ident: $form:expr,)*) => { $(
        #[tokio::test]
        async fn $name() {
            killed_at_every_step($form).await;
        }
    )* };
}

killed_at_every_step! {
    every_leader_killed_at_the_next_step_of_a_remediation_it_is_one_power_off_and_the_node_back: Form::Machine,
    every_leader_killed_at_the_next_step_of_a_marked_node_it_is_one_power_off_and_the_node_back: Form::Node,
    every_leader_killed_at_the_next_step_of_a_request_it_is_one_power_off_and_the_node_back: Form::Delete,
    every_leader_killed_at_the_next_step_of_a_request_that_taints_it_is_one_power_off_and_one_taint: Form::Taint,
}

/// A leader logs each step right before its call, so some leaders die before the call has an
/// effect, and some after it.
async fn killed_at_every_step(form: Form) {
    let stage = Stage::new(form).await;
    let simulated = simulated_bmc(&stage).await;
    stage.put_host(&simulated.address).await;
    let mut taints = Vec::new();
    let mut leader = tokio::select! {
        leader = remediated(&stage, form) => leader,
        () = stage.watch_taint(|since| taints.push(since)) => unreachable!("it has no end"),
    };
    let log = simulated.bmc.machine().transition_log();
    assert_eq!(
        (log.count_power_offs(), log.count_power_ons()),
        (1, 1),
        "{log}"
    );
    stage.nothing_was_refused().await;
    let is_tainted: Vec<bool> = taints.iter().map(Option::is_some).collect();
    if form == Form::Taint {
        assert_eq!(stage.deletions().await, 0);
        assert_eq!(is_tainted, [true, false], "{taints:?}");
    } else {
        assert_eq!(stage.deletions().await, 1);
        assert!(taints.is_empty(), "{taints:?}");
    }
    assert!(!leader.log().contains(PASSWORD));
    leader.signal(Signal::TERM);
    assert!(leader.ended().await.success());
}

/// Waits until nothing of the remediation is left; returns the last leader.
async fn remediated(stage: &Stage, form: Form) -> Controller {
    let mut leader = stage.controller();
    leader.until(LEADS, 1).await;
    eventually(|| stage.is_controlled()).await;
    let old = stage.node().await;
    stage.ask().await;
    // Each leader is killed at the first step at which none was killed yet.
    let mut left = form.steps();
    loop {
        let is_left = |line: &Value| left.iter().any(|step| step.is_said(line));
        tokio::select! {
            biased;
            said = leader.until_one(is_left) => {
                leader = followed(stage, leader, &said).await;
                left.retain(|step| !step.is_said(&said));
            }
            () = eventually(|| stage.is_over(&old)) => break,
        }
    }
    if !form.is_request() {
        return leader;
    }
    // The health check deletes its request.
    stage.delete_request().await;
    let said = leader.until_one(|line| line["message"] == LETS_GO).await;
    let leader = followed(stage, leader, &said).await;
    eventually(|| stage.request_is_gone()).await;
    leader
}

/// Kills the leader and starts another, which leads at once.
async fn followed(stage: &Stage, mut leader: Controller, said: &Value) -> Controller {
    leader.signal(Signal::KILL);
    leader.ended().await;
    eprintln!("killed as it {} {}", said["message"], said["command"]);
    let next = stage.controller();
    stage.free_the_lead().await;
    next.until(LEADS, 1).await;
    next
}
