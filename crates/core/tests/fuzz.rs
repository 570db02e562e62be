//! Every text that `core` parses, on mutated inputs: no panic, errors of one line, and what was
//! read is written as it is read.

use std::fmt::Debug;

use dogwatch_core::drain::AdmissionRefusal;
use dogwatch_core::duration::{format_duration, parse_duration};
use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::lock::api_lock::{parse_waiting_hosts, render_waiting_hosts};
use dogwatch_core::lock::{HolderId, LockRecord, parse_slot_number};
use dogwatch_core::power::{BmcAddress, SystemId};
use dogwatch_core::reboot::{
    AbortRequest, LastReboot, ParsedAnnotation, RebootRecord, RebootRequest,
};
use dogwatch_core::remediation::{NodeBackup, RemediationKey, RemediationRecord};
use dogwatch_fuzz::{FuzzTarget, assert_one_line};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn target<'a>(name: &'a str, seeds: &'a [&'a [u8]]) -> FuzzTarget<'a> {
    FuzzTarget {
        name,
        crate_folder: env!("CARGO_MANIFEST_DIR"),
        seeds,
    }
}

/// Calls `check` with the inputs that are text.
fn check_texts(name: &str, seeds: &[&str], mut check: impl FnMut(&str)) {
    let seeds: Vec<&[u8]> = seeds.iter().map(|seed| seed.as_bytes()).collect();
    target(name, &seeds).check_inputs(|input| {
        if let Ok(text) = std::str::from_utf8(input) {
            check(text);
        }
    });
}

/// An annotation with JSON: what was read is written to the same value.
fn check_annotation<T>(name: &str, seeds: &[&str])
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    for seed in seeds {
        let read = ParsedAnnotation::<T>::from_text(Some(seed));
        assert!(
            read.get().is_some(),
            "the seed {seed} is not valid: {read:?}"
        );
    }
    check_texts(name, seeds, |text| {
        match ParsedAnnotation::<T>::from_text(Some(text)) {
            ParsedAnnotation::Absent => panic!("an annotation vanished"),
            ParsedAnnotation::Bad { why } => assert_one_line(&why),
            ParsedAnnotation::Is(value) => {
                let written = serde_json::to_string(&value).expect("what was read can be written");
                let again = ParsedAnnotation::<T>::from_text(Some(&written));
                assert_eq!(again, ParsedAnnotation::Is(value));
            }
        }
    });
}

const BOOT: &str = "6f1d1b0e-3c0b-4c39-9f5a-0d3a6d7a2b11";

#[test]
fn the_record_of_a_reboot() {
    let record = format!(
        r#"{{"phase":"draining","run":"n1-7","since":"2026-01-05T00:00:00Z","planned":"2026-01-05T00:00:00Z","trigger":{{"source":"/run/reboot-needed","reason":"kernel"}},"bootId":"{BOOT}","cordonedByUs":true,"lease":"dogwatch-default-0","attempts":2,"message":"x","serves":{{"/run/reboot-needed":"1:2:3"}},"failures":1,"retryAfter":"2026-01-05T00:00:00Z"}}"#
    );
    check_annotation::<RebootRecord>("reboot-record", &[&record]);
}

#[test]
fn the_record_of_the_last_reboot() {
    let last = format!(
        r#"{{"outcome":"Rebooted","planned":"2026-01-05T00:00:00Z","finished":"2026-01-05T00:10:00Z","oldBootId":"{BOOT}","newBootId":"a{BOOT}","trigger":{{"source":"request","reason":"k"}},"fingerprints":{{"request":"x"}}}}"#
    );
    check_annotation::<LastReboot>("last-reboot", &[&last]);
}

