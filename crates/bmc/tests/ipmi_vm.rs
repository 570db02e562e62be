//! Tests the IPMI driver on a virtual machine. Its console and its process show its power.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::{
    Bmc, CommandAnswer, Credentials, DriverOptions, Password, PowerCommand, PowerReading,
    connect_driver,
};
use dogwatch_core::power::BmcAddress;
use dogwatch_testbed::ipmi_sim::{PASSWORD, USERNAME};
use dogwatch_testbed::vm::{
    GUEST_NOT_LISTENING, GUEST_RUNNING, GUEST_SHUTTING_DOWN, GuestMode, VirtualMachine,
};

const WITHIN: Duration = Duration::from_mins(2);

fn driver(vm: &VirtualMachine) -> Arc<dyn Bmc> {
    let credentials = Credentials {
        username: USERNAME.to_owned(),
        password: Password::new(PASSWORD),
        ca: None,
    };
    let address = BmcAddress::parse(&vm.address()).unwrap();
    connect_driver(&address, &credentials, true, &DriverOptions::default()).unwrap()
}

async fn send(bmc: &dyn Bmc, command: PowerCommand) {
    assert_eq!(
        bmc.send_command(command, WITHIN).await,
        Ok(CommandAnswer::Accepted),
        "{command}"
    );
}

/// The BMC may report "off" late, but not too early.
async fn is_off(vm: &VirtualMachine, bmc: &dyn Bmc) {
    let wait = async { while bmc.read_power(WITHIN).await != Ok(PowerReading::Off) {} };
    tokio::time::timeout(WITHIN, wait).await.unwrap();
    assert!(!vm.has_process(), "the BMC says off");
}

#[tokio::test]
async fn a_machine_boots_shuts_down_softly_and_is_cut_off() {
    let vm = VirtualMachine::start(GuestMode::Polite).await.unwrap();
    let bmc = driver(&vm);
    assert_eq!(bmc.read_power(WITHIN).await, Ok(PowerReading::Off));
    assert!(!vm.has_process());

    send(&*bmc, PowerCommand::On).await;
    vm.wait_until_console_shows(GUEST_RUNNING, 1).await.unwrap();
    assert_eq!(bmc.read_power(WITHIN).await, Ok(PowerReading::On));

    send(&*bmc, PowerCommand::SoftOff).await;
    vm.wait_until_console_shows(GUEST_SHUTTING_DOWN, 1)
        .await
        .unwrap();
    is_off(&vm, &*bmc).await;

    send(&*bmc, PowerCommand::On).await;
    vm.wait_until_console_shows(GUEST_RUNNING, 2).await.unwrap();
    send(&*bmc, PowerCommand::Off).await;
    is_off(&vm, &*bmc).await;
    assert_eq!(
        vm.console_output().matches(GUEST_SHUTTING_DOWN).count(),
        1,
        "power was cut"
    );
}

#[tokio::test]
async fn a_machine_that_is_deaf_to_the_soft_way_stays_on_until_it_is_cut_off() {
    let vm = VirtualMachine::start(GuestMode::Deaf).await.unwrap();
    let bmc = driver(&vm);
    send(&*bmc, PowerCommand::On).await;
    vm.wait_until_console_shows(GUEST_RUNNING, 1).await.unwrap();
    send(&*bmc, PowerCommand::SoftOff).await;
    vm.wait_until_console_shows(GUEST_NOT_LISTENING, 1)
        .await
        .unwrap();
    assert_eq!(bmc.read_power(WITHIN).await, Ok(PowerReading::On));
    assert!(vm.has_process());
    send(&*bmc, PowerCommand::Off).await;
    is_off(&vm, &*bmc).await;
}
