//! Finding the system, links, and the power state.

use dogwatch_bmc::{Bmc, BmcFault, FaultClass, PowerCommand, PowerReading};
use serde_json::{Value, json};

use crate::stub::{Step, Stub, WITHIN, document, status, with_header};

const SYSTEMS: &str = "GET /redfish/v1/Systems";
const SYSTEM: &str = "GET /redfish/v1/Systems/System.Embedded.1";

fn members(names: &[&str]) -> Value {
    let members = names.iter().map(|name| json!({"@odata.id": name}));
    json!({"Members": members.collect::<Vec<_>>()})
}

#[tokio::test(start_paused = true)]
async fn only_the_only_system_is_taken_without_a_name() {
    let many = (1..9)
        .map(|n| format!("/redfish/v1/Systems/{n}"))
        .collect::<Vec<_>>();
    let many = many.iter().map(String::as_str).collect::<Vec<_>>();
    let paged = json!({
        "Members": [{"@odata.id": "/redfish/v1/Systems/System.Embedded.1"}],
        "Members@odata.count": 3,
        "Members@odata.nextLink": "/redfish/v1/Systems?skip=1",
    });
    for (systems, sentence) in [
        (members(&[]), "the BMC has no system"),
        (
            members(&["/a", "/b"]),
            "the BMC has 2 systems; write one of them into the address: /a, /b",
        ),
        (
            members(&many),
            "the BMC has 8 systems; write one of them into the address: /redfish/v1/Systems/1, /redfish/v1/Systems/2, \
             /redfish/v1/Systems/3, /redfish/v1/Systems/4, /redfish/v1/Systems/5",
        ),
        (
            paged,
            "the BMC has 3 systems; write one of them into the address: /redfish/v1/Systems/System.Embedded.1",
        ),
    ] {
        let bmc = Stub::plain();
        bmc.instead(SYSTEMS, [document(systems)]);
        let fault = bmc.driver().read_power(WITHIN).await.expect_err("not one");
        assert_eq!(
            fault,
            BmcFault::without_effect(FaultClass::NoSuchSystem, sentence)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_named_system_is_taken_of_many_and_no_other() {
    let bmc = Stub::plain();
    let system = bmc.lock().documents["/redfish/v1/Systems/System.Embedded.1"].clone();
    bmc.lock()
        .documents
        .insert("/redfish/v1/Systems/2".into(), system);
    bmc.system(|system| system["PowerState"] = "Off".into());
    let other = bmc.driver_at("redfish://bmc.example/redfish/v1/Systems/System.Embedded.1");
    let second = bmc.driver_at("redfish://bmc.example/redfish/v1/Systems/2");
    let third = bmc.driver_at("redfish://bmc.example/redfish/v1/Systems/3");
    // Either one of the two may have changed; they differ.
    let read = [
        other.read_power(WITHIN).await,
        second.read_power(WITHIN).await,
    ];
    assert!(
        read.contains(&Ok(PowerReading::On)) && read.contains(&Ok(PowerReading::Off)),
        "{read:?}"
    );
    let fault = third.read_power(WITHIN).await.expect_err("no third");
    assert_eq!(fault.class, FaultClass::NoSuchSystem);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_system_has_no_power_to_read() {
    let bmc = Stub::plain();
    bmc.system(|system| system["@odata.type"] = "#Chassis.v1_0_0.Chassis".into());
    let fault = bmc
        .driver()
        .read_power(WITHIN)
        .await
        .expect_err("a chassis");
    assert_eq!(fault.class, FaultClass::NoSuchSystem);
}

#[tokio::test(start_paused = true)]
async fn a_system_that_has_moved_is_found_anew() {
    let bmc = Stub::plain();
    let driver = bmc.driver();
    driver.read_power(WITHIN).await.expect("read");
    bmc.instead(SYSTEM, [status(404)]);
    let fault = driver.read_power(WITHIN).await.expect_err("gone");
    assert_eq!(fault.class, FaultClass::NoSuchSystem);
    bmc.asked();
    driver.read_power(WITHIN).await.expect("found anew");
    assert_eq!(bmc.asked(), [SYSTEMS, SYSTEM]);
}

#[tokio::test(start_paused = true)]
async fn no_link_and_no_redirect_to_another_origin_is_followed() {
    let elsewhere = "https://other.example/redfish/v1/Systems/1";
    let redirect = |location: &str| with_header(status(308), "location", location);
    for (request, step) in [
        (SYSTEMS, document(members(&[elsewhere]))),
        (
            SYSTEMS,
            document(members(&["http://bmc.example/redfish/v1/Systems/1"])),
        ),
        (
            SYSTEMS,
            document(members(&["//other.example/redfish/v1/Systems/1"])),
        ),
        (
            SYSTEMS,
            redirect("https://other.example/redfish/v1/Systems/"),
        ),
        (SYSTEM, redirect(elsewhere)),
        (SYSTEM, redirect("/redfish/v1/Systems/other")),
        (SYSTEM, redirect("")),
        (
            "GET /redfish/v1/",
            redirect("https://other.example/redfish/v1"),
        ),
        (
            "POST /redfish/v1/SessionService/Sessions",
            redirect("https://other.example/Sessions/"),
        ),
    ] {
        let bmc = Stub::plain();
        bmc.instead(request, [step]);
        let fault = bmc.driver().read_power(WITHIN).await.expect_err(request);
        assert_eq!(
            (fault.class, fault.may_have_run),
            (FaultClass::Contradiction, false),
            "{fault}"
        );
    }
    let bmc = Stub::plain();
    bmc.system(|system| {
        system["Actions"]["#ComputerSystem.Reset"]["target"] = elsewhere.into();
    });
    let driver = bmc.driver();
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    for fault in [
        driver
            .send_command(PowerCommand::Off, WITHIN)
            .await
            .expect_err("off"),
        driver.describe_device(WITHIN).await.expect_err("about"),
    ] {
        assert_eq!(
            (fault.class, fault.may_have_run),
            (FaultClass::Contradiction, false),
            "{fault}"
        );
    }
}

/// HPE and Supermicro BMCs.
#[tokio::test(start_paused = true)]
async fn a_slash_too_many_or_too_few_is_put_right_once() {
    let bmc = Stub::of(include_str!("fixtures/hpe.json"));
    bmc.instead(
        "GET /redfish/v1/Systems/1",
        [with_header(
            status(308),
            "location",
            "/redfish/v1/Systems/1/",
        )],
    );
    let driver = bmc.driver_at("ilo5-redfish://bmc.example/redfish/v1/Systems/1");
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    bmc.asked();
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    assert_eq!(bmc.asked(), ["GET /redfish/v1/Systems/1/"]);
    let circle = |path: &str| with_header(status(301), "location", path);
    bmc.instead(
        "GET /redfish/v1/Systems/1/",
        [circle("/redfish/v1/Systems/1")],
    );
    bmc.instead(
        "GET /redfish/v1/Systems/1",
        [circle("/redfish/v1/Systems/1/")],
    );
    let fault = driver.read_power(WITHIN).await.expect_err("a circle");
    assert_eq!(fault.class, FaultClass::Contradiction);
}

#[tokio::test(start_paused = true)]
async fn only_the_word_off_is_off() {
    let contradiction = Err(FaultClass::Contradiction);
    for (state, reading) in [
        (json!("On"), Ok(PowerReading::On)),
        (json!("Off"), Ok(PowerReading::Off)),
        (json!("PoweringOn"), Ok(PowerReading::PoweringOn)),
        (json!("PoweringOff"), Ok(PowerReading::PoweringOff)),
        (json!("Paused"), Ok(PowerReading::On)),
        (Value::Null, contradiction),
        (json!("off"), contradiction),
        (json!("OFF"), contradiction),
        (json!(" Off"), contradiction),
        (json!("Unknown"), contradiction),
        (json!(""), contradiction),
        (json!(0), contradiction),
        (json!(false), contradiction),
        (json!(["Off"]), contradiction),
        (json!({"State": "Off"}), contradiction),
    ] {
        let bmc = Stub::plain();
        bmc.system(|system| system["PowerState"] = state.clone());
        let said = bmc.driver().read_power(WITHIN).await;
        assert_eq!(said.map_err(|fault| fault.class), reading, "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_whole_document_with_one_state_is_no_reading() {
    for body in [
        "",
        "Off",
        "\"Off\"",
        "null",
        "[]",
        "{}",
        "{\"PowerState\": \"Off\"",
        "{\"PowerState\": \"Off\"} and more",
        "{\"PowerState\": \"Off\", \"PowerState\": \"On\"}",
        "{\"PowerState\": \"On\", \"PowerState\": \"Off\"}",
        "{\"Status\": {\"PowerState\": \"Off\"}}",
        "<html>Off</html>",
    ] {
        let bmc = Stub::plain();
        bmc.instead(SYSTEM, [document(Value::String(body.to_owned()))]);
        let said = bmc.driver().read_power(WITHIN).await;
        assert_eq!(
            said.expect_err(body).class,
            FaultClass::Contradiction,
            "{body}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn each_answer_has_its_class_and_none_is_a_reading() {
    for (answer, class) in [
        (status(204), FaultClass::Contradiction),
        (status(206), FaultClass::Contradiction),
        (status(304), FaultClass::Contradiction),
        (status(400), FaultClass::Refused),
        (status(403), FaultClass::Refused),
        (status(404), FaultClass::NoSuchSystem),
        (status(405), FaultClass::Unsupported),
        (status(410), FaultClass::NoSuchSystem),
        (status(418), FaultClass::Refused),
        (status(429), FaultClass::Refused),
        (status(500), FaultClass::Refused),
        (status(502), FaultClass::Refused),
        (status(503), FaultClass::Refused),
        (status(504), FaultClass::Refused),
        (Step::Hangs, FaultClass::TimedOut),
        (
            Step::Fails(BmcFault::with_unknown_effect(FaultClass::TimedOut, "late")),
            FaultClass::TimedOut,
        ),
        (
            Step::Fails(BmcFault::without_effect(FaultClass::Tls, "tls")),
            FaultClass::Tls,
        ),
        (
            Step::Fails(BmcFault::without_effect(FaultClass::Unreachable, "dead")),
            FaultClass::Unreachable,
        ),
    ] {
        let bmc = Stub::plain();
        let driver = bmc.driver();
        driver.read_power(WITHIN).await.expect("read");
        bmc.instead(SYSTEM, [answer]);
        let fault = driver.read_power(WITHIN).await.expect_err("no reading");
        assert_eq!((fault.class, fault.may_have_run), (class, false), "{fault}");
        assert_eq!(
            driver.read_power(WITHIN).await,
            Ok(PowerReading::On),
            "{class:?} is over"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_reading_is_asked_for_again_where_the_connection_was_lost_but_no_command_is() {
    let lost = || {
        Step::Fails(BmcFault::with_unknown_effect(
            FaultClass::Unreachable,
            "lost",
        ))
    };
    let post = "POST /redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset";
    let bmc = Stub::plain();
    let driver = bmc.driver();
    bmc.instead(SYSTEM, [lost()]).instead(post, [lost()]);
    assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
    bmc.asked();
    let fault = driver
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect_err("lost");
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::Unreachable, true)
    );
    assert_eq!(bmc.asked(), [format!("{post} ForceOff")]);
}

#[tokio::test(start_paused = true)]
async fn each_reading_names_the_machine_of_its_own_document_in_one_request() {
    const OTHER: &str = "4c4c4544-0035-3010-8048-b7c04f444d34";
    let bmc = Stub::plain();
    let driver = bmc.driver();
    let about = driver.describe_device(WITHIN).await.expect("about");
    bmc.asked();
    let read = driver.read_identified_power(WITHIN).await.expect("read");
    assert_eq!(read.power, PowerReading::On);
    assert!(read.system_uuid.is_some() && read.system_uuid == about.system_uuid);
    bmc.system(|system| system["UUID"] = OTHER.into());
    let read = driver.read_identified_power(WITHIN).await.expect("read");
    assert_eq!(read.system_uuid.as_deref(), Some(OTHER));
    assert_eq!(bmc.asked(), [SYSTEM, SYSTEM]);
    // What many machines have names none of them.
    for uuid in [
        json!("00000000-0000-0000-0000-000000000000"),
        json!("Not Settable"),
        json!(7),
        Value::Null,
    ] {
        bmc.system(|system| system["UUID"] = uuid.clone());
        let read = driver.read_identified_power(WITHIN).await.expect("read");
        assert_eq!(read.system_uuid, None, "{uuid}");
    }
}
