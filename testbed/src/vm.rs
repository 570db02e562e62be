//! A real machine with a real BMC: a virtual machine (qemu, emulated in software) whose power
//! `ipmi_sim` controls over IPMI. Tests read what it does from its serial console, not from the
//! BMC.
//!
//! Its kernel is Debian's for clouds, its only program busybox: both are unpacked into the
//! project's cache, and installed nowhere. It boots in some 7 s on 2 cores and takes 220 MB.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, SystemTime},
};

use tokio::time::{Instant, sleep};

use crate::{
    Error,
    cached_artifact::{empty_partial_folder, find_or_make, fingerprint},
    ipmi_sim::{self, write_atomically},
    ports,
    server_process::ServerProcess,
};

/// Console text: the guest is running.
pub const GUEST_RUNNING: &str = "dogwatch-guest: running";
/// Console text, followed by the boot id of the guest's kernel; printed before [`GUEST_RUNNING`].
pub const GUEST_BOOT_ID: &str = "dogwatch-guest: boot id ";
/// Console text: the guest was asked to shut down, and does.
pub const GUEST_SHUTTING_DOWN: &str = "dogwatch-guest: shutting down";
/// Console text: the guest was asked to shut down, and does not.
pub const GUEST_NOT_LISTENING: &str = "dogwatch-guest: not listening";
/// Console text, repeated with a number while a [`GuestMode::Writer`] runs.
pub const GUEST_WROTE: &str = "dogwatch-guest: wrote ";
/// The kernel argument that makes a guest ignore shutdown requests.
const DEAF_KERNEL_ARGUMENT: &str = "dogwatch.deaf";

/// Measured: 7 s alone on 2 cores. The rest is for a machine that compiles beside it.
const SHOWN_WITHIN: Duration = Duration::from_mins(3);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The guest's reaction to a shutdown request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestMode {
    /// It shuts down.
    Polite,
    /// It prints that it was asked, and runs on.
    Deaf,
    /// It ignores the request and prints line after line ([`GUEST_WROTE`]).
    Writer,
}

impl GuestMode {
    /// The kernel arguments for this mode.
    fn kernel_arguments(self) -> String {
        match self {
            Self::Polite => String::new(),
            Self::Deaf => DEAF_KERNEL_ARGUMENT.to_owned(),
            // Arguments after the two dashes go to the first process.
            Self::Writer => format!("rdinit=/bin/busybox -- sh -c \"{WRITER_COMMAND}\""),
        }
    }
}

/// The first process of a guest that writes, in place of [`INIT_SCRIPT`].
const WRITER_COMMAND: &str = "echo dogwatch-guest: running; n=0; while true; do n=$((n+1)); \
                      echo dogwatch-guest: wrote $n; /bin/busybox sleep 0.2; done";

/// The guest's first and only process. The power button is an input device.
const INIT_SCRIPT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
insmod /button.ko
insmod /evdev.ko
button=$(grep -l "Power Button" /sys/class/input/event*/device/name | head -n 1)
event=/dev/input/$(echo "$button" | cut -d / -f 5)
echo "dogwatch-guest: boot id $(cat /proc/sys/kernel/random/boot_id)"
echo "dogwatch-guest: running"
head -c 1 "$event" > /dev/null
if grep -q dogwatch.deaf /proc/cmdline; then
  echo "dogwatch-guest: not listening"
  exec sleep 1000000
fi
echo "dogwatch-guest: shutting down"
poweroff -f
"#;

/// Makes `kernel` and `initrd` in the folder `$1`. `apt-get download` needs no root and installs
/// nothing.
const IMAGE_SCRIPT: &str = r#"
set -e
cd "$1"
fetch() {
  kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
  [ -n "$kernel" ] && apt-get --quiet download "$kernel" busybox-static
}
# Without lists, or with old ones, nothing is found.
fetch || { apt-get --quiet update && fetch; }
for package in *.deb; do dpkg-deb --extract "$package" unpacked; rm "$package"; done
mv unpacked/boot/vmlinuz-* kernel
mkdir -p root/bin root/dev root/proc root/sys
cp unpacked/bin/busybox root/bin/
cp "$(find unpacked -name button.ko)" "$(find unpacked -name evdev.ko)" root/
mv init root/init
chmod 755 root/init
(cd root && find . | ./bin/busybox cpio -o -H newc) | gzip > initrd
rm -r unpacked root
"#;

/// Whether a machine is on when its BMC begins to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PowerAtStart {
    On,
    Off,
}

/// A running BMC with a virtual machine behind it, which is off at first. Dropping it ends both.
#[derive(Debug)]
pub struct VirtualMachine {
    service: ServerProcess,
    port: u16,
}

/// The folder with its kernel and its file system; makes them first if they are missing, which
/// takes some 10 s. Blocks.
pub fn find_or_make_image() -> Result<PathBuf, Error> {
    let folder = format!("vm-{:016x}", fingerprint(&[INIT_SCRIPT, IMAGE_SCRIPT]));
    find_or_make(&folder, "image", make_image)
}

impl VirtualMachine {
    /// Starts the BMC; the machine stays off until it is powered on.
    pub async fn start(guest: GuestMode) -> Result<Self, Error> {
        Self::start_with_guid(guest, ipmi_sim::DELL_GUID).await
    }

