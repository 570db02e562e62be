//! A real BMC on loopback that speaks IPMI 2.0 over LAN: OpenIPMI's `ipmi_sim` (Debian's package openipmi). Behind it stands
//! a script of ours for the chassis, whose ways can be changed at any time; or a virtual machine ([`crate::vm`]).
//!
//! It knows the cipher suites 0 to 3; asked for 17 it says that it has no such authentication.

use std::{
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Error, ports, service::Service};

const NAME: &str = "ipmi_sim";

/// Who may do everything.
pub const USERNAME: &str = "admin";
/// The same password for both users. No secret: it opens a server on loopback that lives as long as a test.
pub const PASSWORD: &str = "sekret16";
/// Who has the privilege level `user`.
pub const READER: &str = "reader";

/// The System GUID of a Dell server, as its BMC tells it.
pub(crate) const DELL: &str = "33484e4fc0b53180104b470044454c4c";
/// A System GUID that names no system.
pub const NO_GUID: &str = "00000000000000000000000000000000";

/// The System GUID of the system with this UUID: backwards, as IPMI 2.0 §20.8 wants it.
///
/// # Panics
/// When it is no UUID.
pub fn guid_of(uuid: &str) -> String {
    let digits: Vec<char> = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    assert_eq!(digits.len(), 32, "{uuid:?} is no UUID");
    digits.rchunks(2).flatten().collect()
}

/// How the chassis behaves from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chassis {
    /// As it should; a soft power-off is carried out at once.
    Sound,
    /// A soft power-off is taken and nothing happens.
    IgnoresSoft,
    /// Every command is taken and nothing happens.
    IgnoresAll,
    /// Each request fails inside the BMC.
    Fails,
    /// The state cannot be told: what the script prints is no state.
    Garbage,
    /// Each request is answered after a minute.
    Hangs,
}

impl Chassis {
    fn word(self) -> &'static str {
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

/// `get power` prints `power:0` or `power:1`; `set power`, `set shutdown`, `set reset`, `set boot` take a value. What is set
/// is noted down first: whoever reads the list knows that it happened.
const CHASSIS: &str = r#"#!/bin/sh
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

const EMULATION: &str = "mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
";

/// A running BMC. Dropped, it is gone: process and files.
#[derive(Debug)]
pub struct IpmiSim {
    service: Service,
    port: u16,
}

impl IpmiSim {
    /// Starts one with our chassis script behind it; it answers when this returns.
    pub async fn start(on: bool) -> Result<Self, Error> {
        Self::start_as(on, DELL).await
    }

    /// The same with this System GUID: [`guid_of`], or [`NO_GUID`].
    pub async fn start_as(on: bool, guid: &str) -> Result<Self, Error> {
        let mut service = Service::new(NAME)?;
        let script = service.folder().join("chassis");
        write(&script, CHASSIS)?;
        write(&service.folder().join("power"), if on { "1" } else { "0" })?;
        write(&service.folder().join("mode"), Chassis::Sound.word())?;
        let chassis = format!("chassis_control \"/bin/sh {}\"\n", script.display());
        let port = run(&mut service, &chassis, guid).await?;
        Ok(Self { service, port })
    }

    /// The UDP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `ipmi://127.0.0.1:PORT`, as it stands in `spec.bmc.address`.
    pub fn address(&self) -> String {
        format!("ipmi://127.0.0.1:{}", self.port)
    }

    /// From now on the chassis behaves so.
    pub fn set(&self, chassis: Chassis) -> Result<(), Error> {
        write(&self.service.folder().join("mode"), chassis.word())
    }

    /// Whether the host behind it has power, whatever the BMC says.
    pub fn is_on(&self) -> Result<bool, Error> {
        Ok(self.read("power")?.trim() == "1")
    }

    /// The host loses or gets power without the BMC's doing.
    pub fn set_power(&self, on: bool) -> Result<(), Error> {
        write(
            &self.service.folder().join("power"),
            if on { "1" } else { "0" },
        )
    }

    /// What the chassis was told, in order: `power 0`, `power 1`, `shutdown 1`.
    pub fn commands(&self) -> Result<Vec<String>, Error> {
        match self.read("commands") {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            // The first command makes the file.
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// The BMC hangs (`true`) or goes on.
    pub fn freeze(&self, frozen: bool) -> Result<(), Error> {
        let signal = if frozen { Signal::STOP } else { Signal::CONT };
        self.service.signal(signal)
    }

    fn read(&self, name: &str) -> Result<String, Error> {
        let path = self.service.folder().join(name);
        fs::read_to_string(&path).map_err(Error::io("read", path))
    }
}

/// Starts `ipmi_sim` in this service's folder, with these lines in its configuration, on a port of its own.
pub(crate) async fn run(service: &mut Service, chassis: &str, guid: &str) -> Result<u16, Error> {
    let folder = service.folder().to_owned();
    let port = ports::free()?;
    write(
        &folder.join("lan.conf"),
        &configuration(port, chassis, guid),
    )?;
    write(&folder.join("sim.emu"), EMULATION)?;
    let state = folder.join("state");
    fs::create_dir_all(&state).map_err(Error::io("make", &state))?;
    service.spawn(&mut command(&folder))?;
    service.wait_until(async || answers(port).is_some()).await?;
    Ok(port)
}

/// `-n`: not at a console.
fn command(folder: &Path) -> Command {
    let file = |name: &str| -> PathBuf { folder.join(name) };
    let mut command = Command::new(NAME);
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

/// Without `guid` it makes no RMCP+ session.
fn configuration(port: u16, chassis: &str, guid: &str) -> String {
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
user 3 true "{READER}" "{PASSWORD}" user 10 none md2 md5 straight
"#
    )
}

/// Asks for the channel's authentication capabilities, which needs no session (IPMI 2.0 §22.13).
fn answers(port: u16) -> Option<()> {
    const QUESTION: [u8; 23] = [
        0x06, 0x00, 0xff, 0x07, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x20, 0x18, 0xc8, 0x81, 0x00,
        0x38, 0x0e, 0x04, 0x35,
    ];
    let socket = UdpSocket::bind(("127.0.0.1", 0)).ok()?;
    socket
        .set_read_timeout(Some(Duration::from_millis(200)))
        .ok()?;
    socket.send_to(&QUESTION, ("127.0.0.1", port)).ok()?;
    socket.recv(&mut [0; 64]).ok().map(drop)
}

pub(crate) fn write(path: &Path, content: &str) -> Result<(), Error> {
    // By a rename: a script that reads it meanwhile sees the old or the new one, never none.
    let partial = path.with_extension("partial");
    fs::write(&partial, content).map_err(Error::io("write", &partial))?;
    fs::rename(&partial, path).map_err(Error::io("rename", &partial))
}

impl Service {
    fn signal(&self, signal: Signal) -> Result<(), Error> {
        let child = self.child().ok_or(Error::Stopped)?;
        kill_process(Pid::from_child(child), signal)
            .map_err(|errno| Error::io("signal", NAME)(errno.into()))
    }
}
