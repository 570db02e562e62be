//! The coordinator as `deploy/unprivileged` runs it, as far as a test can: an ordinary uid, no
//! capability, and of the host only the sentinel's folder and the system bus. Polkit and a
//! container's namespaces are missing here.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::{Cluster, Setting, SystemBus};

/// `nobody`. dbus-daemon refuses a uid that the host does not know; hosts have a user of uid 65532
/// for `deploy/unprivileged`, and Debian has this one.
const UID: u32 = 65534;

fn readable_by_all(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("a folder of ours");
}

fn status_of(id: u32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.expect("Linux has it").trim().to_owned()
}

#[tokio::test]
async fn an_ordinary_uid_without_capabilities_reboots_its_node_through_logind() {
    let cluster = Cluster::new().await;
    let flags = [
        "--reboot-method=logind",
        "--host-root={host}",
        "--sentinel=/run/reboot-needed",
    ];
    // Only root can change its user; any other user is an ordinary uid already.
    let uid = rustix::process::getuid().is_root().then_some(UID);
    let setting = Setting {
        uid,
        ..Setting::flags(flags)
    };
    let machine = cluster.machine_without_coordinator(setting).await;
    readable_by_all(&machine.file(""));
    readable_by_all(cluster.plane.folder());
    let _bus = SystemBus::start(&machine).await;
    machine.start_coordinator().await;
    machine.touch("new kernel");
    machine.until_back().await;
    let coordinator = machine.take_coordinator().await;
    let is_root = status_of(coordinator.id(), "Uid:").starts_with("0\t");
    let capabilities = status_of(coordinator.id(), "CapEff:");
    assert!(!is_root, "it ran as root");
    assert_eq!(capabilities.trim_matches('0'), "", "{capabilities}");
}
