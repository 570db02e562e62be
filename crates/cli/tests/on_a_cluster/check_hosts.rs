//! `dogwatch check hosts` probes BMCs with the real drivers, and changes nothing.

use std::net::Ipv4Addr;
use std::sync::Arc;

use dogwatch_kubesim::api::ApiVerb;
use dogwatch_kubesim::clock::{ClusterClock, TokioClock};
use dogwatch_kubesim::machine::{MachineSpec, SimMachine};
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_sim::bmc::{BmcSpec, SimBmc, http_server};
use dogwatch_testbed::ClosedPort;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::hosts::{conditions, host, path, with_hosts};
use super::stage::{Stage, ended, shown};

const PASSWORD: &str = "sekret16";

/// A simulated BMC, served on a port until this is dropped.
struct Served {
    bmc: SimBmc,
    address: String,
    _stop: tokio::sync::oneshot::Sender<()>,
}

fn served() -> Served {
    let (told, tells) = std::sync::mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let clock: Arc<dyn ClusterClock> =
                Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH));
            let machine = SimMachine::powered_off(MachineSpec::new(
                "m",
                SimulationSeed(1),
                Arc::clone(&clock),
            ));
            let bmc = SimBmc::for_machine(BmcSpec::new("m", SimulationSeed(1), clock), machine);
            let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .await
                .unwrap();
            let at = listener.local_addr().unwrap();
            let address = format!("redfish+http://{at}{}", bmc.system_path());
            told.send((bmc.clone(), address)).unwrap();
            tokio::select! {
                () = http_server::serve_bmc(listener, bmc) => {}
                _ = stopped => {}
            }
        });
    });
    let (bmc, address) = tells.recv().unwrap();
    Served {
        bmc,
        address,
        _stop: stop,
    }
}

fn secret(stage: &Stage, name: &str, fields: &Value) {
    stage.post(
        "/api/v1/namespaces/metal/secrets",
        &json!({ "metadata": { "name": name }, "data": fields }),
    );
}

/// Valid credentials in the form of a Secret: `admin` and the password.
fn right() -> Value {
    json!({ "username": "YWRtaW4=", "password": "c2VrcmV0MTY=" })
}

fn with_bmc(stage: &Stage, name: &str, address: &str, credentials: &str) {
    let bmc = json!({ "spec": { "bmc": { "address": address, "credentialsName": credentials } } });
    host(stage, "metal", name, &bmc);
}

