//! A real BMC on loopback that speaks IPMI 2.0 over LAN: OpenIPMI's `ipmi_sim` (Debian's package
//! openipmi). Its chassis is a script of ours, whose behaviour can be changed at any time, or a
//! virtual machine ([`crate::vm`]).
//!
//! It supports the cipher suites 0 to 3; for 17 it answers that it has no such authentication.

use std::{
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{Error, ports, server_process::ServerProcess};

const PROGRAM_NAME: &str = "ipmi_sim";

/// A user with the privilege level `admin`.
pub const USERNAME: &str = "admin";
/// The password of both users. No secret: it opens a server on loopback that lives as long as a
/// test.
pub const PASSWORD: &str = "sekret16";
/// A user with the privilege level `user`.
pub const READER_USERNAME: &str = "reader";

/// The System GUID of a Dell server, as its BMC reports it.
pub(crate) const DELL_GUID: &str = "33484e4fc0b53180104b470044454c4c";
/// A System GUID that identifies no system.
pub const NO_GUID: &str = "00000000000000000000000000000000";

/// The System GUID of the system with this UUID: reversed bytes, as IPMI 2.0 §20.8 requires.
///
/// # Panics
/// When it is no UUID.
pub fn guid_of_uuid(uuid: &str) -> String {
    let digits: Vec<char> = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    assert_eq!(digits.len(), 32, "{uuid:?} is not a UUID");
    digits.rchunks(2).flatten().collect()
}

/// The behaviour of the chassis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChassisMode {
    /// It works; a soft power-off takes effect at once.
    Sound,
    /// It accepts a soft power-off without effect.
    IgnoresSoft,
    /// It accepts every command without effect.
    IgnoresAll,
    /// Each request fails inside the BMC.
    Fails,
    /// The power state is unreadable: the script prints no state.
    Garbage,
    /// Each request is answered after a minute.
    Hangs,
}

impl ChassisMode {
    fn mode_name(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::IgnoresSoft => "ignores-soft",
            Self::IgnoresAll => "ignores-all",
            Self::Fails => "fails",
            Self::Garbage => "garbage",
            Self::Hangs => "hangs",
        }
    }
}

/// `get power` prints `power:0` or `power:1`; `set power`, `set shutdown`, `set reset`, `set boot`
/// take a value. The script logs a `set` before it obeys, so an entry in the log proves that the
/// command arrived.
const CHASSIS_SCRIPT: &str = r#"#!/bin/sh
cd "${0%/*}" || exit 1
mode=$(cat mode)
[ "$1" = set ] && echo "$2 $3" >> commands
case "$mode" in
  hangs) sleep 60 ;;
  fails) exit 1 ;;
  garbage) [ "$1" = get ] && { echo maybe; exit 0; } ;;
  ignores-all) [ "$1" = set ] && exit 0 ;;
  ignores-soft) [ "$1 $2" = "set shutdown" ] && exit 0 ;;
esac
case "$1 $2" in
  "get power") echo "power:$(cat power)" ;;
  "set power") echo "$3" > power.new && mv power.new power ;;
  "set shutdown") echo 0 > power.new && mv power.new power ;;
esac
"#;

const EMULATION_CONFIG: &str = "mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
";

/// A running BMC. Dropping it removes its process and files.
#[derive(Debug)]
pub struct IpmiSim {
    service: ServerProcess,
    port: u16,
}

impl IpmiSim {
    /// Starts a BMC with our chassis script; it answers when this returns.
    pub async fn start(on: bool) -> Result<Self, Error> {
        Self::start_with_guid(on, DELL_GUID).await
    }

    /// The same with this System GUID: [`guid_of_uuid`], or [`NO_GUID`].
    pub async fn start_with_guid(on: bool, guid: &str) -> Result<Self, Error> {
        let mut service = ServerProcess::new(PROGRAM_NAME)?;
        let script = service.folder().join("chassis");
        write_atomically(&script, CHASSIS_SCRIPT)?;
        write_atomically(&service.folder().join("power"), if on { "1" } else { "0" })?;
        write_atomically(
            &service.folder().join("mode"),
            ChassisMode::Sound.mode_name(),
        )?;
        let chassis = format!("chassis_control \"/bin/sh {}\"\n", script.display());
        let port = start_ipmi_sim(&mut service, &chassis, guid).await?;
        Ok(Self { service, port })
    }

