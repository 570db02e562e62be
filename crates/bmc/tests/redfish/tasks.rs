//! Commands that the BMC completes after its answer.

use std::time::Duration;

use dogwatch_bmc::{Bmc, BmcFault, CommandAnswer, FaultClass, PowerCommand};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::stub::{Step, Stub, WITHIN, document, status, with_header};

const RESET: &str = "POST /redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset";
const MONITOR: &str = "/redfish/v1/TaskService/TaskMonitors/7";

fn task(state: &str) -> Value {
    json!({"@odata.id": "/redfish/v1/TaskService/Tasks/7", "TaskState": state})
}

fn accepted() -> Step {
    with_header(status(202), "location", MONITOR)
}

/// A stub that answers a reset with `answer`, and polls of its task with `looks`.
fn bmc(answer: Step, looks: impl IntoIterator<Item = Step>) -> Stub {
    let bmc = Stub::plain();
    bmc.instead(RESET, [answer]);
    bmc.instead(&format!("GET {MONITOR}"), looks);
    bmc
}

fn looks(bmc: &Stub) -> usize {
    let is_look = |asked: &&String| asked.contains("/TaskService/");
    bmc.asked().iter().filter(is_look).count()
}

#[tokio::test(start_paused = true)]
async fn a_task_is_waited_for_until_it_has_ended() {
    let under = || Step::Answer(202, Vec::new(), task("Running"));
    for end in [status(204), status(200), document(task("Completed"))] {
        let bmc = bmc(
            accepted(),
            [under(), document(task("Pending")), status(503), end],
        );
        let sent = bmc.driver().send_command(PowerCommand::Off, WITHIN).await;
        assert_eq!((sent, looks(&bmc)), (Ok(CommandAnswer::Accepted), 4));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_stands_in_the_answer_is_a_task_as_well() {
    let answers = |state: &str, status| Step::Answer(status, Vec::new(), task(state));
    let done = bmc(answers("Completed", 200), []);
    assert_eq!(
        done.driver().send_command(PowerCommand::Off, WITHIN).await,
        Ok(CommandAnswer::Accepted)
    );
    let failed = bmc(answers("Exception", 200), []);
    failed
        .driver()
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect_err("failed");
    let under = bmc(answers("Running", 202), []);
    under.instead(
        "GET /redfish/v1/TaskService/Tasks/7",
        [document(task("Completed"))],
    );
    assert_eq!(
        under.driver().send_command(PowerCommand::Off, WITHIN).await,
        Ok(CommandAnswer::Accepted)
    );
    assert_eq!(looks(&under), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_failed_is_over() {
    for state in ["Exception", "Killed", "Cancelled"] {
        let bmc = bmc(accepted(), [document(task(state))]);
        let fault = bmc
            .driver()
            .send_command(PowerCommand::Off, WITHIN)
            .await
            .expect_err(state);
        let message = format!("the BMC's task for the command ended as {state}");
        assert_eq!(
            fault,
            BmcFault::without_effect(FaultClass::Refused, message)
        );
    }
    let bmc = bmc(accepted(), [status(409)]);
    let fault = bmc
        .driver()
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect_err("refused in the end");
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::Refused, false)
    );
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_is_refused_says_nothing_about_the_command() {
    let busy = bmc(
        accepted(),
        [status(429), status(408), document(task("Completed"))],
    );
    let sent = busy.driver().send_command(PowerCommand::On, WITHIN).await;
    assert_eq!((sent, looks(&busy)), (Ok(CommandAnswer::Accepted), 3));
    for code in [403, 302] {
        let bmc = bmc(accepted(), [status(code)]);
        let fault = bmc
            .driver()
            .send_command(PowerCommand::On, WITHIN)
            .await
            .expect_err("the task cannot be read");
        assert!(fault.may_have_run, "{code}: {fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_without_an_end_may_still_run() {
    let forever = std::iter::repeat_n(document(task("Running")), 1_000);
    let start = Instant::now();
    let never = bmc(accepted(), forever);
    let fault = never
        .driver()
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect_err("no end");
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::TimedOut, true)
    );
    assert_eq!(start.elapsed(), WITHIN);
    assert!(looks(&never) < 10);
    let hangs = bmc(accepted(), [Step::Hangs]);
    let fault = hangs
        .driver()
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect_err("no answer");
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::TimedOut, true)
    );
}

#[tokio::test(start_paused = true)]
async fn a_202_that_leads_to_no_task_is_an_answer_whose_end_is_unknown() {
    let elsewhere = with_header(status(202), "location", "https://other.example/task");
    for (answer, look) in [
        (accepted(), status(404)),
        (accepted(), status(410)),
        (elsewhere, status(200)),
        (status(202), status(200)),
    ] {
        let bmc = bmc(answer, [look]);
        let sent = bmc.driver().send_command(PowerCommand::Off, WITHIN).await;
        assert_eq!(sent, Ok(CommandAnswer::AcceptedWithoutTask));
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_meanwhile_does_not_lose_the_task() {
    let bmc = bmc(accepted(), [status(401), document(task("Completed"))]);
    let sent = bmc
        .driver()
        .send_command(PowerCommand::Off, Duration::from_secs(5))
        .await;
    assert_eq!(sent, Ok(CommandAnswer::Accepted));
    assert_eq!(bmc.open_sessions(), 2);
}