fn rows(json: &str) -> Vec<Value> {
    serde_json::from_str::<Value>(json)
        .unwrap()
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn a_host_whose_bmc_answers_is_well_and_nothing_of_it_is_changed() {
    let (stage, served) = (with_hosts(), served());
    secret(&stage, "bmc", &right());
    with_bmc(&stage, "h1", &served.address, "bmc");
    let before = stage.get(&path("metal", "h1"));
    let text = shown(stage.dogwatch(&["check", "hosts", "-o", "wide"]));
    assert!(
        text.contains("metal/h1   0       redfish+http://127.0.0.1:"),
        "{text}"
    );
    assert!(
        text.contains("Checked: the device answers and supports the commands"),
        "{text}"
    );
    let (_, json, _) = ended(stage.dogwatch(&["check", "hosts", "metal/h1", "-o", "json"]));
    let row = &rows(&json)[0];
    assert_eq!(
        (&row["works"], &row["power"]),
        (&json!("yes"), &json!("Off")),
        "{row}"
    );
    assert_eq!(stage.get(&path("metal", "h1")), before);
    assert!(
        served.bmc.received_commands().is_empty(),
        "no command was sent"
    );
    assert_eq!(served.bmc.count_sessions(), 0, "no session is left behind");
}

/// Checks one host: reason, next step, exit code, and no password in the output.
fn fails(stage: &Stage, name: &str, reason: &str, says: &str) {
    let named = format!("metal/{name}");
    let (code, text, errors) = ended(stage.dogwatch(&["check", "hosts", &named]));
    assert_eq!(code, 6, "{reason}: {text}{errors}");
    assert!(
        text.contains(reason) && text.contains(says),
        "{reason}: {text}"
    );
    assert!(
        errors.contains("power control does not work now for 1 of 1 host"),
        "{errors}"
    );
    for secret in ["bm90LWl0", "not-it", PASSWORD] {
        assert!(
            !format!("{text}{errors}").contains(secret),
            "{text}{errors}"
        );
    }
}

#[test]
fn each_trouble_has_its_class_and_its_next_step_and_ends_with_6() {
    let (stage, served) = (with_hosts(), served());
    secret(&stage, "bmc", &right());
    secret(
        &stage,
        "wrong",
        &json!({ "username": "YWRtaW4=", "password": "bm90LWl0" }),
    );
    secret(&stage, "half", &json!({ "username": "YWRtaW4=" }));
    let closed = ClosedPort::new().unwrap();
    let (nobody, other) = (
        format!("redfish+http://127.0.0.1:{}", closed.port_number().unwrap()),
        "redfish+http://127.0.0.1:1/redfish/v1/Systems/",
    );
    let rows = [
        (
            "a",
            served.address.as_str(),
            "wrong",
            "WrongCredentials",
            "correct username and password",
        ),
        ("b", &nobody, "bmc", "Unreachable", "check the address"),
        (
            "c",
            &format!("{other}c"),
            "half",
            "SecretIncomplete",
            "has no password",
        ),
        (
            "d",
            &format!("{other}d"),
            "none",
            "SecretNotFound",
            "there is no Secret metal/none",
        ),
        (
            "e",
            "gopher://x",
            "bmc",
            "InvalidBMCAddress",
            "correct the address",
        ),
    ];
    for (name, address, credentials, reason, says) in rows {
        with_bmc(&stage, name, address, credentials);
        never_checked(&stage, name);
        fails(&stage, name, reason, says);
    }
    let (code, text, errors) = ended(stage.dogwatch(&["check", "hosts", "-n", "metal"]));
    assert_eq!((code, text.lines().count()), (6, 6), "{text}");
    assert!(errors.contains("5 of 5 hosts"), "{errors}");
    assert!(
        !format!("{text}{errors}").contains(PASSWORD),
        "{text}{errors}"
    );
}

/// A host whose power control no controller has checked.
fn never_checked(stage: &Stage, name: &str) {
    let never = json!({ "status": { "conditions": null } });
    stage.merge(&format!("{}/status", path("metal", name)), &never);
}

#[test]
fn a_bmc_that_only_the_controller_reaches_is_not_called_broken() {
    let stage = with_hosts();
    secret(&stage, "bmc", &right());
    let closed = ClosedPort::new().unwrap();
    let nobody = format!("redfish+http://127.0.0.1:{}", closed.port_number().unwrap());
    with_bmc(&stage, "h1", &nobody, "bmc");
    let (code, text, errors) = ended(stage.dogwatch(&["check", "hosts"]));
    assert_eq!(code, 1, "{text}{errors}");
    assert!(
        text.contains("unknown") && text.contains("the power controller reaches it"),
        "{text}"
    );
    assert!(
        text.contains("→ to use the controller's result: dogwatch check hosts --from-status"),
        "{text}"
    );
    assert!(!errors.contains("does not work now"), "{errors}");
    shown(stage.dogwatch(&["check", "hosts", "--from-status"]));
}

#[test]
fn of_two_hosts_with_one_bmc_the_newer_is_named_and_not_asked() {
    let (stage, served) = (with_hosts(), served());
    secret(&stage, "bmc", &right());
    with_bmc(&stage, "h1", &served.address, "bmc");
    with_bmc(&stage, "h2", &served.address, "bmc");
    let (code, text, _) = ended(stage.dogwatch(&["check", "hosts", "metal/h1", "metal/h2"]));
    assert_eq!(code, 6, "{text}");
    assert_eq!(text.matches("SharedBMC").count(), 1, "{text}");
    assert!(
        text.contains("uses the same BMC; Dogwatch controls only the host that used it first"),
        "{text}"
    );
}

#[test]
fn a_secret_that_the_person_may_not_read_is_unknown_and_not_a_broken_bmc() {
    let stage = with_hosts();
    host(&stage, "metal", "h1", &json!({}));
    stage.deny(ApiVerb::Get, "secrets");
    let (code, text, errors) = ended(stage.dogwatch(&["check", "hosts"]));
    assert_eq!(code, 1, "{text}{errors}");
    assert!(
        text.contains("unknown") && text.contains("--from-status"),
        "{text}"
    );
    let text = shown(stage.dogwatch(&["check", "hosts", "--from-status"]));
    assert!(
        text.contains("yes") && text.contains("Checked: what the BMC said"),
        "{text}"
    );
}

#[test]
fn the_controllers_word_is_taken_where_that_is_asked_for() {
    let stage = with_hosts();
    let failing = conditions("True", "AsWanted", "", "False", "TLSFailed");
    host(
        &stage,
        "metal",
        "h1",
        &json!({ "status": { "conditions": failing } }),
    );
    let (code, text, _) = ended(stage.dogwatch(&["check", "hosts", "--from-status"]));
    assert_eq!(code, 6, "{text}");
    assert!(
        text.contains("TLSFailed") && text.contains("ca.crt"),
        "{text}"
    );
    never_checked(&stage, "h1");
    let (code, text, _) = ended(stage.dogwatch(&["check", "hosts", "--from-status"]));
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("NotCheckedYet"), "{text}");
}
