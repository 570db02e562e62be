//! A host dies together with its BMC before it has a key: a person's command adds the key and the
//! confirmation.

use super::super::super::*;
use super::super::kit::*;
use super::super::town::Town;
use super::desk::{DELETE, TAINT};
use crate::power::tests::world::{Says, Takes};
use crate::power::{CONFIRMED_OFF_ANNOTATION, FaultClass, OffConfirmation};

/// What asks for the remediation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Machine,
    Node,
    Request(RemediationStrategy),
}

const FORMS: [Form; 4] = [
    Form::Machine,
    Form::Node,
    Form::Request(DELETE),
    Form::Request(TAINT),
];

/// The machine and its BMC have no power; Kubernetes has noticed it, and a remediation is
/// requested.
fn dead(form: Form) -> Town {
    let mut town = Town::new(&["a"]);
    if form == Form::Node {
        town.machines.clear();
        town.site("a").power.annotate(NODE, "n-a");
    }
    lose_power(&mut town, "a");
    town.run(120);
    match form {
        Form::Machine => town.mark("a"),
        Form::Node => {
            let node = town.nodes.get_mut(&node_name("a")).unwrap();
            node.seen.needs_remediation = true;
        }
        Form::Request(strategy) => town.ask("a", strategy),
    }
    town
}

/// The machine and its BMC lose their power.
fn lose_power(town: &mut Town, name: &str) {
    let power = &mut town.site(name).power;
    power.set_power(false);
    power.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    power.bmcs[0].default_takes = Takes::Fails(FaultClass::Unreachable);
}

/// What `dogwatch confirm-off` writes: one patch.
fn confirm(town: &mut Town, name: &str) {
    let world = town.world();
    let cases = discover_remediations(&world);
    let key = remediation_to_confirm(&cases, town.host(name))
        .unwrap()
        .key
        .clone();
    let keyed = key.with_key_on(town.host(name));
    let word = OffConfirmation::for_host(&keyed, "eve", town.now().wall, "pulled the plug");
    let power = &mut town.site(name).power;
    power.annotate(&key.annotation_name(), &key.annotation_value());
    power.annotate(CONFIRMED_OFF_ANNOTATION, &word.annotation_value());
}

fn revive(town: &mut Town, name: &str) {
    let power = &mut town.site(name).power;
    power.bmcs[0].default_says = Says::Truth;
    power.bmcs[0].default_takes = Takes::Runs(300);
}

fn is_released(town: &Town) -> bool {
    let node = town.node("a");
    node.is_none_or(|node| node.seen.out_of_service) && !town.is_keyed("a")
}

fn is_ended(town: &Town) -> bool {
    let is_open = |name: &str| {
        town.request(name)
            .is_some_and(|it| it.status.ended_at.is_none())
    };
    !is_open("a")
        && record_on_host(town.host("a")).is_some_and(|record| record.ended_at().is_some())
        && town.leases.is_empty()
        && !town.keeps("a")
}

/// From the confirmation to the end; the BMC answers again after the release.
fn goes_through(town: &mut Town) {
    town.until("released, and let go", is_released);
    assert!(
        !town
            .host("a")
            .annotations
            .contains_key(CONFIRMED_OFF_ANNOTATION)
            || town.steps > 0
    );
    town.run(30);
    assert!(
        !town.is_on("a") && !is_ended(town),
        "nobody can power it on"
    );
    revive(town, "a");
    town.site("a").is_connected = true;
    town.until("ended", is_ended);
}

fn position(town: &Town, what: &str) -> usize {
    let mut written = town.written.iter();
    written
        .position(|it| it == what)
        .unwrap_or_else(|| panic!("no {what}: {:?}", town.written))
}

#[test]
fn a_host_that_died_with_its_bmc_is_released_on_a_persons_command_and_comes_back() {
    for form in FORMS {
        let mut town = dead(form);
        town.run(90);
        assert!(!town.is_keyed("a") && town.leases.is_empty(), "{form:?}");
        let (_, said) = town.reasons.last().unwrap();
        assert_eq!(*said, RemediationReason::PowerUnknown, "{form:?}");
        confirm(&mut town, "a");
        goes_through(&mut town);
        let node = town.node("a").unwrap();
        assert!(
            node.seen.ready && !node.seen.being_fenced && !node.seen.out_of_service,
            "{form:?}"
        );
        assert!(town.is_on("a"), "{form:?}");
        for before in ["TakeLease", "MarkNode", "WriteRecord"] {
            assert!(
                position(&town, before) < position(&town, "Release"),
                "{form:?}"
            );
        }
        assert!(!town.written.contains(&"AddKey".to_owned()), "{form:?}");
        assert!(town.machines.values().all(|machine| machine.need.is_none()));
        let record = record_on_host(town.host("a")).unwrap();
        for step in [
            RemediationStep::Requested,
            RemediationStep::KeyAdded,
            RemediationStep::KeyRemoved,
            RemediationStep::NodeReady,
        ] {
            assert!(
                record.time_of_step(step).is_some(),
                "{form:?} {step:?} {record:?}"
            );
        }
        assert!(
            record.steps.is_sorted_by_key(|stamp| stamp.at),
            "{record:?}"
        );
    }
}

