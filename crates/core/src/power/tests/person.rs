//! A person confirms that a host is off. Source: specification §4.2, manual confirmation.

use super::world::*;
use crate::power::*;

const OTHER: &str = "reboot.metal3.io/other";

fn proved(world: &World) -> Option<PowerOffProof> {
    find_off_proof(&world.seen, &world.config, world.now())
}

/// A host that must be off, and whose BMC is dead.
fn dead() -> World {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Unreachable);
    world.run(60);
    assert_eq!(proved(&world), None);
    world
}

pub(super) fn confirm(world: &mut World) {
    let at = world.now().wall;
    let word =
        OffConfirmation::for_host(&world.seen.host, "eve@example.org", at, "pulled the plug");
    world.annotate(CONFIRMED_OFF_ANNOTATION, &word.annotation_value());
    world.tick();
}

fn is_for(world: &World, name: &str) -> bool {
    let all = reboot_annotations(&world.seen.host);
    let request = all.iter().find(|request| request.name == name).unwrap();
    proved(world).is_some_and(|proof| proof.covers_annotation(request))
}

#[test]
fn a_persons_word_proves_off_where_the_bmc_cannot_be_read_for_the_keys_that_stood_there() {
    let mut world = dead();
    let before = world.mono();
    confirm(&mut world);
    let proof = proved(&world).unwrap();
    let ProofSource::Person { by, reason, .. } = proof.source() else {
        panic!("{proof:?}");
    };
    assert_eq!(
        (by.as_str(), reason.as_str()),
        ("eve@example.org", "pulled the plug")
    );
    assert_eq!(proof.off_readings(), None);
    assert!(
        proof.valid_since() > before,
        "{:?} {before:?}",
        proof.valid_since()
    );
    let seen = proof.valid_since();
    assert!(is_for(&world, KEY));
    assert!(world.said(PowerReason::OffConfirmedByPerson));
    world.run(600);
    assert_eq!(proved(&world).unwrap().valid_since(), seen, "seen once");
    // A key that came later needs a confirmation of its own.
    world.annotate(OTHER, HARD);
    world.tick();
    assert!(is_for(&world, KEY) && !is_for(&world, OTHER));
    confirm(&mut world);
    assert!(is_for(&world, KEY) && is_for(&world, OTHER));
}

#[test]
fn power_control_goes_on_as_if_nobody_had_said_anything() {
    let mut world = dead();
    let before = world.sent.len();
    confirm(&mut world);
    world.run(300);
    assert!(world.sent.len() > before, "it keeps trying");
    assert_eq!(world.power().off_confirmed_at, None);
    assert_eq!(world.status().powered_on, Some(true));
    assert_eq!(
        current_power(&world.seen, &world.config, world.now()),
        CurrentPower::Unknown
    );
    world.bmcs[0].default_says = Says::Truth;
    world.bmcs[0].default_takes = Takes::Runs(300);
    world.until_confirmed();
    world.run(70);
    let source = proved(&world).unwrap().source().clone();
    assert!(
        matches!(source, ProofSource::OurCommand { .. }),
        "{source:?}"
    );
}

#[test]
fn a_word_is_void_as_soon_as_its_key_goes_also_when_the_same_key_comes_again() {
    let mut world = dead();
    confirm(&mut world);
    assert!(is_for(&world, KEY));
    world.remove(KEY);
    world.tick();
    assert_eq!(proved(&world), None);
    assert!(world.said(PowerReason::ConfirmationWithoutKey));
    world.annotate(KEY, HARD);
    world.run(120);
    assert_eq!(proved(&world), None, "older than the key");
    world.remove(CONFIRMED_OFF_ANNOTATION);
    world.tick();
    confirm(&mut world);
    assert!(is_for(&world, KEY), "said anew");
}

