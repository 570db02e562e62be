//! The disk of a real node: made once from Debian's packages, and copied for each node.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::geteuid;

use crate::{
    Error,
    cached_artifact::{empty_partial_folder, find_or_make, fingerprint},
};

const RECIPE: &str = include_str!("../../real-node/make-disk.sh");

/// What the recipe reads, and the configuration that it puts below `/` (in `files`). All of it names
/// the cache's subfolder.
const RECIPE_FILES: [(&str, &str); 16] = [
    ("packages.txt", include_str!("../../real-node/packages.txt")),
    (
        "initrd-init.sh",
        include_str!("../../real-node/initrd-init.sh"),
    ),
    (
        "files/etc/cni/net.d/10-bridge.conflist",
        include_str!("../../real-node/files/etc/cni/net.d/10-bridge.conflist"),
    ),
    (
        "files/etc/containerd/config.toml",
        include_str!("../../real-node/files/etc/containerd/config.toml"),
    ),
    (
        "files/etc/kubernetes/kubelet.yaml",
        include_str!("../../real-node/files/etc/kubernetes/kubelet.yaml"),
    ),
    (
        "files/etc/systemd/journald.conf.d/console.conf",
        include_str!("../../real-node/files/etc/systemd/journald.conf.d/console.conf"),
    ),
    (
        "files/etc/systemd/system.conf.d/stop-soon.conf",
        include_str!("../../real-node/files/etc/systemd/system.conf.d/stop-soon.conf"),
    ),
    (
        "files/etc/systemd/system/api-server.service",
        include_str!("../../real-node/files/etc/systemd/system/api-server.service"),
    ),
    (
        "files/etc/systemd/system/api-server.socket",
        include_str!("../../real-node/files/etc/systemd/system/api-server.socket"),
    ),
    (
        "files/etc/systemd/system/import-images.service",
        include_str!("../../real-node/files/etc/systemd/system/import-images.service"),
    ),
    (
        "files/etc/systemd/system/kubelet.service",
        include_str!("../../real-node/files/etc/systemd/system/kubelet.service"),
    ),
    (
        "files/etc/systemd/system/node-network.service",
        include_str!("../../real-node/files/etc/systemd/system/node-network.service"),
    ),
    (
        "files/etc/systemd/system/seed.mount",
        include_str!("../../real-node/files/etc/systemd/system/seed.mount"),
    ),
    (
        "files/usr/local/sbin/announce-boot",
        include_str!("../../real-node/files/usr/local/sbin/announce-boot"),
    ),
    (
        "files/usr/local/sbin/configure-network",
        include_str!("../../real-node/files/usr/local/sbin/configure-network"),
    ),
    (
        "files/usr/local/sbin/import-images",
        include_str!("../../real-node/files/usr/local/sbin/import-images"),
    ),
];

/// The folder with kernel, first root file system, disk and busybox image; makes them first if they
/// are missing, which takes some minutes. Blocks.
pub fn find_or_make_root_disk() -> Result<PathBuf, Error> {
    let contents = RECIPE_FILES.iter().map(|(_, content)| *content);
    let sources: Vec<&str> = contents.chain([RECIPE]).collect();
    let folder = format!("real-node-disk-{:016x}", fingerprint(&sources));
    find_or_make(&folder, "disk", make_root_disk)
}

/// Copies the disk for one node into its folder. Holes stay holes.
pub(super) fn copy_root_disk(made: &Path, folder: &Path) -> Result<(), Error> {
    let mut copy = Command::new("cp");
    copy.args(["--sparse=always", "--reflink=auto"])
        .arg(made.join("root.ext4"))
        .arg(folder);
    run_recipe(&mut copy, "the disk of a real node")
}

fn make_root_disk(target: &Path) -> Result<(), Error> {
    eprintln!(
        "making a real node's disk (about a minute, once) in {}",
        target.display()
    );
    let partial = empty_partial_folder(target)?;
    for (name, content) in RECIPE_FILES {
        write_file(&partial.join(name), content.as_bytes())?;
    }
    let recipe = partial.with_extension("sh");
    write_file(&recipe, RECIPE.as_bytes())?;
    let mut make = as_root("sh");
    make.arg(&recipe).arg(&partial);
    run_recipe(
        &mut make,
        "a real node's disk (on Debian, after apt-get update)",
    )?;
    fs::rename(&partial, target).map_err(Error::io_error("rename", &partial))
}

/// Writes a file, and its folder if that is missing.
pub(super) fn write_file(path: &Path, content: &[u8]) -> Result<(), Error> {
    let folder = path.parent().expect("a file is in a folder");
    fs::create_dir_all(folder).map_err(Error::io_error("make", folder))?;
    fs::write(path, content).map_err(Error::io_error("write", path))
}

/// A program whose files belong to root. Others than root are root in a user namespace of their own.
pub(super) fn as_root(program: &str) -> Command {
    if geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", program]);
    command
}

pub(super) fn run_recipe(command: &mut Command, what: &'static str) -> Result<(), Error> {
    let program = command.get_program().to_owned();
    let output = command.output().map_err(Error::io_error("run", &program))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Install {
        what,
        command: program.to_string_lossy().into_owned(),
        status: output.status,
        output: String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
    })
}