#[test]
fn the_requests_of_people() {
    check_annotation::<RebootRequest>(
        "reboot-request",
        &[
            r#"{"reason":"kernel","requester":"admin","notBefore":"2026-01-05T00:00:00Z","method":"PowerCycle"}"#,
            "{}",
        ],
    );
    check_annotation::<AbortRequest>("abort-request", &[r#"{"reason":"no","requester":"admin"}"#]);
}

#[test]
fn the_record_of_a_lock() {
    let record = format!(
        r#"{{"node":"n1","nodeUid":"u-1","bootId":"{BOOT}","group":"default","max":1,"since":"2026-01-05T00:00:00Z","runs":["n1-7","c1-2/3"]}}"#
    );
    check_annotation::<LockRecord>("lock-record", &[&record]);
}

#[test]
fn the_records_of_a_remediation() {
    check_annotation::<RemediationRecord>(
        "remediation-record",
        &[
            r#"{"subject":"machine/metal/m1","uid":"u","node":"n1","nodeUID":"v","bootID":"b","attempt":1,"steps":[{"step":"Requested","at":"2026-01-05T00:00:00Z"}]}"#,
        ],
    );
    check_texts(
        "node-backup",
        &[
            r#"{"name":"n1","uid":"u","labels":{"a":"b"},"annotations":{"c":"d"},"taints":[{"key":"k","effect":"NoSchedule"}]}"#,
        ],
        |text| {
            let _ = serde_json::from_str::<NodeBackup>(text);
        },
    );
    check_texts(
        "remediation-key",
        &[
            r#"{"mode":"hard","machineUID":"u-1"}"#,
            r#"{"mode":"hard","nodeUID":"u-1"}"#,
        ],
        |text| {
            for name in [
                dogwatch_core::remediation::MACHINE_KEY,
                dogwatch_core::remediation::REQUEST_PREFIX,
                text,
            ] {
                if let Some(key) = RemediationKey::parse_annotation(name, text) {
                    assert_eq!(key.name, name);
                }
            }
        },
    );
}

#[test]
fn addresses_of_bmcs() {
    check_texts(
        "bmc-address",
        &[
            "redfish://10.0.0.1:8443/redfish/v1/Systems/1",
            "idrac-virtualmedia+http://[fe80::1]/redfish/v1/Systems/System.Embedded.1",
            "ilo5-redfish://bmc.example.org",
            "ipmi://10.0.0.1:6230?privilegelevel=OPERATOR&ciphersuite=17",
            "10.0.0.1",
            "fence+fence_apc://pdu.example.org:161?plug=3&snmp_version=1",
        ],
        |text| match BmcAddress::parse(text) {
            Err(bad) => assert_one_line(&bad.0),
            Ok(address) => {
                let written = address.to_string();
                assert_one_line(&written);
                assert_eq!(BmcAddress::parse(&written), Ok(address), "{text:?}");
            }
        },
    );
}

#[test]
fn durations_and_numbers() {
    check_texts(
        "duration",
        &["90s", "1h30m", "1.5h", "0", "10ms"],
        |text| match parse_duration(text) {
            Err(error) => assert_one_line(&error.to_string()),
            Ok(time) => assert_eq!(parse_duration(&format_duration(time)), Ok(time)),
        },
    );
    check_texts(
        "unavailability-limit",
        &["1", "50%", "100%"],
        |text| match text.parse::<UnavailabilityLimit>() {
            Err(error) => assert_one_line(&error.to_string()),
            Ok(limit) => assert_eq!(limit.to_string().parse(), Ok(limit)),
        },
    );
    check_texts("slot-number", &["0", "17"], |text| {
        if let Some(number) = parse_slot_number(text) {
            assert_eq!(number.to_string(), text);
        }
    });
}

#[test]
fn what_others_write_on_leases_and_answer() {
    check_texts(
        "waiting-hosts",
        &[
            r#"[{"holder":"api/h1","since":"2026-01-05T00:00:00Z","reason":"OutsideWindow","message":"waits"}]"#,
        ],
        |text| {
            let hosts = parse_waiting_hosts(text);
            let written = render_waiting_hosts(&hosts).unwrap_or_default();
            assert!(parse_waiting_hosts(&written).len() <= hosts.len());
        },
    );
    check_texts("holder", &["node/n1", "api/h1", "fleetlock/g/m1"], |text| {
        if let Ok(holder) = HolderId::new(text) {
            assert_eq!(holder.as_str(), text);
            let _ = (holder.is_node(), holder.is_hashed());
        }
    });
    check_texts(
        "admission-message",
        &[
            "admission webhook \"w.example.org\" denied the request: not yet",
            "Internal error occurred: failed calling webhook \"w\": timeout",
            "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
        ],
        |text| {
            let _ = AdmissionRefusal::parse_message(text);
        },
    );
    check_texts(
        "system-id",
        &["6f1d1b0e-3c0b-4c39-9f5a-0d3a6d7a2b11"],
        |text| {
            let _ = SystemId::parse(text);
        },
    );
}
