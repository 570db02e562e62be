//! A real Redfish emulator on loopback: sushy-tools with its fake driver, over TLS and with basic
//! authentication, as metal3 and Ironic test against it. Installed from `sushy/requirements.txt`
//! into the project's cache.
//!
//! It is one BMC with many systems. It has no sessions (SessionService is 404), closes the
//! connection after each answer, answers a Reset with 204 and changes the state later.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use tokio::net::TcpStream;

use crate::{
    Error,
    cached_artifact::{find_or_make, fingerprint},
    identity, ports,
    server_process::ServerProcess,
};

const PROGRAM_NAME: &str = "sushy-emulator";
const REQUIREMENTS: &str = include_str!("../sushy/requirements.txt");

/// The only user.
pub const USERNAME: &str = "admin";
/// No secret: it opens a server on loopback that lives as long as a test.
pub const PASSWORD: &str = "sekret16";
/// User and password for the server: bcrypt at its lowest cost, because every request pays it.
const AUTH_FILE_CONTENT: &str =
    "admin:$2b$04$KP2doEwzqdafkRK43Aw5vuZLqGJyZPYMWb5ZJbaQ4tAaph3GL.Jla\n";

/// The emulator waits 1 to 11 s at random before a state changes, and has no setting for it.
const LAUNCHER_SCRIPT: &str = "
import random, sys
seconds = int(sys.argv.pop(1))
random.randint = lambda low, high: seconds
from sushy_tools.emulator.main import main
main()
";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatedSystem {
    /// Its UUID, which is also its id in Redfish.
    pub uuid: String,
    /// Whether its power is on when the emulator starts.
    pub on: bool,
}

/// A running emulator. Dropping it removes its process and files.
#[derive(Debug)]
pub struct SushyEmulator {
    service: ServerProcess,
    port: u16,
}

/// The Python with sushy-tools; installs it first if it is missing, which takes some 10 s. Blocks.
pub fn find_or_install() -> Result<PathBuf, Error> {
    let folder = format!("sushy-tools-{:016x}", fingerprint(&[REQUIREMENTS]));
    let environment = find_or_make(&folder, "venv", install_sushy)?;
    Ok(environment.join("bin/python"))
}

impl SushyEmulator {
    /// Starts an emulator; it answers when this returns. A command changes the state `delay` later
    /// (whole seconds, rounded to the clock's: up to one second less).
    pub async fn start(systems: &[EmulatedSystem], delay: Duration) -> Result<Self, Error> {
        let python = tokio::task::spawn_blocking(find_or_install)
            .await
            .expect("installing does not panic")?;
        let mut service = ServerProcess::new(PROGRAM_NAME)?;
        let port = ports::find_free_port()?;
        write_files(service.folder(), port, systems)?;
        let mut command = Command::new(python);
        command
            .args([
                "-c",
                LAUNCHER_SCRIPT,
                &delay.as_secs().to_string(),
                "--config",
            ])
            .arg(service.folder().join("conf.py"));
        service.spawn_process(&mut command)?;
        let listens = async || TcpStream::connect(("127.0.0.1", port)).await.is_ok();
        service.wait_until_answering(listens).await?;
        Ok(Self { service, port })
    }

    /// The loopback port; TLS.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `redfish://127.0.0.1:PORT/redfish/v1/Systems/UUID`, for `spec.bmc.address`.
    pub fn system_address(&self, uuid: &str) -> String {
        format!(
            "redfish://127.0.0.1:{}/redfish/v1/Systems/{uuid}",
            self.port
        )
    }

    /// The authority that signed its certificate, PEM.
    pub fn ca_file(&self) -> PathBuf {
        self.service.folder().join("ca.crt")
    }
}

fn write_files(folder: &Path, port: u16, systems: &[EmulatedSystem]) -> Result<(), Error> {
    identity::write_certificates(folder)?;
    write_file(&folder.join("htpasswd"), AUTH_FILE_CONTENT)?;
    write_file(
        &folder.join("conf.py"),
        &render_configuration(folder, port, systems),
    )
}

/// The configuration in Python. `Debug` of a Rust string without control characters is a Python
/// string.
fn render_configuration(folder: &Path, port: u16, systems: &[EmulatedSystem]) -> String {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut text = String::new();
    for (key, value) in [
        ("FAKE_DRIVER", "True".to_owned()),
        ("LISTEN_IP", "'127.0.0.1'".to_owned()),
        ("LISTEN_PORT", port.to_string()),
        ("SSL_CERT", format!("{:?}", file("server.crt"))),
        ("SSL_KEY", format!("{:?}", file("server.key"))),
        ("AUTH_FILE", format!("{:?}", file("htpasswd"))),
        ("STATE_DIR", format!("{:?}", file(""))),
        ("FEATURE_SET", "'full'".to_owned()),
        ("FAKE_SYSTEMS", render_python_list(systems)),
    ] {
        writeln!(text, "SUSHY_EMULATOR_{key} = {value}").expect("a String takes all");
    }
    text
}

fn render_python_list(systems: &[EmulatedSystem]) -> String {
    let mut list = String::from("[");
    for EmulatedSystem { uuid, on } in systems {
        let power = if *on { "On" } else { "Off" };
        write!(
            list,
            "{{'uuid': {uuid:?}, 'name': {uuid:?}, 'power_state': '{power}', 'external_notifier': False, 'nics': []}}, "
        )
        .expect("a String takes all");
    }
    list + "]"
}

/// Installs into a temporary folder and moves it. A moved virtual environment breaks its scripts
/// but not its `python`, and that is all we call.
fn install_sushy(target: &Path) -> Result<(), Error> {
    eprintln!(
        "installing sushy-tools (about 10 s, once) into {}",
        target.display()
    );
    let partial = target.with_extension("partial");
    let requirements = target.with_file_name("requirements.txt");
    write_file(&requirements, REQUIREMENTS)?;
    run_command(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&partial),
    )?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
    ];
    run_command(
        Command::new(partial.join("bin/python"))
            .args(pip)
            .arg(&requirements),
    )?;
    fs::rename(&partial, target).map_err(Error::io_error("rename", &partial))
}

fn run_command(command: &mut Command) -> Result<(), Error> {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .map_err(Error::io_error("run", command.get_program()))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Install {
        what: "sushy-tools (on Debian it needs python3-venv)",
        command: format!("{command:?}"),
        status,
        output: String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned(),
    })
}

fn write_file(path: &Path, content: &str) -> Result<(), Error> {
    fs::write(path, content).map_err(Error::io_error("write", path))
}
