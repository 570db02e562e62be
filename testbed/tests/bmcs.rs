//! Tests of the testbed's BMC counterparts.

use std::time::Duration;

use dogwatch_testbed::sushy::{self, EmulatedSystem, SushyEmulator};

#[tokio::test]
async fn the_redfish_emulator_asks_for_a_password_and_tells_the_power() {
    let uuid = "0b7ab6a2-5c3f-4f0f-8e0f-6f1d3b1f0001";
    let system = EmulatedSystem {
        uuid: uuid.to_owned(),
        on: true,
    };
    let sushy = SushyEmulator::start(&[system], Duration::from_secs(1))
        .await
        .unwrap();
    let url = sushy.system_address(uuid).replace("redfish://", "https://");
    let ask = |user: &str| {
        let output = std::process::Command::new("curl")
            .args(["--silent", "--show-error", "--user", user, "--cacert"])
            .arg(sushy.ca_file())
            .arg(&url)
            .output()
            .unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let right = ask(&format!("{}:{}", sushy::USERNAME, sushy::PASSWORD));
    assert!(right.contains(r#""PowerState": "On""#), "{right}");
    let wrong = ask("admin:wrong");
    assert!(wrong.contains("Incorrect username or password"), "{wrong}");
}
