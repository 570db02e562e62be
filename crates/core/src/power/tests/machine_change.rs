//! What is remembered of the machine behind an address, and for how long. Source: specification
//! §4.1.

use super::identity::*;
use super::world::*;
use crate::power::*;

#[test]
fn an_answer_without_a_uuid_does_not_hide_that_another_machine_answers_later() {
    for (readings_have_uuid, nothing) in [
        (true, None),
        (false, None),
        (true, Some("00000000-0000-0000-0000-000000000000")),
        (false, Some("00000000-0000-0000-0000-000000000000")),
    ] {
        let mut world = World::new(&[(KEY, HARD)], true, true);
        world.readings_have_uuid = readings_have_uuid;
        world.about.system_uuid = Some(ONE.into());
        world.until_confirmed();
        world.about.system_uuid = nothing.map(str::to_owned);
        world.run(700);
        let known = world.seen.memory.bmc_infos.get(0).unwrap();
        assert_eq!(known.system_uuid.as_deref(), nothing);
        let of_proof = proof(&world).unwrap();
        assert_eq!(of_proof.system_uuid(), nothing, "not of the last one known");
        world.about.system_uuid = Some(OTHER.into());
        if !readings_have_uuid {
            world.until("it is checked", |world| {
                bmc_system_uuid(&world.seen) == Some(OTHER)
            });
        }
        world.set_power(true);
        world.run(600);
        assert!(world.is_on() && world.power_offs() == 1, "{nothing:?}");
        assert_eq!(world.because(), PowerReason::OtherMachineAnswers);
        assert_eq!(proof(&world), None);
    }
}
