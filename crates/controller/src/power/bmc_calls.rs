//! Calls all BMCs of one level together, and combines their answers.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::Bmc as Driver;
use dogwatch_core::power::{
    BmcFault, BmcInfo, CommandAnswer, FaultClass, IdentifiedReading, LevelReading, PowerCommand,
    PowerReading, combine_readings,
};
use futures::future::{BoxFuture, join_all};

use super::bmc_concurrency::{BmcCallPermit, Priority, SharedBmc};
use super::bmc_connections::OpenLevel;
use super::services::PowerServices;

/// A driver ends its calls at their time limit. A call that does not end is abandoned this much
/// later.
const CALL_GRACE: Duration = Duration::from_millis(500);

/// Reads the power of a level, once it has a permit.
pub(super) async fn read_power(
    services: &PowerServices,
    (number, level): (usize, OpenLevel),
    errand: Priority,
    within: Duration,
) -> LevelReading {
    let _place = acquire_call_permit(services, &level, errand).await;
    let asked = services.clock.now().mono;
    let said = call_each_device(&level, within, |driver| {
        driver.read_identified_power(within)
    })
    .await;
    let (said, system_uuid) = combine_identified(said);
    let what = match errand {
        Priority::Urgent => "urgent read",
        Priority::Routine => "poll",
    };
    services.metrics.record_call(what, said.as_ref().err());
    LevelReading {
        level: number,
        asked,
        answered: services.clock.now().mono,
        result: said,
        system_uuid,
    }
}

/// Checks whether power control of a level would work, once it has a permit. Returns when the check
/// began as well.
pub(super) async fn check_level(
    services: &PowerServices,
    level: OpenLevel,
    within: Duration,
) -> (Duration, Result<BmcInfo, BmcFault>) {
    let _place = acquire_call_permit(services, &level, Priority::Routine).await;
    let asked = services.clock.now().mono;
    let found = call_each_device(&level, within, |driver| driver.describe_device(within)).await;
    let found: Result<Vec<BmcInfo>, BmcFault> = found.into_iter().collect();
    services.metrics.record_call("check", found.as_ref().err());
    (asked, found.map(combine_abouts))
}

/// Waits for a permit to call the BMCs of a level, and records the wait.
pub(super) async fn acquire_call_permit(
    services: &PowerServices,
    level: &OpenLevel,
    errand: Priority,
) -> BmcCallPermit {
    let came = services.clock.now().mono;
    let place = services
        .concurrency
        .acquire_call_permit(&level.bmcs, errand, level.cost)
        .await;
    let waited = services.clock.now().mono.saturating_sub(came);
    services.metrics.record_wait(errand, waited);
    place
}

/// Sends a command to all devices of a level; all must succeed. The command ends before `until`
/// (monotonic), which is checked right before: a process that was stopped in between sends nothing
/// late.
pub(super) async fn send_command(
    services: &PowerServices,
    place: BmcCallPermit,
    level: OpenLevel,
    command: PowerCommand,
    until: Duration,
) -> Result<CommandAnswer, BmcFault> {
    let within = until.saturating_sub(services.clock.now().mono);
    if within.is_zero() {
        let text = "the time limit of the call ended before it was sent";
        return Err(BmcFault::without_effect(FaultClass::TimedOut, text));
    }
    let answers = call_each_device(&level, within, |driver| {
        driver.send_command(command, within)
    })
    .await;
    drop(place);
    let answer = combine_answers(answers);
    services
        .metrics
        .record_call(command.as_str(), answer.as_ref().err());
    answer
}

/// Combines the answers of all devices. If one device took a command and another refused it, the
/// command is not under way, because it was answered. If the end is unknown on any device, it may
/// be under way.
fn combine_answers(
    answers: Vec<Result<CommandAnswer, BmcFault>>,
) -> Result<CommandAnswer, BmcFault> {
    let may_have_run = answers.iter().any(|answer| match answer {
        Ok(CommandAnswer::AcceptedWithoutTask) => true,
        Ok(CommandAnswer::Accepted | CommandAnswer::AlreadyThere) => false,
        Err(fault) => fault.may_have_run,
    });
    let mut together = CommandAnswer::AlreadyThere;
    for answer in answers {
        match answer {
            Ok(CommandAnswer::AcceptedWithoutTask) => together = CommandAnswer::AcceptedWithoutTask,
            Ok(CommandAnswer::Accepted) if together == CommandAnswer::AlreadyThere => {
                together = CommandAnswer::Accepted;
            }
            Ok(CommandAnswer::Accepted | CommandAnswer::AlreadyThere) => {}
            Err(fault) => {
                return Err(BmcFault {
                    may_have_run,
                    ..fault
                });
            }
        }
    }
    Ok(together)
}

