//! Every maker's Redfish goes off and on with the same driver.

use dogwatch_bmc::{Answer, Bmc as _, Command, Reading};
use dogwatch_sim::bmc::{Answers, Shape, State};

use crate::bench::{Bench, CALL, SECOND, after};

fn shapes() -> Vec<Shape> {
    let monitor = Shape {
        answers: Answers::Monitor,
        ..Shape::strict()
    };
    vec![
        Shape::plain(),
        Shape::dell(),
        Shape::hpe(),
        Shape::lenovo(),
        Shape::supermicro(),
        Shape::strict(),
        monitor,
        Shape::old(),
    ]
}

#[tokio::test(start_paused = true)]
async fn every_makers_bmc_goes_off_and_on() {
    for shape in shapes() {
        let name = shape.product.1;
        let bench = Bench::new(shape, true);
        assert_eq!(bench.read().await, Ok(Reading::On), "{name}");
        let soft = bench.send(Command::SoftOff).await;
        assert_eq!(soft, Ok(Answer::Accepted), "{name}");
        bench.machine.until(|state| *state == State::Off).await;
        assert_eq!(bench.read().await, Ok(Reading::Off), "{name}");
        assert_eq!(
            bench.send(Command::On).await,
            Ok(Answer::Accepted),
            "{name}"
        );
        let runs = |state: &State| state.living().is_some();
        bench.machine.until(runs).await;
        assert_eq!(bench.read().await, Ok(Reading::On), "{name}");
        assert_eq!(
            bench.send(Command::Off).await,
            Ok(Answer::Accepted),
            "{name}"
        );
        after(2 * SECOND).await;
        assert_eq!(bench.read().await, Ok(Reading::Off), "{name}");
        let log = bench.machine.log();
        assert_eq!((log.power_offs(), log.power_ons()), (2, 1), "{name}\n{log}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_makers_word_for_a_state_that_is_there_already_is_understood() {
    for shape in shapes() {
        let name = shape.product.1;
        let is_said = shape.already != 204;
        let bench = Bench::new(shape, false);
        let expected = if is_said {
            Answer::AlreadyThere
        } else {
            Answer::Accepted
        };
        assert_eq!(bench.send(Command::Off).await, Ok(expected), "{name}");
        after(5 * SECOND).await;
        assert_eq!(bench.machine.log().transitions, [], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_bmc_is_and_can_do_is_found_without_changing_anything() {
    for shape in shapes() {
        let (maker, model) = shape.product;
        let bench = Bench::new(shape, true);
        let about = bench.driver.about(CALL).await.unwrap();
        assert_eq!(
            about.system_uuid.as_deref(),
            Some(bench.machine.system_uuid())
        );
        assert_eq!(about.product, Some(format!("{maker} {model}")));
        for command in [Command::On, Command::SoftOff, Command::Off] {
            assert!(about.can(command), "{model}: {command}");
        }
        assert_eq!(bench.machine.log().transitions, [], "{model}");
    }
}
