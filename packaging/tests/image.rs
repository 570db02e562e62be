//! The images: by OCI's rules, the same bytes twice, and their programs run in nothing but the image.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod support;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use dogwatch_packaging::{
    file_tree::SHIPPED_ZSTD_LEVEL,
    image::{ImageSources, WrittenImage, write_images},
    sha256_hex,
    shipped_program::SHIPPED_PROGRAMS,
};
use serde_json::Value;
use support::{QUICK_ZSTD_LEVEL, stripped_programs};
use tempfile::TempDir;

fn write_test_images(output: &Path, zstd_level: i32) -> Vec<WrittenImage> {
    let sources = ImageSources {
        ca_certificates: PathBuf::from("/etc/ssl/certs/ca-certificates.crt"),
        source_date: 1_700_000_000,
        zstd_level,
    };
    write_images(stripped_programs(), &sources, output).unwrap()
}

/// Made once for all tests of this program.
fn images() -> &'static Path {
    static IMAGES: OnceLock<PathBuf> = OnceLock::new();
    IMAGES.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("test-images");
        // What an earlier run with other programs left must not be taken for ours.
        let _ = fs::remove_dir_all(&folder);
        write_test_images(&folder, QUICK_ZSTD_LEVEL);
        folder
    })
}

/// One image's layout, read as a registry's client reads it.
struct ReadLayout {
    folder: PathBuf,
    seen: BTreeSet<String>,
}

impl ReadLayout {
    fn open(folder: PathBuf) -> Self {
        let seen = BTreeSet::new();
        Self { folder, seen }
    }

    fn file(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.folder.join(name)).unwrap()).unwrap()
    }

    /// The blob of a descriptor, whose digest and size must be right.
    fn blob(&mut self, descriptor: &Value) -> Vec<u8> {
        let digest = descriptor["digest"].as_str().unwrap();
        let hex = digest.strip_prefix("sha256:").unwrap();
        let bytes = fs::read(self.folder.join("blobs/sha256").join(hex)).unwrap();
        assert_eq!(sha256_hex(&bytes), hex);
        assert_eq!(descriptor["size"], bytes.len());
        assert!(descriptor["mediaType"].is_string(), "{descriptor}");
        self.seen.insert(hex.to_owned());
        bytes
    }

    fn json_blob(&mut self, descriptor: &Value) -> Value {
        serde_json::from_slice(&self.blob(descriptor)).unwrap()
    }

    /// The uncompressed layers in order, each checked against the configuration.
    fn layers(&mut self) -> (Value, Vec<Vec<u8>>) {
        assert_eq!(self.file("oci-layout")["imageLayoutVersion"], "1.0.0");
        let index = self.file("index.json");
        assert_eq!(index["schemaVersion"], 2);
        assert_eq!(
            index["mediaType"],
            "application/vnd.oci.image.index.v1+json"
        );
        let entries = index["manifests"].as_array().unwrap();
        assert_eq!(entries.len(), 1);
        let manifest = self.json_blob(&entries[0]);
        assert_eq!(manifest["mediaType"], entries[0]["mediaType"]);
        let config = self.json_blob(&manifest["config"]);
        assert_eq!(
            config["architecture"],
            entries[0]["platform"]["architecture"]
        );
        let diff_ids = config["rootfs"]["diff_ids"].as_array().unwrap();
        let descriptors = manifest["layers"].as_array().unwrap();
        assert_eq!(diff_ids.len(), descriptors.len());
        assert_eq!(config["history"].as_array().unwrap().len(), diff_ids.len());
        let mut layers = Vec::new();
        for (descriptor, diff_id) in descriptors.iter().zip(diff_ids) {
            assert_eq!(
                descriptor["mediaType"],
                "application/vnd.oci.image.layer.v1.tar+zstd"
            );
            let layer = zstd::decode_all(self.blob(descriptor).as_slice()).unwrap();
            assert_eq!(
                format!("sha256:{}", sha256_hex(&layer)),
                diff_id.as_str().unwrap()
            );
            layers.push(layer);
        }
        (config, layers)
    }

    /// Blobs that nothing points to would be pushed for nothing.
    fn assert_no_other_blob(&self) {
        let blobs = fs::read_dir(self.folder.join("blobs/sha256")).unwrap();
        let names = blobs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.collect::<BTreeSet<_>>(), self.seen);
    }
}

