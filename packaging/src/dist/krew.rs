//! The manifest by which krew installs `kubectl dogwatch`.

use super::DistSettings;
use crate::{VERSION, elf::CpuArchitecture};

pub fn describe_plugin(
    archive: &str,
    sha256: &str,
    architecture: CpuArchitecture,
    settings: &DistSettings,
) -> String {
    let folder = archive.trim_end_matches(".tar.gz");
    let url = settings.download_url.trim_end_matches('/');
    let architecture = architecture.go_name();
    let homepage = env!("CARGO_PKG_REPOSITORY");
    format!(
        r"apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: dogwatch
spec:
  version: v{VERSION}
  homepage: {homepage}
  shortDescription: Reboot nodes safely, one after the other
  description: |
    Requests and follows reboots of nodes, explains why a node waits, and checks what would block it.
    Dogwatch must be installed on the cluster: kubectl dogwatch manifests prints what that takes.
  platforms:
    - selector:
        matchLabels:
          os: linux
          arch: {architecture}
      uri: {url}/{archive}
      sha256: {sha256}
      bin: dogwatch
      files:
        - from: {folder}/dogwatch
          to: .
        - from: {folder}/LICENSE
          to: .
"
    )
}
