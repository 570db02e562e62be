//! Sessions, basic authentication, and protection against account lock-out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dogwatch_bmc::redfish::{RedfishDriver, RedfishTransport};
use dogwatch_bmc::{Bmc, BmcFault, Credentials, FaultClass, Password, PowerCommand, PowerReading};
use dogwatch_core::power::BmcAddress;
use futures::future::{BoxFuture, join_all};
use http::{Request, Response};
use serde_json::{Value, json};
use tokio::time::advance;

use crate::stub::{BASIC, PASSWORD, ROOT, Step, Stub, USER, WITHIN, document, error, status};

const SYSTEM: &str = "/redfish/v1/Systems/System.Embedded.1";
const NAMED: &str = "redfish://bmc.example/redfish/v1/Systems/System.Embedded.1";
const LOGIN: &str = "POST /redfish/v1/SessionService/Sessions";

fn get(path: &str) -> String {
    format!("GET {path}")
}

fn logins(asked: &[String]) -> usize {
    asked.iter().filter(|asked| asked.contains(LOGIN)).count()
}

#[tokio::test(start_paused = true)]
async fn a_poll_is_one_request_once_a_session_is_open() {
    let bmc = Stub::plain();
    let driver = bmc.driver_at(NAMED);
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    assert_eq!(bmc.asked(), [get(ROOT), LOGIN.to_owned(), get(SYSTEM)]);
    for _ in 0..3 {
        assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
        assert_eq!(bmc.asked(), [get(SYSTEM)]);
    }
    driver
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect("off");
    assert_eq!(
        bmc.asked(),
        [format!(
            "POST {SYSTEM}/Actions/ComputerSystem.Reset ForceOff"
        )]
    );
    driver.describe_device(WITHIN).await.expect("about");
    assert_eq!(bmc.asked(), [get(SYSTEM)]);
}

#[tokio::test(start_paused = true)]
async fn a_system_that_is_not_named_costs_one_request_more_once() {
    let bmc = Stub::plain();
    let driver = bmc.driver();
    driver.read_power(WITHIN).await.expect("read");
    assert_eq!(bmc.asked().len(), 4);
    driver.read_power(WITHIN).await.expect("read");
    assert_eq!(bmc.asked(), [get(SYSTEM)]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ended_is_made_anew_and_the_command_is_sent_once() {
    let bmc = Stub::plain();
    let driver = bmc.driver_at(NAMED);
    driver.read_power(WITHIN).await.expect("read");
    for call in ["read", "off"] {
        bmc.end_sessions();
        bmc.asked();
        match call {
            "read" => assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On)),
            _ => drop(
                driver
                    .send_command(PowerCommand::Off, WITHIN)
                    .await
                    .expect("off"),
            ),
        }
        let asked = bmc.asked();
        assert_eq!(asked.len(), 3, "{asked:?}");
        assert_eq!(asked[0], format!("!{}", asked[2]));
        assert_eq!(asked[1], LOGIN);
    }
}

/// HPE's answer instead of 401.
#[tokio::test(start_paused = true)]
async fn a_403_without_a_valid_session_is_an_ended_one() {
    let bmc = Stub::plain();
    let driver = bmc.driver_at(NAMED);
    driver.read_power(WITHIN).await.expect("read");
    bmc.instead(
        &get(SYSTEM),
        [error(403, "Base.1.4.NoValidSession", "no session")],
    );
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    assert_eq!(logins(&bmc.asked()), 2);
    bmc.instead(
        &get(SYSTEM),
        [error(403, "Base.1.4.InsufficientPrivilege", "no")],
    );
    let fault = driver.read_power(WITHIN).await.expect_err("no right");
    assert_eq!(fault.class, FaultClass::Refused);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_not_brought_again_for_a_while_that_grows() {
    let bmc = Stub::plain();
    let driver = bmc.driver_with(NAMED, "another");
    let mut at = Vec::new();
    for second in 0..1_000_u64 {
        let fault = driver
            .read_power(WITHIN)
            .await
            .expect_err("a wrong password");
        assert_eq!(
            (fault.class, fault.may_have_run),
            (FaultClass::WrongCredentials, false)
        );
        let asked = bmc.asked();
        if asked.iter().any(|asked| asked.starts_with('!')) {
            at.push(second);
        }
        advance(Duration::from_secs(1)).await;
    }
    assert_eq!(at, [0, 30, 90, 210, 450, 750]);
}

#[tokio::test(start_paused = true)]
async fn a_command_with_a_wrong_password_is_known_not_to_have_run() {
    let bmc = Stub::plain();
    let driver = bmc.driver_with(NAMED, "another");
    let fault = driver
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect_err("a wrong password");
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::WrongCredentials, false)
    );
    assert_eq!(bmc.power(), "On");
}