/// Combines the readings of all devices of a level, with the first one's UUID.
fn combine_identified(
    said: Vec<Result<IdentifiedReading, BmcFault>>,
) -> (Result<PowerReading, BmcFault>, Option<String>) {
    let first = said
        .iter()
        .find_map(|read| read.as_ref().ok()?.system_uuid.clone());
    let result = combine_readings(said.into_iter().map(|read| read.map(|read| read.power)));
    let system_uuid = first.filter(|_| result.is_ok());
    (result, system_uuid)
}

/// Combines the devices of a level: the first one's UUID, and the abilities that all of them have.
fn combine_abouts(found: Vec<BmcInfo>) -> BmcInfo {
    let mut all = BmcInfo::default();
    for about in found {
        if all.commands.is_empty() {
            all.commands.clone_from(&about.commands);
        } else if !about.commands.is_empty() {
            all.commands
                .retain(|command| about.supports_command(*command));
        }
        all.system_uuid = all.system_uuid.or(about.system_uuid);
        all.product = all.product.or(about.product);
    }
    all
}

async fn call_each_device<T>(
    level: &OpenLevel,
    within: Duration,
    call: impl Fn(&Arc<dyn Driver>) -> BoxFuture<'_, Result<T, BmcFault>>,
) -> Vec<Result<T, BmcFault>> {
    let devices = level.drivers.iter().zip(&level.bmcs);
    let calls = devices.map(|(driver, bmc)| call_device(bmc, within, call(driver)));
    join_all(calls).await
}

async fn call_device<T>(
    bmc: &SharedBmc,
    within: Duration,
    call: BoxFuture<'_, Result<T, BmcFault>>,
) -> Result<T, BmcFault> {
    let answer = tokio::time::timeout(within + CALL_GRACE, call).await;
    let answer = answer.unwrap_or_else(|_| {
        let text = format!("no answer within {} s", within.as_secs());
        Err(BmcFault::with_unknown_effect(FaultClass::TimedOut, text))
    });
    bmc.record_answered(!matches!(&answer, Err(fault) if is_no_response(fault.class)));
    answer
}

fn is_no_response(class: FaultClass) -> bool {
    match class {
        FaultClass::Unreachable | FaultClass::TimedOut => true,
        FaultClass::Refused
        | FaultClass::WrongCredentials
        | FaultClass::Tls
        | FaultClass::NoSuchSystem
        | FaultClass::Unsupported
        | FaultClass::Contradiction => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(may_have_run: bool) -> Result<CommandAnswer, BmcFault> {
        Err(BmcFault {
            class: FaultClass::Refused,
            message: "no".into(),
            may_have_run,
        })
    }

    #[test]
    fn a_level_has_answered_when_every_device_has() {
        use CommandAnswer::{Accepted, AcceptedWithoutTask, AlreadyThere};
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
            assert_eq!(combine_answers(answers.clone()), level, "{answers:?}");
        }
    }

    #[test]
    fn a_level_can_what_all_of_its_devices_can() {
        use PowerCommand::{Off, On, SoftOff};
        let about = |commands: &[PowerCommand]| BmcInfo {
            commands: commands.to_vec(),
            ..BmcInfo::default()
        };
        let of = |found: &[&[PowerCommand]]| {
            combine_abouts(found.iter().map(|one| about(one)).collect()).commands
        };
        assert_eq!(of(&[&[On, Off, SoftOff], &[On, Off]]), [On, Off]);
        assert_eq!(of(&[&[], &[On, Off]]), [On, Off]);
        assert_eq!(of(&[&[On, Off], &[]]), [On, Off]);
    }
}