#[test]
fn a_word_is_for_what_it_names_whoever_reads_it_first() {
    let mut world = dead();
    let at = world.now().wall;
    let word = OffConfirmation::for_host(&world.seen.host, "eve", at, "pulled the plug");
    world.annotate(OTHER, HARD);
    world.annotate(CONFIRMED_OFF_ANNOTATION, &word.annotation_value());
    world.tick();
    assert!(
        is_for(&world, KEY) && !is_for(&world, OTHER),
        "seen at once"
    );
    // A new leader sees annotation and confirmation at the same moment.
    world.annotate(KEY, r#"{"mode":"hard","machineUID":"2"}"#);
    world.crash(1_000);
    world.run(30);
    assert_eq!(proved(&world), None);
    world.annotate(KEY, HARD);
    world.crash(1_000);
    world.run(30);
    assert!(is_for(&world, KEY) && !is_for(&world, OTHER));
}

#[test]
fn a_word_that_comes_with_its_key_in_one_write_is_for_it() {
    let mut world = dead();
    let mut keyed = HostSnapshot::clone(&world.seen.host);
    keyed.annotations.insert(OTHER.into(), HARD.into());
    let word = OffConfirmation::for_host(&keyed, "eve", world.now().wall, "pulled the plug");
    world.annotate(OTHER, HARD);
    world.annotate(CONFIRMED_OFF_ANNOTATION, &word.annotation_value());
    world.tick();
    assert!(is_for(&world, OTHER) && is_for(&world, KEY));
}

#[test]
fn a_word_for_another_value_of_the_key_is_for_another_request() {
    let mut world = dead();
    confirm(&mut world);
    world.annotate(KEY, r#"{"mode":"hard","machineUID":"2"}"#);
    world.tick();
    assert_eq!(proved(&world), None);
    let without_key = PowerReason::ConfirmationWithoutKey.as_str();
    let mut events = world.events.iter();
    let said = events.find(|(_, why, _)| *why == without_key);
    let (_, _, text) = said.expect("it is said");
    let start = format!("eve@example.org confirmed off for {KEY}");
    assert!(text.starts_with(&start), "{text}");
    assert!(text.ends_with("confirm again"), "{text}");
}

#[test]
fn a_reading_that_shows_life_contradicts_a_word_until_it_is_older_than_two_polls() {
    for reading in [
        PowerReading::On,
        PowerReading::PoweringOn,
        PowerReading::PoweringOff,
    ] {
        let mut world = dead();
        world.bmcs[0].default_says = Says::Lie(reading);
        world.run(70);
        confirm(&mut world);
        assert_eq!(proved(&world), None, "{reading:?}");
        assert!(
            world.said(PowerReason::ConfirmationContradicted),
            "{reading:?}"
        );
        world.run(300);
        assert_eq!(proved(&world), None, "{reading:?}");
        // A later failed reading does not hide the running machine.
        world.bmcs[0].default_says = Says::Fails(FaultClass::TimedOut);
        for _ in 0..(100 * 20) {
            world.tick();
            assert_eq!(proved(&world), None, "{reading:?}");
        }
        world.run(30);
        assert!(is_for(&world, KEY), "{reading:?}: it is silent now");
    }
}

#[test]
fn what_a_bmc_said_before_somebody_pulled_the_plug_counts_until_it_is_read_again() {
    let mut world = dead();
    world.bmcs[0].default_says = Says::Lie(PowerReading::On);
    world.run(30);
    world.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    confirm(&mut world);
    world.until("it is read again", |world| {
        let newest = world.seen.memory.readings.first();
        newest.is_some_and(|read| read.result.is_err())
    });
    world.run(1);
    assert!(is_for(&world, KEY));
}

#[test]
fn every_level_may_contradict_a_word() {
    let mut world = dead();
    world.add_level();
    world.bmcs[1].default_takes = Takes::Fails(FaultClass::Refused);
    world.bmcs[1].default_says = Says::Lie(PowerReading::On);
    world.until("the next level is read", |world| {
        world
            .seen
            .memory
            .readings
            .iter()
            .any(|read| read.level == 1)
    });
    confirm(&mut world);
    assert_eq!(proved(&world), None);
}

#[test]
fn a_persons_word_counts_where_power_control_is_refused() {
    type Change = fn(&mut World);
    let rows: [(&str, Change); 6] = [
        ("no BMC", |world| {
            world.seen.host_mut().levels.clear();
            world.seen.access.clear();
            world.seen.memory.forget_bmc();
        }),
        ("no Secret", |world| {
            world.seen.access[0] = LevelAccess::Missing {
                reason: PowerReason::SecretNotFound,
                message: "create it".into(),
            };
        }),
        ("disablePowerOff", |world| {
            world.seen.host_mut().disable_power_off = true;
        }),
        ("shared", |world| {
            world.seen.shared_with = vec![HostName::new("hosts", "h2")];
        }),
        ("theirs", |world| {
            world.seen.owner = HostOwner::Metal3 {
                leader: "bmo-1".into(),
            };
        }),
        ("nobody knows whose", |world| {
            world.seen.owner = HostOwner::NotYetKnown;
        }),
    ];
    for (name, change) in rows {
        let mut world = dead();
        change(&mut world);
        world.run(10);
        confirm(&mut world);
        assert!(is_for(&world, KEY), "{name}");
    }
}

#[test]
fn a_word_that_lacks_something_is_worth_nothing_and_it_is_said() {
    let id = reboot_annotations(&host(&[(KEY, HARD)], true))
        .remove(0)
        .id();
    let whole = format!(
        r#"{{"by":"eve","at":"2026-11-22T03:00:00Z","reason":"pulled the plug","for":["{id}"]}}"#
    );
    let mut world = dead();
    world.annotate(CONFIRMED_OFF_ANNOTATION, &whole);
    world.tick();
    assert!(is_for(&world, KEY), "the format as it is written");
    for (text, says) in [
        (String::new(), "is not a JSON"),
        ("pulled the plug".to_owned(), "is not a JSON"),
        ("[]".to_owned(), "is not a JSON"),
        (whole.replace("eve", " "), "nothing in by"),
        (whole.replace("pulled the plug", ""), "nothing in reason"),
        (whole.replace(&format!("\"{id}\""), ""), "nothing in for"),
        (
            whole.replace("\"reason\"", "\"why\""),
            "missing field `reason`",
        ),
        (whole.replace("\"by\"", "\"who\""), "missing field `by`"),
        (whole.replace("03:00:00Z", "noon"), "is not a JSON"),
        (
            whole.replace(",\"for\"", ",\"keys\""),
            "missing field `for`",
        ),
    ] {
        let mut world = dead();
        world.annotate(CONFIRMED_OFF_ANNOTATION, &text);
        world.tick();
        assert_eq!(proved(&world), None, "{text}");
        let mut events = world.events.iter();
        let said = events.find(|(_, why, _)| *why == PowerReason::InvalidConfirmation.as_str());
        assert!(
            said.is_some_and(|(_, _, said)| said.contains(says)),
            "{text}: {said:?}"
        );
        let condition = world.condition("PowerAsWanted").message;
        assert!(condition.contains(says), "{condition}");
    }
}

#[test]
fn who_says_it_comes_first_and_only_once_as_the_admission_policy_relies_on() {
    let host = host(&[(KEY, HARD), (BASE, "")], true);
    let at = "2026-11-22T03:00:00Z".parse().unwrap();
    let word = OffConfirmation::for_host(&host, "eve", at, "pulled the plug");
    assert_eq!(
        word.keys.len(),
        1,
        "of keys, not of what is set and forgotten"
    );
    let text = word.annotation_value();
    assert!(text.starts_with(r#"{"by":"eve","#), "{text}");
    let read = |text: String| {
        let mut host = host.clone();
        host.annotations
            .insert(CONFIRMED_OFF_ANNOTATION.into(), text);
        OffConfirmation::read_from_host(&host).unwrap()
    };
    assert_eq!(read(text.clone()), Ok(word));
    for twice in [r#","by":"adam"}"#, r#","\u0062y":"adam"}"#] {
        let text = text.replace('}', twice);
        let said = read(text.clone()).unwrap_err().to_string();
        assert!(said.contains("duplicate field `by`"), "{text}: {said}");
    }
}

#[test]
fn a_key_that_nobody_obeys_is_not_confirmed_by_a_person_either() {
    let mut world = dead();
    world.seen.host_mut().status.provisioning = Some("inspecting".into());
    world.seen.host_mut().status.power.obeyed_in = Some("inspecting".into());
    confirm(&mut world);
    assert_eq!(proved(&world), None, "nothing keeps the host off");
}
