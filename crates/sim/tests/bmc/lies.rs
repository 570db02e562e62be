//! Faults that need more than one reading.

use std::time::Duration;

use dogwatch_bmc::{Bmc as _, CommandAnswer, FaultClass, PowerCommand, PowerReading};
use dogwatch_kubesim::machine::{MachineState, TransitionCause};
use dogwatch_sim::bmc::{BmcSpec, MakerProfile, ResetType, SessionSupport};

use crate::bench::{Bench, CALL, SECOND, after, driver};

#[tokio::test(start_paused = true)]
async fn off_can_be_said_while_processes_live() {
    let bench = Bench::new(MakerProfile::plain_profile(), true);
    bench.wrong("off-reported-early 20s once");
    assert_eq!(
        bench.send(PowerCommand::Off).await,
        Ok(CommandAnswer::Accepted)
    );
    for _ in 0..3 {
        assert_eq!(bench.read().await, Ok(PowerReading::Off));
        assert!(
            bench
                .machine
                .transition_log()
                .had_processes_at(bench.clock.now())
        );
        after(5 * SECOND).await;
    }
    let before = bench.clock.now();
    assert_eq!(
        bench
            .machine
            .wait_for_state(|state| *state == MachineState::Off)
            .await,
        MachineState::Off
    );
    assert!(bench.clock.now() > before);
    after(SECOND).await;
    assert_eq!(bench.read().await, Ok(PowerReading::Off));
    assert!(
        !bench
            .machine
            .transition_log()
            .had_processes_at(bench.clock.now())
    );
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_answer_was_lost_hits_the_host_that_was_powered_on_since() {
    let bench = Bench::new(MakerProfile::plain_profile(), true);
    bench.read().await.unwrap();
    bench.wrong("answer-lost 40s once");
    let lost = bench.send(PowerCommand::Off).await.unwrap_err();
    assert_eq!(
        (lost.class, lost.may_have_run),
        (FaultClass::TimedOut, true)
    );
    // The caller believes that the next command is the only one.
    assert_eq!(
        bench.send(PowerCommand::Off).await,
        Ok(CommandAnswer::Accepted)
    );
    after(2 * SECOND).await;
    assert_eq!(
        bench.send(PowerCommand::On).await,
        Ok(CommandAnswer::Accepted)
    );
    after(60 * SECOND).await;
    assert!(!bench.is_on(), "the late off has hit it");
    assert_eq!(bench.machine.transition_log().count_power_offs(), 2);
    let received = bench.bmc.received_commands();
    let statuses: Vec<_> = received.iter().map(|one| (one.kind, one.status)).collect();
    let expected = [
        (Some(ResetType::ForceOff), None),
        (Some(ResetType::ForceOff), Some(204)),
        (Some(ResetType::On), Some(204)),
    ];
    assert_eq!(statuses, expected);
}

#[tokio::test(start_paused = true)]
async fn a_late_command_dies_with_the_bmc_that_took_it() {
    for kill in [
        |bench: &Bench| bench.bmc.restart_bmc(),
        |bench: &Bench| bench.machine.open_outlet("strip"),
    ] {
        let bench = Bench::new(MakerProfile::plain_profile(), true);
        bench.read().await.unwrap();
        bench.wrong("answer-lost 40s once");
        bench.send(PowerCommand::Off).await.unwrap_err();
        kill(&bench);
        bench.machine.close_outlet("strip");
        after(120 * SECOND).await;
        assert!(bench.is_on());
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_strikes_twice_is_over_then() {
    let bench = Bench::new(MakerProfile::plain_profile(), true);
    bench.wrong("off-ignored 2 times");
    for is_on in [true, true, false] {
        assert_eq!(
            bench.send(PowerCommand::Off).await,
            Ok(CommandAnswer::Accepted)
        );
        after(5 * SECOND).await;
        assert_eq!(bench.is_on(), is_on);
    }
    assert_eq!(bench.bmc.active_faults(), []);
}

#[tokio::test(start_paused = true)]
async fn a_command_uses_up_no_fault_of_readings() {
    let bench = Bench::new(MakerProfile::plain_profile(), true);
    bench.read().await.unwrap();
    bench.wrong("power-state null once");
    assert_eq!(
        bench.send(PowerCommand::Off).await,
        Ok(CommandAnswer::Accepted)
    );
    assert_eq!(
        bench.read().await.unwrap_err().class,
        FaultClass::Contradiction
    );
    assert_eq!(bench.read().await, Ok(PowerReading::PoweringOff));
}

#[tokio::test(start_paused = true)]
async fn what_is_cured_is_over_at_once() {
    let bench = Bench::new(MakerProfile::plain_profile(), true);
    bench.wrong("hang");
    bench.wrong("contradicts");
    assert_eq!(bench.read().await.unwrap_err().class, FaultClass::TimedOut);
    bench.bmc.cure_all_faults();
    assert_eq!(bench.read().await, Ok(PowerReading::On));
}

#[tokio::test(start_paused = true)]
async fn contradicting_readings_alternate() {
    let bench = Bench::new(MakerProfile::plain_profile(), true);
    bench.wrong("contradicts");
    for expected in [
        PowerReading::Off,
        PowerReading::On,
        PowerReading::Off,
        PowerReading::On,
    ] {
        assert_eq!(bench.read().await, Ok(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_reading_is_the_truth_of_then() {
    let bench = Bench::new(MakerProfile::plain_profile(), false);
    bench.wrong("stale 30s");
    bench.machine.turn_on(TransitionCause::Hand);
    after(29 * SECOND).await;
    assert_eq!(
        bench.read().await,
        Ok(PowerReading::Off),
        "and it has power"
    );
    after(2 * SECOND).await;
    assert_eq!(bench.read().await, Ok(PowerReading::On));
}

#[tokio::test(start_paused = true)]
async fn an_unused_session_ends_and_the_driver_makes_another() {
    let bench = Bench::with(true, |spec| BmcSpec {
        session_life: Duration::from_secs(100),
        ..spec
    });
    bench.read().await.unwrap();
    assert_eq!(
        (
            bench.bmc.count_sessions(),
            bench.bmc.request_counters().logins
        ),
        (1, 1)
    );
    after(101 * SECOND).await;
    assert_eq!(bench.bmc.count_sessions(), 0);
    assert_eq!(bench.read().await, Ok(PowerReading::On));
    assert_eq!(bench.bmc.request_counters().logins, 2);
    bench.driver.close_session(CALL).await;
    assert_eq!(bench.bmc.count_sessions(), 0, "it says goodbye");
}

#[tokio::test(start_paused = true)]
async fn a_bmc_has_no_more_sessions_than_its_limit() {
    for (basic, is_served) in [(true, true), (false, false)] {
        let bench = Bench::with(true, |spec| BmcSpec {
            session_limit: 1,
            profile: MakerProfile {
                sessions: SessionSupport::Service { basic },
                ..MakerProfile::plain_profile()
            },
            ..spec
        });
        bench.read().await.unwrap();
        let other = driver(&bench.bmc, "sekret16");
        assert_eq!(other.read_power(CALL).await.is_ok(), is_served);
        assert_eq!(bench.bmc.count_sessions(), 1);
        bench.driver.close_session(CALL).await;
        after(61 * SECOND).await;
        assert_eq!(other.read_power(CALL).await, Ok(PowerReading::On));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_tried_seldom() {
    let bench = Bench::new(MakerProfile::plain_profile(), true);
    let driver = driver(&bench.bmc, "wrong");
    for _ in 0..20 {
        let fault = driver.read_power(CALL).await.unwrap_err();
        assert_eq!(fault.class, FaultClass::WrongCredentials);
        assert!(!fault.message.contains("wrong\""), "{fault}");
        after(SECOND).await;
    }
    assert_eq!(bench.bmc.request_counters().unauthorized, 1);
}

#[tokio::test(start_paused = true)]
async fn a_poll_on_an_open_session_is_one_request() {
    let bench = Bench::new(MakerProfile::plain_profile(), true);
    bench.read().await.unwrap();
    let before = bench.bmc.request_counters();
    for _ in 0..60 {
        bench.read().await.unwrap();
        after(60 * SECOND).await;
    }
    let after = bench.bmc.request_counters();
    assert_eq!(after.requests - before.requests, 60);
    assert_eq!(after.reads - before.reads, 60);
}
