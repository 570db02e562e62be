//! A real machine with a real BMC: a virtual machine (qemu, emulated in software) that is powered over IPMI by `ipmi_sim`.
//! What it does is read from its serial console, not from the BMC.
//!
//! Its kernel is Debian's for clouds, its only program busybox: both are unpacked into the project's cache, and installed
//! nowhere. It boots in some 7 s on 2 cores and takes 220 MB.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, SystemTime},
};

use tokio::time::{Instant, sleep};

use crate::{
    Error,
    ipmi_sim::{self, write},
    once::{find_or_make, fingerprint},
    ports,
    service::Service,
};

/// On the console once all of it runs.
pub const RUNNING: &str = "dogwatch-guest: running";
/// On the console once it was asked to shut down, and does.
pub const SHUTTING_DOWN: &str = "dogwatch-guest: shutting down";
/// On the console once it was asked to shut down, and does not.
pub const NOT_LISTENING: &str = "dogwatch-guest: not listening";
/// On the console again and again, with a number, while a [`Guest::Writer`] runs.
pub const WROTE: &str = "dogwatch-guest: wrote ";
/// The word on the kernel's command line that makes a guest deaf.
const DEAF: &str = "dogwatch.deaf";

/// Measured: 7 s alone on 2 cores. The rest is for a machine that compiles beside it.
const SHOWN_WITHIN: Duration = Duration::from_mins(3);
const POLL: Duration = Duration::from_millis(50);

/// What the guest does when it is asked to shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// It does so.
    Polite,
    /// It says that it was asked, and goes on.
    Deaf,
    /// It hears nothing, and writes line after line ([`WROTE`]).
    Writer,
}

impl Guest {
    /// What makes it so, on the kernel's command line.
    fn words(self) -> String {
        match self {
            Self::Polite => String::new(),
            Self::Deaf => DEAF.to_owned(),
            // After the two dashes it is the first process' own.
            Self::Writer => format!("rdinit=/bin/busybox -- sh -c \"{WRITER}\""),
        }
    }
}

/// The first process of a guest that writes, in place of [`INIT`].
const WRITER: &str = "echo dogwatch-guest: running; n=0; while true; do n=$((n+1)); \
                      echo dogwatch-guest: wrote $n; /bin/busybox sleep 0.2; done";

/// The guest's first and only process. The power button shows as an input device.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
insmod /button.ko
insmod /evdev.ko
button=$(grep -l "Power Button" /sys/class/input/event*/device/name | head -n 1)
event=/dev/input/$(echo "$button" | cut -d / -f 5)
echo "dogwatch-guest: running"
head -c 1 "$event" > /dev/null
if grep -q dogwatch.deaf /proc/cmdline; then
  echo "dogwatch-guest: not listening"
  exec sleep 1000000
fi
echo "dogwatch-guest: shutting down"
poweroff -f
"#;

/// Makes `kernel` and `initrd` in the folder `$1`. `apt-get download` needs no root and installs nothing.
const MAKE: &str = r#"
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

/// A running BMC with a virtual machine behind it, which is off at first. Dropped, both are gone.
#[derive(Debug)]
pub struct Vm {
    service: Service,
    port: u16,
}

/// The folder with its kernel and its file system; made first where it is not at hand, which takes some 10 s. Blocks.
pub fn find_or_make_image() -> Result<PathBuf, Error> {
    let folder = format!("vm-{:016x}", fingerprint(&[INIT, MAKE]));
    find_or_make(&folder, "image", make)
}

impl Vm {
    /// Starts the BMC; the machine stays off until it is powered on.
    pub async fn start(guest: Guest) -> Result<Self, Error> {
        Self::start_as(guest, ipmi_sim::DELL).await
    }