    /// The UDP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `ipmi://127.0.0.1:PORT`, for `spec.bmc.address`.
    pub fn address(&self) -> String {
        format!("ipmi://127.0.0.1:{}", self.port)
    }

    pub fn set_chassis(&self, chassis: ChassisMode) -> Result<(), Error> {
        write_atomically(&self.service.folder().join("mode"), chassis.mode_name())
    }

    /// Whether the host has power, whatever the BMC reports.
    pub fn is_on(&self) -> Result<bool, Error> {
        Ok(self.read_file("power")?.trim() == "1")
    }

    /// Switches the host's power without the BMC.
    pub fn set_power(&self, on: bool) -> Result<(), Error> {
        write_atomically(
            &self.service.folder().join("power"),
            if on { "1" } else { "0" },
        )
    }

    /// The commands that the chassis received, in order: `power 0`, `power 1`, `shutdown 1`.
    pub fn chassis_commands(&self) -> Result<Vec<String>, Error> {
        match self.read_file("commands") {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            // The first command creates the file.
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    fn read_file(&self, name: &str) -> Result<String, Error> {
        let path = self.service.folder().join(name);
        fs::read_to_string(&path).map_err(Error::io_error("read", path))
    }
}

/// Starts `ipmi_sim` in this service's folder on a free port, with these lines in its
/// configuration.
pub(crate) async fn start_ipmi_sim(
    service: &mut ServerProcess,
    chassis: &str,
    guid: &str,
) -> Result<u16, Error> {
    let folder = service.folder().to_owned();
    let port = ports::find_free_port()?;
    write_atomically(
        &folder.join("lan.conf"),
        &render_configuration(port, chassis, guid),
    )?;
    write_atomically(&folder.join("sim.emu"), EMULATION_CONFIG)?;
    let state = folder.join("state");
    fs::create_dir_all(&state).map_err(Error::io_error("make", &state))?;
    service.spawn_process(&mut build_command(&folder))?;
    service
        .wait_until_answering(async || probe_bmc(port).is_some())
        .await?;
    Ok(port)
}

/// `-n` starts it without a console.
fn build_command(folder: &Path) -> Command {
    let file = |name: &str| -> PathBuf { folder.join(name) };
    let mut command = Command::new(PROGRAM_NAME);
    command
        .current_dir(folder)
        .arg("-c")
        .arg(file("lan.conf"))
        .arg("-f")
        .arg(file("sim.emu"))
        .arg("-s")
        .arg(file("state"))
        .arg("-n");
    command
}

/// Without `guid` it opens no RMCP+ session.
fn render_configuration(port: u16, chassis: &str, guid: &str) -> String {
    format!(
        r#"name "bmc"
set_working_mc 0x20
startlan 1
  addr 127.0.0.1 {port}
  priv_limit admin
  allowed_auths_callback none md2 md5 straight
  allowed_auths_user md2 md5
  allowed_auths_operator md2 md5
  allowed_auths_admin md2 md5
  guid {guid}
endlan
{chassis}user 2 true "{USERNAME}" "{PASSWORD}" admin 10 none md2 md5 straight
user 3 true "{READER_USERNAME}" "{PASSWORD}" user 10 none md2 md5 straight
"#
    )
}

/// Asks for the channel's authentication capabilities, which needs no session (IPMI 2.0 §22.13).
fn probe_bmc(port: u16) -> Option<()> {
    const CAPABILITIES_REQUEST: [u8; 23] = [
        0x06, 0x00, 0xff, 0x07, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x20, 0x18, 0xc8, 0x81, 0x00,
        0x38, 0x0e, 0x04, 0x35,
    ];
    let socket = UdpSocket::bind(("127.0.0.1", 0)).ok()?;
    socket
        .set_read_timeout(Some(Duration::from_millis(200)))
        .ok()?;
    socket
        .send_to(&CAPABILITIES_REQUEST, ("127.0.0.1", port))
        .ok()?;
    socket.recv(&mut [0; 64]).ok().map(drop)
}

pub(crate) fn write_atomically(path: &Path, content: &str) -> Result<(), Error> {
    // By a rename, so that a script that reads it meanwhile sees the old or the new file.
    let partial = path.with_extension("partial");
    fs::write(&partial, content).map_err(Error::io_error("write", &partial))?;
    fs::rename(&partial, path).map_err(Error::io_error("rename", &partial))
}