#[test]
fn a_leader_that_dies_at_any_step_of_it_is_carried_on() {
    for form in FORMS {
        for step in 1.. {
            let mut town = dead(form);
            // Some eighty whole remediations: seldom decisions keep the test short.
            town.every = 1_000;
            town.run(30);
            confirm(&mut town, "a");
            let before = town.steps;
            town.dies_at = Some(before + step);
            goes_through(&mut town);
            assert!(town.is_on("a"), "{form:?} step {step}");
            let node = town.node("a").unwrap();
            assert!(
                !node.seen.being_fenced && !node.seen.out_of_service,
                "{form:?} step {step}"
            );
            if town.steps < before + step {
                assert!(step > 14, "{form:?} {step}");
                break;
            }
        }
    }
}

#[test]
fn a_request_that_nobody_had_taken_up_yet_is_served_on_a_persons_command_all_the_same() {
    for strategy in [DELETE, TAINT] {
        let mut town = dead(Form::Request(strategy));
        confirm(&mut town, "a");
        goes_through(&mut town);
        let status = town.status("a");
        let source = status.proof.map(|proof| proof.source);
        assert_eq!(source.as_deref(), Some("Person"));
        assert_eq!(status.boot_id.as_deref(), Some("boot-0"));
        assert_eq!(town.condition("a", "Succeeded").unwrap().0, "True");
    }
}

#[test]
fn a_command_that_comes_late_in_an_attempt_is_not_cut_short() {
    let mut town = dead(Form::Request(DELETE));
    town.until("taken up", |town| town.attempt("a").is_some());
    let long = DELETE.timeout.as_secs();
    town.run(long - 5);
    assert_eq!(town.attempt("a").unwrap().number, 1);
    confirm(&mut town, "a");
    town.until("keyed", |town| town.attempt("a").unwrap().key_at.is_some());
    goes_through(&mut town);
    assert_eq!(town.attempt("a").unwrap().number, 1);
}

#[test]
fn a_bmc_that_comes_to_life_before_the_release_and_says_on_goes_before_a_persons_word() {
    for form in FORMS {
        let mut town = dead(form);
        town.run(30);
        // They were at the wrong rack: the machine runs.
        town.site("a").power.set_power(true);
        revive(&mut town, "a");
        confirm(&mut town, "a");
        town.until("cut", |town| !town.is_on("a"));
        assert!(!town.written.contains(&"Release".to_owned()), "{form:?}");
        town.site("a").is_connected = true;
        town.until("ended", is_ended);
        assert!(
            position(&town, "WriteRecord") < position(&town, "Release"),
            "{form:?}"
        );
        assert!(town.is_on("a"), "{form:?}");
    }
}

#[test]
fn two_control_plane_hosts_that_a_person_confirmed_off_do_not_wait_for_each_other() {
    let names = ["a", "b"];
    let mut town = Town::new(&names);
    for name in names {
        town.machine(name).control_plane = true;
        lose_power(&mut town, name);
    }
    town.run(120);
    // A third one is rebooted as planned.
    town.leases.insert(node_name("c"), "planned".into());
    for name in names {
        town.mark(name);
    }
    town.run(30);
    for name in names {
        confirm(&mut town, name);
    }
    town.run(30);
    town.leases.remove(&node_name("c"));
    town.until("both released", |town| {
        names.iter().all(|name| town.node(name).is_none())
    });
    for name in names {
        assert!(town.leases.contains_key(&node_name(name)), "it counts");
        revive(&mut town, name);
        town.site(name).is_connected = true;
    }
    town.until("both back", |town| {
        let is_back = |name: &&str| town.node(name).is_some_and(|node| node.seen.ready);
        names.iter().all(is_back) && town.leases.is_empty()
    });
}

#[test]
fn a_persons_word_is_for_one_thing_that_may_begin_and_for_nothing_else() {
    let says = |world: &RemediationSnapshot| {
        let host = &world.hosts[&host_name("a")];
        let cases = discover_remediations(world);
        remediation_to_confirm(&cases, host)
            .map(|case| case.subject.to_string())
            .map_err(|text| text.clone())
    };
    let refused = |world: &RemediationSnapshot, part: &str| {
        let text = says(world).unwrap_err();
        assert!(text.contains(part), "{text}");
    };
    let marked_a = || world([marked("a")], [host("a")], [node("a")]);
    assert_eq!(says(&marked_a()).unwrap(), "machine/machines/a");
    refused(
        &world([machine("a")], [host("a")], [node("a")]),
        "no Machine, Node or request",
    );
    let mut other = marked("b");
    other.host = Some("machines/h-a".into());
    refused(
        &world([marked("a"), other.clone()], [host("a")], []),
        "machine/machines/b",
    );
    other.need = None;
    refused(&world([marked("a"), other], [host("a")], []), "both linked");
    let paused = ObservedMachine {
        paused: true,
        ..marked("a")
    };
    refused(&world([paused], [host("a")], []), "paused");
    let mut raw = host("a");
    raw.status.provisioning = Some("available".into());
    refused(&world([marked("a")], [raw], []), "not provisioned");
    let mut foreign = host("a");
    foreign
        .annotations
        .insert(MACHINE_KEY.into(), "theirs".into());
    refused(&world([marked("a")], [foreign], []), "another value");
}
