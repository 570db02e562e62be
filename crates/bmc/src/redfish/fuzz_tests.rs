//! A Redfish BMC that answers every request with mutated documents.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dogwatch_core::power::{BmcAddress, PowerCommand};
use dogwatch_fuzz::{FuzzTarget, assert_one_line};
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};

use super::{RedfishDriver, RedfishTransport};
use crate::{Bmc as _, BmcFault, Credentials, Password, PowerReading};

const PASSWORD: &str = "sekret-16-letters";
const WITHIN: Duration = Duration::from_secs(20);
/// A status, a header line and a body; each answer of a BMC is one of them.
const ANSWERS: [&str; 8] = [
    "200\n{\"Systems\":{\"@odata.id\":\"/redfish/v1/Systems\"},\"Links\":{\"Sessions\":{\"@odata.id\":\"/redfish/v1/SessionService/Sessions\"}}}",
    "201x-auth-token: t\n{\"@odata.id\":\"/redfish/v1/SessionService/Sessions/1\"}",
    "200\n{\"Members\":[{\"@odata.id\":\"/redfish/v1/Systems/1\"}],\"Members@odata.count\":1}",
    "200etag: W/\"1\"\n{\"@odata.id\":\"/redfish/v1/Systems/1\",\"@odata.type\":\"#ComputerSystem.v1\",\"PowerState\":\"Off\",\"UUID\":\"u\",\"Actions\":{\"#ComputerSystem.Reset\":{\"target\":\"/redfish/v1/Systems/1/Actions/Reset\",\"ResetType@Redfish.AllowableValues\":[\"On\",\"ForceOff\",\"GracefulShutdown\"]}}}",
    "202location: /redfish/v1/TaskService/Tasks/1\n{\"@odata.id\":\"/redfish/v1/TaskService/Tasks/1\",\"TaskState\":\"Running\"}",
    "401\n{\"error\":{\"code\":\"Base.1.0.GeneralError\",\"message\":\"sekret-16-letters\",\"@Message.ExtendedInfo\":[{\"MessageId\":\"Base.1.0.NoValidSession\",\"Message\":\"x\"}]}}",
    "503retry-after: 3\n{}",
    "308location: /redfish/v1/Systems/1/\n",
];

/// The one field that says whether a system is off. Everything else of a document may be wrong.
#[derive(serde::Deserialize)]
struct SystemPowerState {
    #[serde(rename = "PowerState")]
    power_state: String,
}

/// Gives the answers one after the other, and the last one for ever.
struct ScriptedTransport {
    answers: Mutex<Vec<Bytes>>,
    last_body: Arc<Mutex<Bytes>>,
}

impl RedfishTransport for ScriptedTransport {
    fn send_request(
        &self,
        _: Request<Bytes>,
        _: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BmcFault>> {
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 {
            answers.remove(0)
        } else {
            answers[0].clone()
        };
        let response = parse_answer(&answer);
        *self.last_body.lock().unwrap() = response.body().clone();
        Box::pin(async move { Ok(response) })
    }
}

/// `200HEADER: VALUE\nBODY`; what cannot be sent over HTTP is left out.
fn parse_answer(answer: &Bytes) -> Response<Bytes> {
    let head = answer.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (head, body) = (
        &answer[..head],
        answer.slice((head + 1).min(answer.len())..),
    );
    let (status, header) = head.split_at(head.len().min(3));
    let status = StatusCode::from_bytes(status).unwrap_or(StatusCode::OK);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let text = String::from_utf8_lossy(header);
    if let Some((name, value)) = text.split_once(": ")
        && let (Ok(name), Ok(value)) = (
            name.parse::<http::HeaderName>(),
            value.parse::<http::HeaderValue>(),
        )
    {
        response.headers_mut().insert(name, value);
    }
    response
}

fn check_driver(runtime: &tokio::runtime::Runtime, answers: Vec<Bytes>, address: &str) {
    let last_body = Arc::default();
    let transport = Arc::new(ScriptedTransport {
        answers: Mutex::new(answers),
        last_body: Arc::clone(&last_body),
    });
    let credentials = Credentials {
        username: "admin".to_owned(),
        password: Password::new(PASSWORD),
        ca: None,
    };
    let address = BmcAddress::parse(address).unwrap();
    let driver = RedfishDriver::over_transport(transport, &address, credentials).unwrap();
    let faults = runtime.block_on(async {
        let reading = driver.read_power(WITHIN).await;
        if reading == Ok(PowerReading::Off) {
            let body = last_body.lock().unwrap().clone();
            let document: SystemPowerState = serde_json::from_slice(&body).unwrap();
            assert_eq!(document.power_state, "Off");
        }
        let command = driver.send_command(PowerCommand::Off, WITHIN).await;
        let about = driver.describe_device(WITHIN).await;
        driver.close_session(WITHIN).await;
        [reading.err(), command.err(), about.err()]
    });
    for fault in faults.into_iter().flatten() {
        assert_one_line(&fault.message);
        assert!(!fault.message.contains(PASSWORD), "{}", fault.message);
    }
}

/// Whatever a BMC answers, no call panics or lasts for ever, off is the word of the last document,
/// and no fault has a second line or the password.
#[test]
fn a_bmc_that_answers_anything_is_survived() {
    let whole = ANSWERS.join("\0");
    let ready = [ANSWERS[0], ANSWERS[1], ANSWERS[3]].join("\0");
    let listed = [ANSWERS[0], ANSWERS[1], ANSWERS[2], ANSWERS[3]].join("\0");
    let seeds = [whole.as_bytes(), ready.as_bytes(), listed.as_bytes()];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let name = "redfish-answers";
    let crate_folder = env!("CARGO_MANIFEST_DIR");
    let target = FuzzTarget {
        name,
        crate_folder,
        seeds: &seeds,
    };
    target.check_inputs(|input| {
        let answers: Vec<Bytes> = input
            .split(|byte| *byte == 0)
            .map(Bytes::copy_from_slice)
            .collect();
        for address in ["redfish://bmc/redfish/v1/Systems/1", "redfish://bmc"] {
            check_driver(&runtime, answers.clone(), address);
        }
    });
}
