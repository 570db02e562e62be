//! A real machine, powered over IPMI: what its power does is read from its console, and from whether it has a process.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::{Answer, Bmc, Command, Credentials, Options, Password, Reading, connect};
use dogwatch_core::power::Address;
use dogwatch_testbed::ipmi_sim::{PASSWORD, USERNAME};
use dogwatch_testbed::vm::{Guest, NOT_LISTENING, RUNNING, SHUTTING_DOWN, Vm};

const WITHIN: Duration = Duration::from_mins(2);

fn driver(vm: &Vm) -> Arc<dyn Bmc> {
    let credentials = Credentials {
        username: USERNAME.to_owned(),
        password: Password::new(PASSWORD),
        ca: None,
    };
    let address = Address::parse(&vm.address()).unwrap();
    connect(&address, &credentials, true, &Options::default()).unwrap()
}

async fn send(bmc: &dyn Bmc, command: Command) {
    assert_eq!(
        bmc.send(command, WITHIN).await,
        Ok(Answer::Accepted),
        "{command}"
    );
}

/// The BMC may find out late; it may not say "off" too early.
async fn is_off(vm: &Vm, bmc: &dyn Bmc) {
    let wait = async { while bmc.read(WITHIN).await != Ok(Reading::Off) {} };
    tokio::time::timeout(WITHIN, wait).await.unwrap();
    assert!(!vm.has_process(), "the BMC says off");
}

#[tokio::test]
async fn a_machine_boots_shuts_down_softly_and_is_cut_off() {
    let vm = Vm::start(Guest::Polite).await.unwrap();
    let bmc = driver(&vm);
    assert_eq!(bmc.read(WITHIN).await, Ok(Reading::Off));
    assert!(!vm.has_process());

    send(&*bmc, Command::On).await;
    vm.shows(RUNNING, 1).await.unwrap();
    assert_eq!(bmc.read(WITHIN).await, Ok(Reading::On));

    send(&*bmc, Command::SoftOff).await;
    vm.shows(SHUTTING_DOWN, 1).await.unwrap();
    is_off(&vm, &*bmc).await;

    send(&*bmc, Command::On).await;
    vm.shows(RUNNING, 2).await.unwrap();
    send(&*bmc, Command::Off).await;
    is_off(&vm, &*bmc).await;
    assert_eq!(
        vm.console().matches(SHUTTING_DOWN).count(),
        1,
        "power was cut"
    );
}

#[tokio::test]
async fn a_machine_that_is_deaf_to_the_soft_way_stays_on_until_it_is_cut_off() {
    let vm = Vm::start(Guest::Deaf).await.unwrap();
    let bmc = driver(&vm);
    send(&*bmc, Command::On).await;
    vm.shows(RUNNING, 1).await.unwrap();
    send(&*bmc, Command::SoftOff).await;
    vm.shows(NOT_LISTENING, 1).await.unwrap();
    assert_eq!(bmc.read(WITHIN).await, Ok(Reading::On));
    assert!(vm.has_process());
    send(&*bmc, Command::Off).await;
    is_off(&vm, &*bmc).await;
}
