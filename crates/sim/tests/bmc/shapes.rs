//! The same driver switches every vendor's Redfish off and on.

use dogwatch_bmc::{Bmc as _, CommandAnswer, PowerCommand, PowerReading};
use dogwatch_kubesim::machine::MachineState;
use dogwatch_sim::bmc::{CommandAnswerStyle, MakerProfile};

use crate::bench::{Bench, CALL, SECOND, after};

fn shapes() -> Vec<MakerProfile> {
    let monitor = MakerProfile {
        answers: CommandAnswerStyle::Monitor,
        ..MakerProfile::strict_profile()
    };
    vec![
        MakerProfile::plain_profile(),
        MakerProfile::dell(),
        MakerProfile::hpe(),
        MakerProfile::lenovo(),
        MakerProfile::supermicro(),
        MakerProfile::strict_profile(),
        monitor,
        MakerProfile::old_profile(),
    ]
}

#[tokio::test(start_paused = true)]
async fn every_makers_bmc_goes_off_and_on() {
    for shape in shapes() {
        let name = shape.product.1;
        let bench = Bench::new(shape, true);
        assert_eq!(bench.read().await, Ok(PowerReading::On), "{name}");
        let soft = bench.send(PowerCommand::SoftOff).await;
        assert_eq!(soft, Ok(CommandAnswer::Accepted), "{name}");
        bench
            .machine
            .wait_for_state(|state| *state == MachineState::Off)
            .await;
        assert_eq!(bench.read().await, Ok(PowerReading::Off), "{name}");
        assert_eq!(
            bench.send(PowerCommand::On).await,
            Ok(CommandAnswer::Accepted),
            "{name}"
        );
        let runs = |state: &MachineState| state.running_boot().is_some();
        bench.machine.wait_for_state(runs).await;
        assert_eq!(bench.read().await, Ok(PowerReading::On), "{name}");
        assert_eq!(
            bench.send(PowerCommand::Off).await,
            Ok(CommandAnswer::Accepted),
            "{name}"
        );
        after(2 * SECOND).await;
        assert_eq!(bench.read().await, Ok(PowerReading::Off), "{name}");
        let log = bench.machine.transition_log();
        assert_eq!(
            (log.count_power_offs(), log.count_power_ons()),
            (2, 1),
            "{name}\n{log}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn every_makers_word_for_a_state_that_is_there_already_is_understood() {
    for shape in shapes() {
        let name = shape.product.1;
        let is_said = shape.already != 204;
        let bench = Bench::new(shape, false);
        let expected = if is_said {
            CommandAnswer::AlreadyThere
        } else {
            CommandAnswer::Accepted
        };
        assert_eq!(bench.send(PowerCommand::Off).await, Ok(expected), "{name}");
        after(5 * SECOND).await;
        assert_eq!(bench.machine.transition_log().transitions, [], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_bmc_is_and_can_do_is_found_without_changing_anything() {
    for shape in shapes() {
        let (maker, model) = shape.product;
        let bench = Bench::new(shape, true);
        let about = bench.driver.describe_device(CALL).await.unwrap();
        assert_eq!(
            about.system_uuid.as_deref(),
            Some(bench.machine.system_uuid())
        );
        assert_eq!(about.product, Some(format!("{maker} {model}")));
        for command in [PowerCommand::On, PowerCommand::SoftOff, PowerCommand::Off] {
            assert!(about.supports_command(command), "{model}: {command}");
        }
        assert_eq!(bench.machine.transition_log().transitions, [], "{model}");
    }
}