#[test]
fn the_layouts_keep_ocis_rules_and_their_programs_run_from_them_alone() {
    for program in SHIPPED_PROGRAMS {
        let name = program.file_name();
        let mut layout = ReadLayout::open(images().join(name));
        let (config, layers) = layout.layers();
        layout.assert_no_other_blob();
        let labels = &config["config"]["Labels"];
        assert_eq!(labels["org.opencontainers.image.title"], name);
        assert_docker_loads_the_same(&layout, &config);
        let root = TempDir::new().unwrap();
        for layer in &layers {
            tar::Archive::new(layer.as_slice())
                .unpack(root.path())
                .unwrap();
        }
        let entrypoint = config["config"]["Entrypoint"][0].as_str().unwrap();
        let printed = run_in_root(root.path(), &[entrypoint, "--version"]);
        assert_eq!(printed, format!("{name} {}\n", dogwatch_packaging::VERSION));
        assert!(
            !root.path().join("bin/sh").exists(),
            "an image has no shell"
        );
        let sbom = root.path().join(format!("usr/share/sbom/{name}.cdx.json"));
        assert_sbom_names_what_is_inside(&fs::read(sbom).unwrap());
    }
}

/// `docker load` reads its own list beside OCI's.
fn assert_docker_loads_the_same(layout: &ReadLayout, config: &Value) {
    let docker = layout.file("manifest.json");
    let path = docker[0]["Config"].as_str().unwrap();
    assert_eq!(&layout.file(path), config);
    let layers = docker[0]["Layers"].as_array().unwrap();
    for layer in layers {
        assert!(layout.folder.join(layer.as_str().unwrap()).is_file());
    }
    assert_eq!(
        layers.len(),
        config["rootfs"]["diff_ids"].as_array().unwrap().len()
    );
}

fn assert_sbom_names_what_is_inside(json: &[u8]) {
    let sbom: Value = serde_json::from_slice(json).unwrap();
    assert_eq!(sbom["bomFormat"], "CycloneDX");
    let components = sbom["components"].as_array().unwrap();
    let names: BTreeSet<&str> = components
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    for name in ["tokio", "rustls", "kube-client"] {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
    // Only tests need it.
    assert!(!names.contains("proptest"), "{names:?}");
    if Path::new("/var/lib/dpkg/status").exists() {
        assert!(names.contains("libc6"), "{names:?}");
    }
}

#[test]
fn the_helpers_of_each_program_run_in_its_image() {
    for (name, helper) in [
        ("dogwatch", ["/usr/bin/ipmitool", "-V"]),
        ("dogwatch-coordinator", ["/usr/bin/nsenter", "--version"]),
    ] {
        let mut layout = ReadLayout::open(images().join(name));
        let root = TempDir::new().unwrap();
        // The program's own layer is not needed, and is the larger one.
        let (_, layers) = layout.layers();
        tar::Archive::new(layers[0].as_slice())
            .unpack(root.path())
            .unwrap();
        let printed = run_in_root(root.path(), &helper);
        assert!(
            printed.contains(helper[0].rsplit('/').next().unwrap()),
            "{printed}"
        );
    }
}

fn run_in_root(root: &Path, words: &[&str]) -> String {
    let output = support::in_root(root).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn two_runs_write_the_same_bytes() {
    let again = TempDir::new().unwrap();
    write_test_images(again.path(), QUICK_ZSTD_LEVEL);
    let compared = Command::new("diff")
        .arg("--recursive")
        .args([images(), again.path()])
        .output()
        .unwrap();
    assert!(compared.status.success(), "{compared:?}");
}

#[test]
fn what_is_missing_is_named_before_anything_is_written() {
    let output = TempDir::new().unwrap();
    let sources = ImageSources {
        ca_certificates: PathBuf::from("/nowhere/authorities.crt"),
        source_date: 0,
        zstd_level: QUICK_ZSTD_LEVEL,
    };
    let written = write_images(stripped_programs(), &sources, output.path());
    let error = format!("{:#}", written.unwrap_err());
    assert!(error.contains("/nowhere/authorities.crt"), "{error}");
    assert!(error.contains("--ca-certificates"), "{error}");
    assert_eq!(fs::read_dir(output.path()).unwrap().count(), 0);
    let empty = dogwatch_packaging::shipped_program::ProgramFolder::use_existing(output.path());
    let error = empty.unwrap_err().to_string();
    assert!(
        error.contains("cargo build --release -p dogwatch-cli"),
        "{error}"
    );
}

#[test]
#[ignore = "for programs as they are released: cargo xtask test --packaging"]
fn the_images_of_released_programs_are_small() {
    let output = TempDir::new().unwrap();
    for image in write_test_images(output.path(), SHIPPED_ZSTD_LEVEL) {
        let limit = match image.name {
            "dogwatch" => 15_000_000,
            _ => 10_000_000,
        };
        assert!(image.size.compressed <= limit, "{image:?}");
    }
}
