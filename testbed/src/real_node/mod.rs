//! A real node: a virtual machine with Debian's kernel, systemd as PID 1, containerd, runc and a real
//! kubelet that is joined to a real control plane, behind a BMC that speaks IPMI ([`crate::vm`]).
//!
//! Its disk is made of Debian's packages, which are unpacked and installed nowhere; its kubelet and
//! the scheduler are built from the Go module of the control plane. Everything is kept in the
//! project's cache. There is no kube-proxy: the Service `kubernetes` is an address of the node
//! itself, from which systemd forwards to the API server.
//!
//! Emulated in software: it takes minutes where a machine takes seconds.

mod programs;
mod root_disk;
mod scheduler;
mod seed_disk;

use std::{path::Path, time::Duration};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    time::timeout,
};

pub use programs::find_or_build_programs;
pub use root_disk::find_or_make_root_disk;
pub use scheduler::RealScheduler;

use crate::{
    ControlPlane, Error,
    ipmi_sim::guid_of_uuid,
    server_process::ServerProcess,
    vm::{PowerAtStart, VirtualMachine},
};

/// The node's name, which is also its host name.
pub const NODE_NAME: &str = "worker-0";
/// The UUID of the node's machine, as its firmware and its BMC report it.
pub const SYSTEM_UUID: &str = "8d6b3a52-61d1-4d4f-9a0c-2f5b7c9e1a30";
/// The image of the pause container, for workloads too: a busybox with `sh`, `cat` and `sleep`.
pub const BUSYBOX_IMAGE: &str = "docker.io/library/real-node-busybox:1";
/// A folder on the node's disk for a local volume.
pub const VOLUME_FOLDER: &str = "/var/lib/volumes/first";
/// Console text, followed by the boot id, each time that the node starts its kubelet.
pub const KUBELET_STARTS: &str = "real-node: boot id ";

/// It answers at once; the rest is for a busy host.
const MONITOR_ANSWERS_WITHIN: Duration = Duration::from_mins(1);

/// A node that is on, or was switched off over IPMI. Dropping it removes machine and BMC.
#[derive(Debug)]
pub struct RealNode {
    machine: VirtualMachine,
}

impl RealNode {
    /// Switches a new node on, which joins the control plane; `images` is a folder with archives
    /// that its containerd imports. The control plane needs
    /// [`with_real_kubelets`](crate::ControlPlaneBuilder::with_real_kubelets). Does not wait until
    /// the node is Ready.
    pub async fn start(plane: &ControlPlane, images: &Path) -> Result<Self, Error> {
        let service = ServerProcess::new("real-node")?;
        let identity = seed_disk::NodeIdentity::of_control_plane(plane)?;
        let (folder, images) = (service.folder().to_owned(), images.to_owned());
        let disks = move || write_disks(&folder, &identity, &images);
        let hardware = tokio::task::spawn_blocking(disks)
            .await
            .expect("writing does not panic")?;
        let guid = guid_of_uuid(SYSTEM_UUID);
        let machine =
            VirtualMachine::start_hardware(service, &hardware, PowerAtStart::On, &guid).await?;
        Ok(Self { machine })
    }

    /// Its power and its console.
    pub fn machine(&self) -> &VirtualMachine {
        &self.machine
    }

    /// Stops the node's processors, as a hang does that nothing in the machine can end. The machine
    /// stays on. (A panic is no hang: the kubelet has the kernel reboot 10 s after one.)
    pub async fn stop_processors(&self) -> Result<(), Error> {
        let stopped = timeout(MONITOR_ANSWERS_WITHIN, self.ask_monitor_to_stop()).await;
        stopped.unwrap_or(Err(Error::MachineOff))
    }

    async fn ask_monitor_to_stop(&self) -> Result<(), Error> {
        let path = self.machine.folder().join("monitor");
        let failed = |what| Error::io_error(what, path.clone());
        let mut monitor = UnixStream::connect(&path).await.map_err(failed("open"))?;
        let words = b"stop\ninfo status\n";
        monitor.write_all(words).await.map_err(failed("write"))?;
        let mut lines = BufReader::new(monitor).lines();
        while let Some(line) = lines.next_line().await.map_err(failed("read"))? {
            if line.contains("VM status: paused") {
                return Ok(());
            }
        }
        Err(Error::MachineOff)
    }
}

/// Writes the node's disks into the folder; returns qemu's arguments.
fn write_disks(
    folder: &Path,
    identity: &seed_disk::NodeIdentity,
    images: &Path,
) -> Result<String, Error> {
    let made = find_or_make_root_disk()?;
    let programs = find_or_build_programs()?;
    root_disk::copy_root_disk(&made, folder)?;
    seed_disk::write_seed_disk(folder, identity, &programs.kubelet, &made, images)?;
    Ok(hardware_arguments(&made, folder))
}

const KERNEL_ARGUMENTS: &str =
    "console=ttyS0 quiet net.ifnames=0 mitigations=off systemd.show_status=false";

/// Both disks may lose nothing when qemu ends, only when the host does, so they need no sync.
fn hardware_arguments(made: &Path, folder: &Path) -> String {
    let (made, folder) = (made.display(), folder.display());
    format!(
        "-accel tcg,thread=multi -m 2048 -smp 2 -uuid {SYSTEM_UUID} \\
  -kernel {made}/kernel -initrd {made}/initrd -append '{KERNEL_ARGUMENTS}' \\
  -drive file={folder}/root.ext4,if=virtio,format=raw,cache=unsafe \\
  -drive file={folder}/seed.ext4,if=virtio,format=raw,readonly=on \\
  -netdev user,id=net0 -device virtio-net-pci,netdev=net0 -device virtio-rng-pci \\
  -monitor unix:{folder}/monitor,server=on,wait=off"
    )
}
