//! Calls to the BMCs of one level, together.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::Bmc as Driver;
use dogwatch_core::power::{About, Answer, Class, Command, Fault, Read, together};
use futures::future::{BoxFuture, join_all};

use super::lanes::{Bmc, Errand, Place};
use super::links::OpenLevel;
use super::services::Services;

/// A driver ends its calls by itself. One that does not is left so long after.
const GRACE: Duration = Duration::from_millis(500);

/// Reads the power of a level, once there is a place.
pub(super) async fn read(
    services: &Services,
    (number, level): (usize, OpenLevel),
    errand: Errand,
    within: Duration,
) -> Read {
    let _place = enter(services, &level, errand).await;
    let asked = services.clock.now().mono;
    let said = each(&level, within, |driver| driver.read(within)).await;
    let said = together(said);
    let what = match errand {
        Errand::Urgent => "urgent read",
        Errand::Routine => "poll",
    };
    services.tally.called(what, said.as_ref().err());
    Read {
        level: number,
        asked,
        answered: services.clock.now().mono,
        said,
    }
}

/// Checks whether power control of a level would work, once there is a place.
pub(super) async fn check(
    services: &Services,
    level: OpenLevel,
    within: Duration,
) -> Result<About, Fault> {
    let _place = enter(services, &level, Errand::Routine).await;
    let found = each(&level, within, |driver| driver.about(within)).await;
    let found: Result<Vec<About>, Fault> = found.into_iter().collect();
    services.tally.called("check", found.as_ref().err());
    found.map(all)
}

/// Waits for a place to speak to a level.
pub(super) async fn enter(services: &Services, level: &OpenLevel, errand: Errand) -> Place {
    let came = services.clock.now().mono;
    let place = services.lanes.enter(&level.bmcs, errand, level.cost).await;
    let waited = services.clock.now().mono.saturating_sub(came);
    services.tally.waited(errand, waited);
    place
}

/// Sends a command to all devices of a level. All must succeed. It ends before this moment of the monotonic
/// clock, which is looked at right before: a process that was stopped in between sends nothing late.
pub(super) async fn send(
    services: &Services,
    place: Place,
    level: OpenLevel,
    command: Command,
    until: Duration,
) -> Result<Answer, Fault> {
    let within = until.saturating_sub(services.clock.now().mono);
    if within.is_zero() {
        let text = "its time was over before it was sent";
        return Err(Fault::harmless(Class::TimedOut, text));
    }
    let answers = each(&level, within, |driver| driver.send(command, within)).await;
    drop(place);
    let answer = answers_together(answers);
    services
        .tally
        .called(command.as_str(), answer.as_ref().err());
    answer
}

/// What the answers of all devices say together. A command that one device took and another refused is
/// not on its way, for what was taken was answered; one whose end is unknown anywhere may be.
fn answers_together(answers: Vec<Result<Answer, Fault>>) -> Result<Answer, Fault> {
    let may_have_run = answers.iter().any(|answer| match answer {
        Ok(Answer::AcceptedWithoutTask) => true,
        Ok(Answer::Accepted | Answer::AlreadyThere) => false,
        Err(fault) => fault.may_have_run,
    });
    let mut together = Answer::AlreadyThere;
    for answer in answers {
        match answer {
            Ok(Answer::AcceptedWithoutTask) => together = Answer::AcceptedWithoutTask,
            Ok(Answer::Accepted) if together == Answer::AlreadyThere => together = Answer::Accepted,
            Ok(Answer::Accepted | Answer::AlreadyThere) => {}
            Err(fault) => {
                return Err(Fault {
                    may_have_run,
                    ..fault
                });
            }
        }
    }
    Ok(together)
}

/// What all devices of a level are: the first one's UUID, what all of them can do.
fn all(found: Vec<About>) -> About {
    let mut all = About::default();
    for about in found {
        if all.commands.is_empty() {
            all.commands.clone_from(&about.commands);
        } else if !about.commands.is_empty() {
            all.commands.retain(|command| about.can(*command));
        }
        all.system_uuid = all.system_uuid.or(about.system_uuid);
        all.product = all.product.or(about.product);
    }
    all
}

async fn each<T>(
    level: &OpenLevel,
    within: Duration,
    call: impl Fn(&Arc<dyn Driver>) -> BoxFuture<'_, Result<T, Fault>>,
) -> Vec<Result<T, Fault>> {
    let devices = level.drivers.iter().zip(&level.bmcs);
    let calls = devices.map(|(driver, bmc)| one(bmc, within, call(driver)));
    join_all(calls).await
}

async fn one<T>(
    bmc: &Bmc,
    within: Duration,
    call: BoxFuture<'_, Result<T, Fault>>,
) -> Result<T, Fault> {
    let answer = tokio::time::timeout(within + GRACE, call).await;
    let answer = answer.unwrap_or_else(|_| {
        let text = format!("no answer within {} s", within.as_secs());
        Err(Fault::unknown_end(Class::TimedOut, text))
    });
    bmc.answered(!matches!(&answer, Err(fault) if is_silence(fault.class)));
    answer
}

/// Whether nothing came back at all.
fn is_silence(class: Class) -> bool {
    match class {
        Class::Unreachable | Class::TimedOut => true,
        Class::Refused
        | Class::WrongCredentials
        | Class::Tls
        | Class::NoSuchSystem
        | Class::Unsupported
        | Class::Contradiction => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(may_have_run: bool) -> Result<Answer, Fault> {
        Err(Fault {
            class: Class::Refused,
            message: "no".into(),
            may_have_run,
        })
    }

    #[test]
    fn a_level_has_answered_when_every_device_has() {
        use Answer::{Accepted, AcceptedWithoutTask, AlreadyThere};
        for (answers, level) in [
            (
                vec![Ok(AcceptedWithoutTask), Ok(Accepted)],
                Ok(AcceptedWithoutTask),
            ),
            (vec![Ok(AcceptedWithoutTask), fault(false)], fault(true)),
            (vec![Ok(AlreadyThere), Ok(AlreadyThere)], Ok(AlreadyThere)),
            (vec![Ok(AlreadyThere), Ok(Accepted)], Ok(Accepted)),
            (vec![Ok(Accepted), fault(false)], fault(false)),
            (vec![fault(false), fault(true)], fault(true)),
        ] {
            assert_eq!(answers_together(answers.clone()), level, "{answers:?}");
        }
    }

    #[test]
    fn a_level_can_what_all_of_its_devices_can() {
        use Command::{Off, On, SoftOff};
        let about = |commands: &[Command]| About {
            commands: commands.to_vec(),
            ..About::default()
        };
        let of = |found: &[&[Command]]| all(found.iter().map(|one| about(one)).collect()).commands;
        assert_eq!(of(&[&[On, Off, SoftOff], &[On, Off]]), [On, Off]);
        assert_eq!(of(&[&[], &[On, Off]]), [On, Off]);
        assert_eq!(of(&[&[On, Off], &[]]), [On, Off]);
    }
}
