//! The documents of an OCI image, version 1.1 of its specification, and the folder that holds them. The same folder as an archive
//! is also what `docker load` reads.

use std::path::Path;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{ImageSources, root_fs::PLAIN_UID};
use crate::{
    VERSION,
    elf::CpuArchitecture,
    file_tree::{DATA_MODE, FileTree, TreeEntry, compress_zstd},
    sha256_hex,
    shipped_program::ShippedProgram,
    write_output,
};

const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const SOURCE_URL: &str = env!("CARGO_PKG_REPOSITORY");

/// One layer, compressed.
pub struct ImageLayer {
    zstd: Vec<u8>,
    /// Of the archive before compression.
    diff_id: String,
    unpacked_size: usize,
    comment: &'static str,
}

impl ImageLayer {
    pub fn pack(files: &FileTree, comment: &'static str, sources: &ImageSources) -> Result<Self> {
        let archive = files.to_tar("", sources.source_date)?;
        Ok(Self {
            zstd: compress_zstd(&archive, sources.zstd_level)?,
            diff_id: format!("sha256:{}", sha256_hex(&archive)),
            unpacked_size: archive.len(),
            comment,
        })
    }
}

/// What a registry stores, and what a node unpacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageSize {
    pub compressed: usize,
    pub unpacked: usize,
}

/// How the image's program is run, and who made the image.
pub struct ImageConfig {
    program: ShippedProgram,
    architecture: CpuArchitecture,
    created: String,
}

impl ImageConfig {
    pub fn of_program(
        program: ShippedProgram,
        architecture: CpuArchitecture,
        source_date: u64,
    ) -> Result<Self> {
        let seconds = i64::try_from(source_date).context("a date that far is no date")?;
        let created = Timestamp::from_second(seconds)?.to_string();
        Ok(Self {
            program,
            architecture,
            created,
        })
    }

    fn labels(&self) -> Value {
        json!({
            "org.opencontainers.image.created": self.created,
            "org.opencontainers.image.description": self.program.description(),
            "org.opencontainers.image.licenses": "Apache-2.0",
            "org.opencontainers.image.source": SOURCE_URL,
            "org.opencontainers.image.title": self.program.file_name(),
            "org.opencontainers.image.version": VERSION,
        })
    }

    fn to_json(&self, layers: &[ImageLayer]) -> Value {
        let name = self.program.file_name();
        let mut run = json!({
            "Entrypoint": [format!("/usr/bin/{name}")],
            "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
            "Labels": self.labels(),
            "WorkingDir": "/",
        });
        match self.program {
            ShippedProgram::Dogwatch => run["User"] = format!("{PLAIN_UID}:{PLAIN_UID}").into(),
            // By default it enters the host's namespaces, which takes root.
            ShippedProgram::Coordinator => {}
        }
        let history = layers.iter().map(|layer| {
            json!({ "created": self.created, "created_by": "cargo xtask image", "comment": layer.comment })
        });
        json!({
            "created": self.created,
            "architecture": self.architecture.go_name(),
            "os": "linux",
            "config": run,
            "rootfs": {
                "type": "layers",
                "diff_ids": layers.iter().map(|layer| &layer.diff_id).collect::<Vec<_>>(),
            },
            "history": history.collect::<Vec<_>>(),
        })
    }

    /// As containerd keeps an image without a registry's name, and as the manifests name it.
    fn reference(&self) -> String {
        format!("docker.io/library/{}:{VERSION}", self.program.file_name())
    }
}

/// The files of the layout, by path.
pub struct ImageLayout {
    files: FileTree,
    size: ImageSize,
}

impl ImageLayout {
    pub fn build(config: &ImageConfig, layers: &[ImageLayer]) -> Result<Self> {
        let mut files = FileTree::default();
        files.add_file(
            "oci-layout",
            DATA_MODE,
            br#"{"imageLayoutVersion":"1.0.0"}"#,
        );
        let blob = serde_json::to_vec(&config.to_json(layers))?;
        let config_entry = add_blob(&mut files, CONFIG_TYPE, &blob);
        let layer_entries: Vec<Value> = layers
            .iter()
            .map(|layer| add_blob(&mut files, LAYER_TYPE, &layer.zstd))
            .collect();
        let manifest = serde_json::to_vec(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": config_entry,
            "layers": layer_entries,
            "annotations": config.labels(),
        }))?;
        let mut entry = add_blob(&mut files, MANIFEST_TYPE, &manifest);
        entry["platform"] = json!({ "architecture": config.architecture.go_name(), "os": "linux" });
        entry["annotations"] = json!({
            "io.containerd.image.name": config.reference(),
            "org.opencontainers.image.ref.name": VERSION,
        });
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry] });
        files.add_file("index.json", DATA_MODE, serde_json::to_vec(&index)?);
        let docker = docker_manifest(config, &config_entry, &layer_entries);
        files.add_file("manifest.json", DATA_MODE, serde_json::to_vec(&docker)?);
        let size = ImageSize {
            compressed: blob.len() + layers.iter().map(|layer| layer.zstd.len()).sum::<usize>(),
            unpacked: layers.iter().map(|layer| layer.unpacked_size).sum(),
        };
        Ok(Self { files, size })
    }

    pub fn measure_size(&self) -> ImageSize {
        self.size
    }

    pub fn to_file_tree(&self) -> &FileTree {
        &self.files
    }

    /// Replaces what an earlier run left there.
    pub fn write_folder(&self, folder: &Path) -> Result<()> {
        if folder.join("oci-layout").is_file() {
            std::fs::remove_dir_all(folder)
                .with_context(|| format!("failed to remove {}", folder.display()))?;
        }
        for (path, entry) in self.files.list_entries() {
            match entry {
                TreeEntry::File { content, .. } => write_output(&folder.join(path), content)?,
                TreeEntry::Directory { .. } | TreeEntry::Link { .. } => {}
            }
        }
        Ok(())
    }
}

/// Adds a blob under its digest; returns the entry that points to it.
fn add_blob(files: &mut FileTree, media_type: &str, bytes: &[u8]) -> Value {
    let hex = sha256_hex(bytes);
    files.add_file(&format!("blobs/sha256/{hex}"), DATA_MODE, bytes);
    json!({ "mediaType": media_type, "digest": format!("sha256:{hex}"), "size": bytes.len() })
}

/// What `docker load` reads beside the layout, since version 25 in the same archive.
fn docker_manifest(config: &ImageConfig, config_entry: &Value, layers: &[Value]) -> Value {
    let path = |entry: &Value| {
        let digest = entry["digest"].as_str().expect("add_blob wrote it");
        digest.replacen("sha256:", "blobs/sha256/", 1)
    };
    json!([{
        "Config": path(config_entry),
        "RepoTags": [format!("{}:{VERSION}", config.program.file_name())],
        "Layers": layers.iter().map(path).collect::<Vec<_>>(),
    }])
}