    /// The same with this System GUID: [`ipmi_sim::guid_of_uuid`], or [`ipmi_sim::NO_GUID`].
    pub async fn start_with_guid(guest: GuestMode, guid: &str) -> Result<Self, Error> {
        let image = tokio::task::spawn_blocking(find_or_make_image)
            .await
            .expect("making does not panic")?;
        let hardware = hardware_arguments(&image, guest);
        Self::start_hardware(
            ServerProcess::new("vm")?,
            &hardware,
            PowerAtStart::Off,
            guid,
        )
        .await
    }

    /// A machine of these arguments of qemu, with its files in the service's folder.
    pub(crate) async fn start_hardware(
        mut service: ServerProcess,
        hardware: &str,
        power: PowerAtStart,
        guid: &str,
    ) -> Result<Self, Error> {
        let serial = ports::find_free_port()?;
        let machine = start_script(hardware, service.folder(), serial);
        write_atomically(&service.folder().join("machine"), &machine)?;
        let chassis = format!(
            "  serial 15 127.0.0.1 {serial} codec VM\n  startcmd \"/bin/sh {}\"\n  startnow {}\n  poweroff_wait 60\n  kill_wait 1\n",
            service.folder().join("machine").display(),
            power == PowerAtStart::On,
        );
        let port = ipmi_sim::start_ipmi_sim(&mut service, &chassis, guid).await?;
        Ok(Self { service, port })
    }

    /// The machine's own folder, with its console.
    pub fn folder(&self) -> &Path {
        self.service.folder()
    }

    /// `ipmi://127.0.0.1:PORT`, for `spec.bmc.address`; user and password are
    /// [`ipmi_sim::USERNAME`] and [`ipmi_sim::PASSWORD`].
    pub fn address(&self) -> String {
        format!("ipmi://127.0.0.1:{}", self.port)
    }

    /// All console output since the BMC started, over all boots of the machine.
    pub fn console_output(&self) -> String {
        let text = fs::read(self.service.folder().join("console")).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The time of the last console output.
    pub fn last_printed_at(&self) -> Result<SystemTime, Error> {
        let console = self.service.folder().join("console");
        let written = fs::metadata(&console).and_then(|file| file.modified());
        written.map_err(Error::io_error("read", console))
    }

    /// Waits until the console has shown `text` for the `times`th time.
    pub async fn wait_until_console_shows(&self, text: &str, times: usize) -> Result<(), Error> {
        let shown = || self.console_output().matches(text).count() >= times;
        self.wait_until(&format!("{text:?} on the console"), shown)
            .await
    }

    /// Waits until the machine's process has ended: its power is off, whatever a BMC reports.
    pub async fn wait_until_powered_off(&self) -> Result<(), Error> {
        self.wait_until("the machine's process ended", || !self.has_process())
            .await
    }

    /// Whether the machine's process exists.
    pub fn has_process(&self) -> bool {
        self.process_id().is_some()
    }

    /// The process that is the machine, while its power is on.
    pub fn process_id(&self) -> Option<String> {
        let pid = fs::read_to_string(self.service.folder().join("pid")).ok()?;
        let pid = pid.trim();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        let is_running = stat.is_ok_and(|stat| !pid.is_empty() && !stat.contains(") Z "));
        is_running.then(|| pid.to_owned())
    }

    async fn wait_until(&self, what: &str, holds: impl Fn() -> bool) -> Result<(), Error> {
        let deadline = Instant::now() + SHOWN_WITHIN;
        while !holds() {
            if Instant::now() > deadline {
                return Err(Error::NotReady {
                    seconds: SHOWN_WITHIN.as_secs(),
                    last: format!("not seen: {what}"),
                    log: self.console_output(),
                });
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// The kernel and the file system of a guest.
fn hardware_arguments(image: &Path, guest: GuestMode) -> String {
    let (image, words) = (image.display(), guest.kernel_arguments());
    format!(
        "-accel tcg -m 128 -smp 1 \\
  -kernel {image}/kernel -initrd {image}/initrd -append 'console=ttyS0 quiet panic=1 {words}'"
    )
}

/// The shell script that `ipmi_sim` runs for "power on". The machine dies with the BMC, however
/// that one ends: `ipmi_sim` puts the machine into a session of its own.
fn start_script(hardware: &str, folder: &Path, serial: u16) -> String {
    let folder = folder.display();
    format!(
        "exec setpriv --pdeathsig KILL qemu-system-x86_64 -nodefaults -display none {hardware} \\
  -chardev file,id=console,path={folder}/console,append=on -serial chardev:console -pidfile {folder}/pid \\
  -chardev socket,id=bmc,host=127.0.0.1,port={serial},reconnect=1 \\
  -device ipmi-bmc-extern,id=bmc0,chardev=bmc -device isa-ipmi-kcs,bmc=bmc0
"
    )
}

fn make_image(target: &Path) -> Result<(), Error> {
    eprintln!(
        "making a virtual machine's image (about 10 s, once) in {}",
        target.display()
    );
    let partial = empty_partial_folder(target)?;
    write_atomically(&partial.join("init"), INIT_SCRIPT)?;
    let mut command = Command::new("sh");
    command.args(["-c", IMAGE_SCRIPT, "make"]).arg(&partial);
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().map_err(Error::io_error("run", "sh"))?;
    if !status.success() {
        return Err(Error::Install {
            what: "a virtual machine's kernel and busybox (on Debian, after apt-get update)",
            command: "apt-get download".to_owned(),
            status,
            output: String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned(),
        });
    }
    fs::rename(&partial, target).map_err(Error::io_error("rename", &partial))
}