#[tokio::test(start_paused = true)]
async fn calls_at_once_bring_a_password_once() {
    for password in [PASSWORD, "another"] {
        let bmc = Stub::plain();
        let driver = bmc.driver_with(NAMED, password);
        join_all((0..5).map(|_| driver.read_power(WITHIN))).await;
        assert_eq!(logins(&bmc.asked()), 1, "{password}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_that_five_calls_find_is_made_anew_once() {
    let bmc = Stub::plain();
    let driver = bmc.driver_at(NAMED);
    driver.read_power(WITHIN).await.expect("read");
    bmc.end_sessions();
    bmc.asked();
    let readings = join_all((0..5).map(|_| driver.read_power(WITHIN))).await;
    assert!(
        readings
            .iter()
            .all(|reading| *reading == Ok(PowerReading::On)),
        "{readings:?}"
    );
    assert_eq!(logins(&bmc.asked()), 1);
}

fn without_sessions(bmc: &Stub) {
    let mut state = bmc.lock();
    let root = state.documents.get_mut(ROOT).expect("a root");
    root["Links"] = Value::Null;
    root.as_object_mut()
        .expect("an object")
        .remove("SessionService");
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_names_no_sessions_is_asked_by_basic_authentication() {
    let bmc = Stub::plain();
    without_sessions(&bmc);
    let driver = bmc.driver_at(NAMED);
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    assert_eq!(logins(&bmc.asked()), 0);
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    assert_eq!(bmc.asked(), [get(SYSTEM)]);
    driver.close_session(WITHIN).await;
    assert!(bmc.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_by_basic_authentication_is_brought_once_as_well() {
    let bmc = Stub::plain();
    without_sessions(&bmc);
    let driver = bmc.driver_with(NAMED, "another");
    let readings = join_all((0..5).map(|_| driver.read_power(WITHIN))).await;
    assert!(readings.iter().all(Result::is_err));
    let asked = bmc.asked();
    assert_eq!(
        asked.iter().filter(|asked| asked.starts_with('!')).count(),
        1,
        "{asked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_password_that_was_changed_meanwhile_is_refused_once_however_many_find_it() {
    let bmc = Stub::plain();
    without_sessions(&bmc);
    let driver = bmc.driver_at(NAMED);
    driver.read_power(WITHIN).await.expect("read");
    bmc.instead(&get(SYSTEM), std::iter::repeat_n(status(401), 5));
    let readings = join_all((0..5).map(|_| driver.read_power(WITHIN))).await;
    assert!(readings.iter().all(Result::is_err), "{readings:?}");
    bmc.asked();
    driver.read_power(WITHIN).await.expect_err("it waits");
    assert!(bmc.asked().is_empty());
    advance(Duration::from_secs(31)).await;
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
}

/// Sushy does this, against the standard.
#[tokio::test(start_paused = true)]
async fn a_root_that_wants_a_login_gets_one() {
    let bmc = Stub::plain();
    bmc.instead(&get(ROOT), [status(401)]);
    let driver = bmc.driver_at(NAMED);
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    assert_eq!(logins(&bmc.asked()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_service_that_is_not_there_after_all_is_done_without() {
    for answer in [404, 405, 501, 204] {
        let bmc = Stub::plain();
        bmc.instead(LOGIN, [status(answer)]);
        let driver = bmc.driver_at(NAMED);
        assert_eq!(
            driver.read_power(WITHIN).await,
            Ok(PowerReading::On),
            "{answer}"
        );
        assert_eq!(
            driver.read_power(WITHIN).await,
            Ok(PowerReading::On),
            "{answer}"
        );
        assert_eq!(logins(&bmc.asked()), 1, "{answer}");
    }
}

/// A session service that is switched off may refuse everybody. The driver must not send a wrong
/// password twice at once because of it.
#[tokio::test(start_paused = true)]
async fn a_session_service_that_refuses_everybody_is_gone_round_at_the_next_time() {
    let bmc = Stub::plain();
    bmc.instead(LOGIN, [status(401)]);
    let driver = bmc.driver_at(NAMED);
    let fault = driver.read_power(WITHIN).await.expect_err("refused");
    assert_eq!(fault.class, FaultClass::WrongCredentials);
    advance(Duration::from_secs(31)).await;
    bmc.asked();
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    assert_eq!(logins(&bmc.asked()), 0);
}

#[tokio::test(start_paused = true)]
async fn while_all_sessions_are_taken_basic_authentication_stands_in() {
    let bmc = Stub::plain();
    bmc.instead(
        LOGIN,
        [error(400, "Base.1.8.SessionLimitExceeded", "too many")],
    );
    let driver = bmc.driver_at(NAMED);
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    assert_eq!(logins(&bmc.asked()), 1);
    advance(Duration::from_mins(4)).await;
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    assert_eq!(logins(&bmc.asked()), 0);
    advance(Duration::from_mins(2)).await;
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    assert_eq!((logins(&bmc.asked()), bmc.open_sessions()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_closed_leaves_no_session() {
    let bmc = Stub::plain();
    let driver = bmc.driver_at(NAMED);
    driver.read_power(WITHIN).await.expect("read");
    assert_eq!(bmc.open_sessions(), 1);
    driver.close_session(WITHIN).await;
    assert_eq!(bmc.open_sessions(), 0);
    bmc.asked();
    driver.close_session(WITHIN).await;
    assert!(bmc.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_login_that_hangs_ends_in_time_and_has_sent_no_command() {
    let bmc = Stub::plain();
    bmc.instead(LOGIN, [Step::Hangs]);
    let driver = bmc.driver_at(NAMED);
    let start = tokio::time::Instant::now();
    let (first, second) = futures::join!(
        driver.send_command(PowerCommand::Off, WITHIN),
        driver.read_power(WITHIN)
    );
    assert_eq!(start.elapsed(), WITHIN);
    let first = first.expect_err("hangs");
    assert_eq!(
        (first.class, first.may_have_run),
        (FaultClass::TimedOut, false)
    );
    assert_eq!(
        second.expect_err("waits for the login").class,
        FaultClass::TimedOut
    );
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_an_ended_session_refused_has_not_run_though_the_login_after_it_fails() {
    for step in [Step::Hangs, status(500)] {
        let bmc = Stub::plain();
        let driver = bmc.driver_at(NAMED);
        driver.read_power(WITHIN).await.expect("read");
        bmc.end_sessions();
        bmc.instead(LOGIN, [step]);
        let fault = driver.send_command(PowerCommand::Off, WITHIN).await;
        assert!(!fault.expect_err("no login").may_have_run);
        assert_eq!(bmc.power(), "On");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_bmc_repeats_of_our_secrets_is_shown_nowhere() {
    let secrets = [PASSWORD, "token-1", BASIC.trim_start_matches("Basic ")];
    let echo = format!("you said {} and\n{}", secrets.join(", "), "x".repeat(1_000));
    let post = format!("POST {SYSTEM}/Actions/ComputerSystem.Reset");
    let odd_state =
        json!({"@odata.type": "#ComputerSystem.v1_0_0.ComputerSystem", "PowerState": echo});
    let two = json!({"Members": [{"@odata.id": echo}, {"@odata.id": echo}]});
    for (request, step) in [
        (get(SYSTEM), error(500, "Base.1.0.InternalError", &echo)),
        (get(SYSTEM), document(odd_state)),
        (
            get(SYSTEM),
            document(Value::String(format!("{{\"PowerState\": {echo}"))),
        ),
        (get("/redfish/v1/Systems"), document(two)),
        (LOGIN.to_owned(), error(500, &echo, &echo)),
        (post, error(400, "Base.1.0.PropertyValueFormatError", &echo)),
    ] {
        let bmc = Stub::plain();
        let driver = bmc.driver();
        bmc.instead(&request, [step]);
        let read = driver.read_power(WITHIN).await.err();
        let sent = driver.send_command(PowerCommand::Off, WITHIN).await.err();
        let faults = [read, sent].map(|fault| fault.map(|fault| fault.message));
        let shown = format!("{faults:?}");
        assert!(faults.iter().any(Option::is_some), "{request}");
        // Before a login there is no token.
        let made = |secret: &&&str| !(request == LOGIN && secret.starts_with("token"));
        let mut secrets = secrets.iter().filter(made);
        let leaked = secrets.find(|secret| shown.contains(**secret));
        assert_eq!(leaked, None, "{request}: {shown}");
        let longest = faults.iter().flatten().map(String::len).max();
        assert!(longest < Some(400), "{request}");
    }
}

/// Records what `Debug` shows of the headers.
struct Watched(Stub, Mutex<Vec<String>>);

impl RedfishTransport for Watched {
    fn send_request(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BmcFault>> {
        let shown = format!("{:?}", request.headers());
        self.1.lock().expect("a lock").push(shown);
        self.0.send_request(request, within)
    }
}

#[tokio::test(start_paused = true)]
async fn debug_of_a_request_shows_no_secret() {
    let by_session = Stub::plain();
    let by_basic = Stub::plain();
    without_sessions(&by_basic);
    for bmc in [by_session, by_basic] {
        let watched = Arc::new(Watched(bmc, Mutex::default()));
        let credentials = Credentials {
            username: USER.into(),
            password: Password::new(PASSWORD),
            ca: None,
        };
        let address = BmcAddress::parse(NAMED).expect("an address");
        let driver =
            RedfishDriver::over_transport(watched.clone(), &address, credentials).expect("Redfish");
        driver.read_power(WITHIN).await.expect("read");
        let shown = watched.1.lock().expect("a lock").join(" ");
        assert!(shown.contains("Sensitive"), "{shown}");
        assert!(
            !shown.contains("token-1") && !shown.contains(BASIC),
            "{shown}"
        );
    }
}
