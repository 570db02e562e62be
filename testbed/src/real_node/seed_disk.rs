//! The second disk of a real node: its kubelet, its identity, and the images for its containerd.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{
    NODE_NAME,
    root_disk::{as_root, run_recipe, write_file},
};
use crate::{ControlPlane, Error, identity::SERVICE_ADDRESS};

/// Of the disk. What is not filled takes no room.
const DISK_SIZE: &str = "2G";

/// Who the node is, and where its API server listens.
#[derive(Clone, Debug)]
pub(super) struct NodeIdentity {
    /// Certificate and key.
    certificate: String,
    authority: PathBuf,
    api_port: u16,
}

impl NodeIdentity {
    pub(super) fn of_control_plane(plane: &ControlPlane) -> Result<Self, Error> {
        let user = format!("system:node:{NODE_NAME}");
        Ok(Self {
            certificate: plane.client_certificate(&user, &["system:nodes"])?,
            authority: plane.folder().join("ca.crt"),
            api_port: plane.ports.api,
        })
    }

    /// qemu's network shows the host's loopback as 10.0.2.2.
    fn render_environment(&self) -> String {
        format!(
            "NODE_NAME={NODE_NAME}\nAPI_SERVER=10.0.2.2:{}\n",
            self.api_port
        )
    }
}

/// Writes `seed.ext4` into the folder.
pub(super) fn write_seed_disk(
    folder: &Path,
    identity: &NodeIdentity,
    kubelet: &Path,
    made: &Path,
    images: &Path,
) -> Result<(), Error> {
    let seed = folder.join("seed");
    write_file(
        &seed.join("node.env"),
        identity.render_environment().as_bytes(),
    )?;
    write_file(&seed.join("node.pem"), identity.certificate.as_bytes())?;
    write_file(&seed.join("kubeconfig"), render_kubeconfig().as_bytes())?;
    copy_file(&identity.authority, &seed.join("ca.crt"))?;
    copy_file(kubelet, &seed.join("kubelet"))?;
    copy_file(&made.join("busybox.tar"), &seed.join("images/busybox.tar"))?;
    for archive in list_archives(images)? {
        let name = archive.file_name().expect("it was listed");
        copy_file(&archive, &seed.join("images").join(name))?;
    }
    let mut make = as_root("mke2fs");
    make.args(["-q", "-t", "ext4", "-d"])
        .arg(&seed)
        .arg(folder.join("seed.ext4"))
        .arg(DISK_SIZE)
        // Debian keeps it where only root looks.
        .env("PATH", search_path_with_system_programs());
    run_recipe(&mut make, "the seed disk of a real node")?;
    fs::remove_dir_all(&seed).map_err(Error::io_error("remove", seed))
}

fn search_path_with_system_programs() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/sbin:/sbin")
}

fn list_archives(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::io_error("list", folder))?;
    let paths: Result<Vec<PathBuf>, _> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut paths = paths.map_err(Error::io_error("list", folder))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "tar"));
    Ok(paths)
}

fn copy_file(from: &Path, to: &Path) -> Result<(), Error> {
    let folder = to.parent().expect("a file is in a folder");
    fs::create_dir_all(folder).map_err(Error::io_error("make", folder))?;
    fs::copy(from, to)
        .map(drop)
        .map_err(Error::io_error("copy", from))
}

/// The kubelet reaches the API server as pods do.
fn render_kubeconfig() -> String {
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": {
            "server": format!("https://{SERVICE_ADDRESS}"), "certificate-authority": "/seed/ca.crt"}}],
        "users": [{"name": "kubelet", "user": {
            "client-certificate": "/seed/node.pem", "client-key": "/seed/node.pem"}}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "kubelet"}}],
        "current-context": "testbed",
    });
    format!("{kubeconfig:#}")
}