    /// The same with this System GUID: [`ipmi_sim::guid_of`], or [`ipmi_sim::NO_GUID`].
    pub async fn start_as(guest: Guest, guid: &str) -> Result<Self, Error> {
        let image = tokio::task::spawn_blocking(find_or_make_image)
            .await
            .expect("making does not panic")?;
        let mut service = Service::new("vm")?;
        let serial = ports::free()?;
        let machine = machine(&image, service.folder(), serial, guest);
        write(&service.folder().join("machine"), &machine)?;
        let chassis = format!(
            "  serial 15 127.0.0.1 {serial} codec VM\n  startcmd \"/bin/sh {}\"\n  startnow false\n  poweroff_wait 60\n  kill_wait 1\n",
            service.folder().join("machine").display()
        );
        let port = ipmi_sim::run(&mut service, &chassis, guid).await?;
        Ok(Self { service, port })
    }

    /// `ipmi://127.0.0.1:PORT`, as it stands in `spec.bmc.address`; user and password are
    /// [`ipmi_sim::USERNAME`] and [`ipmi_sim::PASSWORD`].
    pub fn address(&self) -> String {
        format!("ipmi://127.0.0.1:{}", self.port)
    }

    /// All that the machine has printed on its serial console since the BMC started, over all its boots.
    pub fn console(&self) -> String {
        let text = fs::read(self.service.folder().join("console")).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// When it printed last.
    pub fn last_shown(&self) -> Result<SystemTime, Error> {
        let console = self.service.folder().join("console");
        let written = fs::metadata(&console).and_then(|file| file.modified());
        written.map_err(Error::io("read", console))
    }

    /// Waits until the console shows `text` for the `times`th time.
    pub async fn shows(&self, text: &str, times: usize) -> Result<(), Error> {
        let shown = || self.console().matches(text).count() >= times;
        self.until(&format!("{text:?} on the console"), shown).await
    }

    /// Waits until the machine's process has ended: power is off, whatever a BMC says.
    pub async fn ends(&self) -> Result<(), Error> {
        self.until("the machine's process ended", || !self.has_process())
            .await
    }

    /// Whether the machine has a process at all.
    pub fn has_process(&self) -> bool {
        let pid = fs::read_to_string(self.service.folder().join("pid")).unwrap_or_default();
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.is_ok_and(|stat| !pid.trim().is_empty() && !stat.contains(") Z "))
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) -> Result<(), Error> {
        let deadline = Instant::now() + SHOWN_WITHIN;
        while !holds() {
            if Instant::now() > deadline {
                return Err(Error::NotReady {
                    seconds: SHOWN_WITHIN.as_secs(),
                    last: format!("not seen: {what}"),
                    log: self.console(),
                });
            }
            sleep(POLL).await;
        }
        Ok(())
    }
}

/// The shell script that `ipmi_sim` starts for "power on". The machine dies with the BMC, however that one ends: `ipmi_sim`
/// puts it into a session of its own.
fn machine(image: &Path, folder: &Path, serial: u16, guest: Guest) -> String {
    let (image, folder) = (image.display(), folder.display());
    let words = guest.words();
    format!(
        "exec setpriv --pdeathsig KILL qemu-system-x86_64 -accel tcg -m 128 -smp 1 -nodefaults -display none \\
  -kernel {image}/kernel -initrd {image}/initrd -append 'console=ttyS0 quiet panic=1 {words}' \\
  -chardev file,id=console,path={folder}/console,append=on -serial chardev:console -pidfile {folder}/pid \\
  -chardev socket,id=bmc,host=127.0.0.1,port={serial},reconnect=1 \\
  -device ipmi-bmc-extern,id=bmc0,chardev=bmc -device isa-ipmi-kcs,bmc=bmc0
"
    )
}

fn make(target: &Path) -> Result<(), Error> {
    eprintln!(
        "making a virtual machine's image (about 10 s, once) in {}",
        target.display()
    );
    let partial = target.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(Error::io("remove", &partial))?;
    }
    fs::create_dir_all(&partial).map_err(Error::io("make", &partial))?;
    write(&partial.join("init"), INIT)?;
    let mut command = Command::new("sh");
    command.args(["-c", MAKE, "make"]).arg(&partial);
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().map_err(Error::io("run", "sh"))?;
    if !status.success() {
        return Err(Error::Install {
            what: "a virtual machine's kernel and busybox (on Debian, after apt-get update)",
            command: "apt-get download".to_owned(),
            status,
            output: String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned(),
        });
    }
    fs::rename(&partial, target).map_err(Error::io("rename", &partial))
}
