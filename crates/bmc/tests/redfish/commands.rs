//! Results of commands.

use std::time::Duration;

use dogwatch_bmc::{Bmc, BmcFault, CommandAnswer, FaultClass, PowerCommand, PowerReading};
use futures::future::join_all;
use serde_json::Value;
use tokio::time::Instant;

use crate::stub::{Step, Stub, WITHIN, error, status, with_header};

const SYSTEM: &str = "GET /redfish/v1/Systems/System.Embedded.1";
const RESET: &str = "POST /redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset";

#[tokio::test(start_paused = true)]
async fn a_refusal_of_what_is_there_already_is_no_fault() {
    use PowerCommand::{Off, On, SoftOff};
    for refusal in [
        error(
            400,
            "iLO.2.14.InvalidOperationForSystemState",
            "Power is off",
        ),
        error(409, "IDRAC.2.8.PSU501", "already powered off"),
        error(
            400,
            "Base.1.0.ActionParameterNotSupported",
            "not in this state",
        ),
        status(409),
    ] {
        for (command, power, is_there) in [
            (Off, "Off", true),
            (SoftOff, "Off", true),
            (On, "On", true),
            (Off, "On", false),
            (Off, "PoweringOff", false),
            (SoftOff, "PoweringOff", false),
            (On, "Off", false),
            (On, "PoweringOn", false),
        ] {
            let bmc = Stub::plain();
            bmc.system(|system| system["PowerState"] = power.into());
            bmc.instead(RESET, [refusal.clone()]);
            let sent = bmc.driver().send_command(command, WITHIN).await;
            assert_eq!(
                sent == Ok(CommandAnswer::AlreadyThere),
                is_there,
                "{command} {power}: {sent:?}"
            );
            let harmless = sent.as_ref().err().is_none_or(|fault| !fault.may_have_run);
            assert!(harmless, "{sent:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_no_reading_explains_stays_one() {
    let bmc = Stub::plain();
    let driver = bmc.driver();
    driver.read_power(WITHIN).await.expect("read");
    bmc.system(|system| system["PowerState"] = "Off".into());
    bmc.instead(RESET, [status(409)])
        .instead(SYSTEM, [status(500)]);
    let fault = driver
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect_err("not read");
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::Refused, false)
    );
}

#[tokio::test(start_paused = true)]
async fn a_command_says_whether_it_may_still_run() {
    let late = BmcFault::with_unknown_effect(FaultClass::TimedOut, "late");
    let dead = BmcFault::without_effect(FaultClass::Unreachable, "refused");
    let busy = error(503, "Base.1.0.ServiceTemporarilyUnavailable", "busy");
    let wait = with_header(status(503), "retry-after", "7");
    let redirect = with_header(status(307), "location", "https://other.example/x");
    for (answer, class, may_have_run) in [
        (status(400), FaultClass::Refused, false),
        (
            error(400, "Base.1.0.ActionParameterUnknown", "x"),
            FaultClass::Unsupported,
            false,
        ),
        (status(403), FaultClass::Refused, false),
        (status(404), FaultClass::NoSuchSystem, false),
        (status(405), FaultClass::Unsupported, false),
        (status(429), FaultClass::Refused, false),
        (status(501), FaultClass::Unsupported, false),
        (redirect, FaultClass::Contradiction, false),
        (busy, FaultClass::Refused, false),
        (wait, FaultClass::Refused, false),
        (status(500), FaultClass::Refused, true),
        (status(502), FaultClass::Refused, true),
        (status(503), FaultClass::Refused, true),
        (status(504), FaultClass::Refused, true),
        (Step::Hangs, FaultClass::TimedOut, true),
        (Step::Fails(late), FaultClass::TimedOut, true),
        (Step::Fails(dead), FaultClass::Unreachable, false),
    ] {
        let bmc = Stub::plain();
        bmc.instead(RESET, [answer]);
        let fault = bmc
            .driver()
            .send_command(PowerCommand::Off, WITHIN)
            .await
            .expect_err("a fault");
        assert_eq!(
            (fault.class, fault.may_have_run),
            (class, may_have_run),
            "{fault}"
        );
        assert_eq!(bmc.power(), "On", "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_bmc_names_its_time() {
    let bmc = Stub::plain();
    bmc.instead(RESET, [with_header(status(503), "retry-after", "7")]);
    let fault = bmc
        .driver()
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect_err("busy");
    assert!(
        fault.message.ends_with("503, and asks to wait 7 s"),
        "{fault}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fault_before_the_command_has_run_nothing() {
    for request in [
        "GET /redfish/v1/",
        "POST /redfish/v1/SessionService/Sessions",
        "GET /redfish/v1/Systems",
        SYSTEM,
    ] {
        for step in [
            Step::Hangs,
            status(500),
            Step::Fails(BmcFault::with_unknown_effect(
                FaultClass::Refused,
                "incomplete answer",
            )),
        ] {
            let bmc = Stub::plain();
            bmc.instead(request, [step]);
            let fault = bmc
                .driver()
                .send_command(PowerCommand::Off, WITHIN)
                .await
                .expect_err(request);
            assert!(!fault.may_have_run, "{request}: {fault}");
            assert!(!bmc.asked().iter().any(|asked| asked.starts_with(RESET)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn commands_go_out_one_after_the_other() {
    let bmc = Stub::plain();
    let driver = bmc.driver();
    driver.read_power(WITHIN).await.expect("read");
    bmc.lock().most_under_way = 0;
    let commands = [
        PowerCommand::Off,
        PowerCommand::On,
        PowerCommand::Off,
        PowerCommand::On,
    ];
    join_all(commands.map(|command| driver.send_command(command, WITHIN))).await;
    assert_eq!(bmc.lock().most_under_way, 1);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_waits_for_another_ends_in_its_own_time_and_has_not_run() {
    let bmc = Stub::plain();
    let driver = bmc.driver();
    driver.read_power(WITHIN).await.expect("read");
    bmc.instead(RESET, [Step::Hangs]);
    let short = Duration::from_secs(3);
    let start = Instant::now();
    let waits = async {
        let sent = driver.send_command(PowerCommand::On, short).await;
        (sent.expect_err("waits"), start.elapsed())
    };
    let (first, (second, took)) =
        futures::join!(driver.send_command(PowerCommand::Off, WITHIN), waits);
    assert!(first.expect_err("hangs").may_have_run);
    assert_eq!(
        (second.class, second.may_have_run, took),
        (FaultClass::TimedOut, false, short)
    );
}

#[tokio::test(start_paused = true)]
async fn a_reading_does_not_wait_for_a_command() {
    let bmc = Stub::plain();
    let driver = bmc.driver();
    driver.read_power(WITHIN).await.expect("read");
    bmc.instead(RESET, [Step::Hangs]);
    let start = Instant::now();
    let reads = async {
        let reading = driver.read_power(WITHIN).await;
        (reading, start.elapsed())
    };
    let (_, (reading, took)) =
        futures::join!(driver.send_command(PowerCommand::Off, WITHIN), reads);
    assert_eq!((reading, took), (Ok(PowerReading::On), Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_version_is_named_where_the_bmc_wants_one_and_once() {
    for wants in [412, 428] {
        let bmc = Stub::plain();
        bmc.instead(RESET, [status(wants)]);
        assert_eq!(
            bmc.driver().send_command(PowerCommand::Off, WITHIN).await,
            Ok(CommandAnswer::Accepted)
        );
        assert_eq!(bmc.lock().versions, [Some("W/\"gen-18\"".to_owned())]);
    }
    let bmc = Stub::plain();
    bmc.instead(RESET, [status(412), status(412)]);
    let fault = bmc
        .driver()
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect_err("never right");
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::Refused, false)
    );
    let bmc = Stub::plain();
    bmc.system(|system| system["@odata.etag"] = Value::Null);
    bmc.instead(RESET, [status(428)]);
    let fault = bmc
        .driver()
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect_err("has none");
    assert_eq!(fault.class, FaultClass::Refused);
    assert_eq!(bmc.power(), "On");
}

#[tokio::test(start_paused = true)]
async fn a_system_without_a_reset_action_cannot_be_told() {
    let bmc = Stub::plain();
    bmc.system(|system| system["Actions"] = Value::Null);
    let driver = bmc.driver();
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    for fault in [
        driver.describe_device(WITHIN).await.expect_err("about"),
        driver
            .send_command(PowerCommand::Off, WITHIN)
            .await
            .expect_err("off"),
    ] {
        assert_eq!(
            (fault.class, fault.may_have_run),
            (FaultClass::Unsupported, false)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_fails_where_the_power_cannot_be_told() {
    let bmc = Stub::plain();
    bmc.system(|system| system["PowerState"] = Value::Null);
    let fault = bmc
        .driver()
        .describe_device(WITHIN)
        .await
        .expect_err("no state");
    assert_eq!(fault.class, FaultClass::Contradiction);
}

#[tokio::test(start_paused = true)]
async fn an_action_that_has_moved_is_found_anew() {
    let bmc = Stub::plain();
    let driver = bmc.driver();
    driver.read_power(WITHIN).await.expect("read");
    bmc.instead(RESET, [status(404)]);
    driver
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect_err("moved");
    assert_eq!(
        driver.send_command(PowerCommand::Off, WITHIN).await,
        Ok(CommandAnswer::Accepted)
    );
    assert_eq!(bmc.power(), "Off");
}
