//! What fence agents print, on mutated inputs.

use dogwatch_fuzz::{FuzzTarget, assert_one_line};

use super::answer::{parse_command_answer, parse_power_status};
use super::metadata::AgentMetadata;
use crate::PowerReading;
use crate::child::ChildExit;

const PASSWORD: &str = "sekret-16-letters";
const METADATA: &str = r#"<?xml version="1.0" ?><resource-agent name="fence_plug"><parameters><parameter name="plug" unique="0"><content type="string" default="1"/></parameter></parameters><actions><action name="on" automatic="1"/><action name="off"/></actions></resource-agent>"#;
const ENTITIES: &str = r#"<!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><resource-agent><actions><action name="&c;"/></actions></resource-agent>"#;

fn check_bytes(name: &str, seeds: &[&[u8]], check: impl FnMut(&[u8])) {
    let crate_folder = env!("CARGO_MANIFEST_DIR");
    let target = FuzzTarget {
        name,
        crate_folder,
        seeds,
    };
    target.check_inputs(check);
}

#[test]
fn metadata_of_any_form_is_read_or_refused_in_one_line() {
    let seeds = [METADATA.as_bytes(), ENTITIES.as_bytes()];
    check_bytes("fence-metadata", &seeds, |input| {
        let text = String::from_utf8_lossy(input);
        match AgentMetadata::parse("fence_plug", &text) {
            Ok(metadata) => drop(metadata.first_known_option(&["plug", "port"])),
            Err(fault) => assert_one_line(&fault.message),
        }
    });
}

/// Off needs the exit code and the words; no failure tells the password.
#[test]
fn no_output_is_off_but_the_one_that_says_so() {
    let seeds: [&[u8]; 5] = [
        b"\x02Status: OFF\n\0",
        b"\x00Status: ON\n\0",
        b"\x01\0ERROR: Unable to connect/login to fencing device\n",
        b"\x01\x002026-11-21 23:34:51,522 ERROR: sekret-16-letters is wrong\n",
        b"\x00Success: Already OFF\n\0",
    ];
    check_bytes("fence-output", &seeds, |input| {
        let (code, output) = input.split_first().unwrap_or((&9, &[]));
        let text = String::from_utf8_lossy(output);
        let (stdout, stderr) = text.split_once('\0').unwrap_or((&text, ""));
        let ended = ChildExit {
            code: (*code != 255).then_some(i32::from(*code)),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        };
        let reading = parse_power_status("fence_plug", &ended, PASSWORD);
        let says_off = stdout.lines().any(|line| line.trim() == "Status: OFF");
        if reading == Ok(PowerReading::Off) {
            assert!(*code == 2 && says_off, "{ended:?}");
        }
        let command = parse_command_answer("fence_plug", &ended, PASSWORD);
        for fault in [reading.err(), command.err()].into_iter().flatten() {
            assert_one_line(&fault.message);
            assert!(!fault.message.contains(PASSWORD), "{}", fault.message);
        }
    });
}
