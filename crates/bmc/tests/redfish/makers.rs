//! Documents of four makers.

use dogwatch_bmc::{Bmc, BmcInfo, CommandAnswer, PowerCommand};
use serde_json::{Value, json};

use crate::stub::{Stub, WITHIN, document, error, status};

const ALL: [PowerCommand; 3] = [PowerCommand::On, PowerCommand::SoftOff, PowerCommand::Off];
const DELL: &str = include_str!("fixtures/dell.json");
const HPE: &str = include_str!("fixtures/hpe.json");
const LENOVO: &str = include_str!("fixtures/lenovo.json");
const SUPERMICRO: &str = include_str!("fixtures/supermicro.json");

fn resets(bmc: &Stub) -> Vec<String> {
    let asked = bmc.asked().into_iter();
    let resets = asked.filter(|asked| asked.contains("ComputerSystem.Reset"));
    resets
        .filter_map(|asked| asked.split(' ').nth(2).map(ToOwned::to_owned))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn each_maker_is_told_what_it_understands() {
    for (fixture, product, uuid) in [
        (
            DELL,
            "Dell Inc. PowerEdge R750",
            "4c4c4544-0035-3010-8048-b7c04f444d33",
        ),
        (
            HPE,
            "HPE ProLiant DL385 Gen10 Plus v2",
            "38393550-5031-4D32-3230-313330463147",
        ),
        (
            LENOVO,
            "Lenovo ThinkSystem SR670 V2",
            "0D3D4F4E-7B4B-11EC-9E0D-3A68DD112233",
        ),
        (
            SUPERMICRO,
            "Supermicro SYS-821GE-TNHR",
            "00000000-0000-0000-0000-7CC2551A2B3C",
        ),
    ] {
        let bmc = Stub::of(fixture);
        let driver = bmc.driver();
        let about = BmcInfo {
            system_uuid: Some(uuid.into()),
            commands: ALL.into(),
            product: Some(product.into()),
        };
        assert_eq!(driver.describe_device(WITHIN).await, Ok(about));
        for (command, power) in [
            (PowerCommand::Off, "Off"),
            (PowerCommand::On, "On"),
            (PowerCommand::SoftOff, "Off"),
        ] {
            assert_eq!(
                driver.send_command(command, WITHIN).await,
                Ok(CommandAnswer::Accepted),
                "{product}"
            );
            assert_eq!(bmc.power(), power, "{product}: {command}");
        }
        assert_eq!(
            resets(&bmc),
            ["ForceOff", "On", "GracefulShutdown"],
            "{product}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_info_is_read_once_and_anew_at_each_check() {
    let info = "GET /redfish/v1/Systems/1/ResetActionInfo".to_owned();
    let bmc = Stub::of(SUPERMICRO);
    let driver = bmc.driver();
    let read = |asked: Vec<String>| asked.iter().filter(|asked| **asked == info).count();
    driver.read_power(WITHIN).await.expect("read");
    assert_eq!(read(bmc.asked()), 0);
    driver
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .expect("off");
    assert_eq!(read(bmc.asked()), 1);
    driver.read_power(WITHIN).await.expect("read");
    driver
        .send_command(PowerCommand::On, WITHIN)
        .await
        .expect("on");
    assert_eq!(read(bmc.asked()), 0);
    driver.describe_device(WITHIN).await.expect("about");
    assert_eq!(read(bmc.asked()), 1);
}

#[tokio::test(start_paused = true)]
async fn reset_types_in_the_system_go_before_those_of_an_action_info() {
    let bmc = Stub::of(LENOVO);
    let about = bmc.driver().describe_device(WITHIN).await.expect("about");
    assert_eq!(about.commands, ALL);
    assert!(!bmc.asked().iter().any(|asked| asked.contains("ActionInfo")));
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_does_not_say_what_it_can_is_tried() {
    let info = "GET /redfish/v1/Systems/1/ResetActionInfo";
    for answer in [
        status(404),
        status(500),
        document(json!({})),
        document(Value::from("x")),
    ] {
        let bmc = Stub::of(SUPERMICRO);
        bmc.instead(info, [answer.clone(), answer]);
        let driver = bmc.driver();
        assert_eq!(
            driver
                .describe_device(WITHIN)
                .await
                .expect("about")
                .commands,
            []
        );
        for command in [PowerCommand::SoftOff, PowerCommand::On, PowerCommand::Off] {
            assert_eq!(
                driver.send_command(command, WITHIN).await,
                Ok(CommandAnswer::Accepted)
            );
        }
        assert_eq!(resets(&bmc), ["GracefulShutdown", "On", "ForceOff"]);
    }
    let bmc = Stub::of(SUPERMICRO);
    bmc.system(|system| {
        system["Actions"]["#ComputerSystem.Reset"] = json!({});
    });
    // The document names no target either; the driver uses the standard's path.
    let driver = bmc.driver();
    assert_eq!(
        driver.send_command(PowerCommand::Off, WITHIN).await,
        Ok(CommandAnswer::Accepted)
    );
    assert_eq!(bmc.power(), "Off");
}

#[tokio::test(start_paused = true)]
async fn a_list_without_off_does_not_keep_a_host_on() {
    let bmc = Stub::of(DELL);
    bmc.system(|system| {
        let reset = &mut system["Actions"]["#ComputerSystem.Reset"];
        reset["ResetType@Redfish.AllowableValues"] = json!(["On"]);
    });
    let driver = bmc.driver();
    assert_eq!(
        driver
            .describe_device(WITHIN)
            .await
            .expect("about")
            .commands,
        [PowerCommand::On]
    );
    let fault = driver
        .send_command(PowerCommand::SoftOff, WITHIN)
        .await
        .expect_err("no soft off");
    assert_eq!(fault.class, dogwatch_bmc::FaultClass::Unsupported);
    assert_eq!(
        driver.send_command(PowerCommand::Off, WITHIN).await,
        Ok(CommandAnswer::Accepted)
    );
    assert_eq!(bmc.power(), "Off");
}

/// iLO 4 and early iLO 5 have no GracefulShutdown.
fn with_a_button(fixture: &str) -> Stub {
    let bmc = Stub::of(fixture);
    bmc.system(|system| {
        let reset = &mut system["Actions"]["#ComputerSystem.Reset"];
        let types = json!(["On", "ForceOff", "ForceRestart", "Nmi", "PushPowerButton"]);
        reset["ResetType@Redfish.AllowableValues"] = types;
    });
    bmc
}

#[tokio::test(start_paused = true)]
async fn a_button_is_pressed_where_that_is_soft_and_never_on_a_host_that_is_off() {
    for (fixture, address, presses) in [
        (HPE, "redfish://bmc.example", true),
        (LENOVO, "redfish://bmc.example", false),
        (LENOVO, "ilo5-redfish://bmc.example", true),
    ] {
        let bmc = with_a_button(fixture);
        let driver = bmc.driver_at(address);
        let about = driver.describe_device(WITHIN).await.expect("about");
        assert_eq!(
            about.supports_command(PowerCommand::SoftOff),
            presses,
            "{address}"
        );
        let sent = driver.send_command(PowerCommand::SoftOff, WITHIN).await;
        assert_eq!(sent.is_ok(), presses, "{sent:?}");
        assert_eq!(resets(&bmc).len(), usize::from(presses));
        for state in ["Off", "PoweringOff", "PoweringOn"] {
            bmc.system(|system| system["PowerState"] = state.into());
            let sent = driver.send_command(PowerCommand::SoftOff, WITHIN).await;
            assert_eq!(
                sent == Ok(CommandAnswer::AlreadyThere),
                presses && state == "Off",
                "{state}"
            );
            assert_eq!(resets(&bmc).len(), 0, "{state}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_button_is_not_pressed_when_the_state_cannot_be_read() {
    let bmc = with_a_button(HPE);
    let driver = bmc.driver();
    driver.read_power(WITHIN).await.expect("read");
    bmc.instead(
        "GET /redfish/v1/Systems/1/",
        [error(503, "Base.1.0.Busy", "busy")],
    );
    let fault = driver
        .send_command(PowerCommand::SoftOff, WITHIN)
        .await
        .expect_err("not read");
    assert!(!fault.may_have_run);
    assert_eq!(resets(&bmc).len(), 0);
}
