//! What ipmitool prints, on mutated inputs.

use dogwatch_fuzz::{FuzzTarget, assert_one_line};

use super::answer::{parse_ipmitool_output, parse_raw_bytes};
use super::guid::uuid_from_guid;
use super::{fault_from_error, parse_chassis_status};
use crate::PowerReading;
use crate::child::ChildExit;

const PASSWORD: &str = "sekret-16-letters";

/// Off is a whole chassis status, printed by an ipmitool that ended well; no failure tells the
/// password.
#[test]
fn no_output_is_off_but_a_whole_chassis_status() {
    let seeds: [&[u8]; 6] = [
        b"\x00 00 00 00\n\0",
        b"\x00 61 10 40 70\n\0",
        b"\x01\0Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x2 rsp=0xd4): Insufficient\n",
        b"\x01\0Set Session Privilege Level to ADMINISTRATOR failed: x\n",
        b"\x01\0Error: sekret-16-letters RAKP 2 HMAC is invalid\n",
        b"\x00 4c 4c 45 44 00 33 31 10 80 32 b8 c0 4f 4b 4d 32\n\0",
    ];
    let crate_folder = env!("CARGO_MANIFEST_DIR");
    let name = "ipmitool-output";
    let target = FuzzTarget {
        name,
        crate_folder,
        seeds: &seeds,
    };
    target.check_inputs(|input| {
        let (code, output) = input.split_first().unwrap_or((&9, &[]));
        let text = String::from_utf8_lossy(output);
        let (stdout, stderr) = text.split_once('\0').unwrap_or((&text, ""));
        let ended = ChildExit {
            code: (*code != 255).then_some(i32::from(*code)),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        };
        let reading = parse_ipmitool_output(ended, PASSWORD)
            .map_err(fault_from_error)
            .and_then(|printed| {
                let bytes = parse_raw_bytes(&printed)?;
                let _ = uuid_from_guid(&bytes);
                parse_chassis_status(&bytes)
            });
        if reading == Ok(PowerReading::Off) {
            assert_eq!(*code, 0);
            assert!(stdout.split_whitespace().count() >= 3, "{stdout:?}");
        }
        if let Err(fault) = reading {
            assert_one_line(&fault.message);
            assert!(!fault.message.contains(PASSWORD), "{}", fault.message);
        }
    });
}
