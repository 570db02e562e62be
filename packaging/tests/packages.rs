//! The packages: installed and removed by the real dpkg and rpm in an empty root, and the same bytes twice.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod support;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use dogwatch_packaging::{
    VERSION,
    dist::{DistSettings, write_packages},
    elf::find_shared_objects,
    shipped_program::SHIPPED_PROGRAMS,
};
use support::{add_machine_programs, as_root, in_root, stripped_programs};
use tempfile::TempDir;

/// What the packages depend on, in the versions of this machine; only their names count in an empty root.
const DEPENDENCIES: [&str; 3] = ["libc6", "libgcc-s1", "libssl3"];

fn write_test_packages(output: &Path) -> Vec<String> {
    let settings = DistSettings {
        source_date: 1_700_000_000,
        download_url: "https://downloads.example/dogwatch/".to_owned(),
    };
    write_packages(stripped_programs(), &settings, output).unwrap()
}

/// Made once for all tests of this program.
fn packages() -> &'static Path {
    static PACKAGES: OnceLock<PathBuf> = OnceLock::new();
    PACKAGES.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("test-packages");
        // What an earlier run with other programs left must not be taken for ours.
        let _ = fs::remove_dir_all(&folder);
        write_test_packages(&folder);
        folder
    })
}

fn packages_ending_with(end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(packages()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.display().to_string().ends_with(end))
        .collect();
    found.sort();
    assert_eq!(found.len(), 2, "{end}: {found:?}");
    found
}

/// A root with a shell for the packages' scripts, and the libraries that the programs need.
fn empty_root() -> TempDir {
    let root = TempDir::new().unwrap();
    add_machine_programs(root.path(), &[PathBuf::from("/bin/sh")]);
    let programs = SHIPPED_PROGRAMS.map(|program| stripped_programs().program_path(program));
    let libraries = find_shared_objects(&programs).unwrap();
    let libraries: Vec<PathBuf> = libraries.into_values().collect();
    add_machine_programs(root.path(), &libraries);
    for folder in [
        "var/lib/dpkg/info",
        "var/lib/dpkg/updates",
        "var/lib/rpm",
        "tmp",
    ] {
        fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    // rpm looks up the owners of files.
    fs::create_dir_all(root.path().join("etc")).unwrap();
    fs::write(
        root.path().join("etc/passwd"),
        "root:x:0:0:root:/:/bin/sh\n",
    )
    .unwrap();
    fs::write(root.path().join("etc/group"), "root:x:0:\n").unwrap();
    let mut status = String::new();
    for name in DEPENDENCIES {
        let query = Command::new("dpkg-query")
            .args(["-W", "-f=${Version} ${Architecture}", name])
            .output();
        let text = String::from_utf8(query.unwrap().stdout).unwrap();
        let (version, architecture) = text.split_once(' ').unwrap();
        writeln!(
            status,
            "Package: {name}\nStatus: install ok installed\nMaintainer: test\nArchitecture: {architecture}\nVersion: {version}\nDescription: test\n"
        )
        .unwrap();
    }
    fs::write(root.path().join("var/lib/dpkg/status"), status).unwrap();
    root
}

/// Every file outside of the package managers' own folders, with its mode.
fn list_files(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if ["var/lib/dpkg", "var/lib/rpm", "tmp"].contains(&name.as_str()) {
                continue;
            }
            let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                found.insert(format!("{mode:o} {name}"));
            }
        }
    }
    found
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn assert_installed(root: &Path, before: &BTreeSet<String>) {
    let all = list_files(root);
    let added: BTreeSet<&str> = all.difference(before).map(String::as_str).collect();
    for file in [
        "100755 usr/bin/dogwatch",
        "120777 usr/bin/kubectl-dogwatch",
        "100755 usr/bin/dogwatch-coordinator",
        "100600 etc/dogwatch/controller.env",
        "100600 etc/dogwatch/coordinator.env",
        "100644 usr/lib/systemd/system/dogwatch-controller.service",
        "100644 usr/lib/systemd/system/dogwatch-coordinator.service",
        "100644 usr/share/man/man1/dogwatch.1.gz",
        "100644 usr/share/man/man1/dogwatch-reboot.1.gz",
        "100644 usr/share/man/man8/dogwatch-coordinator.8.gz",
        "100644 usr/share/bash-completion/completions/dogwatch",
        "100644 usr/share/zsh/site-functions/_dogwatch",
        "100644 usr/share/fish/vendor_completions.d/dogwatch.fish",
        "100644 usr/share/sbom/dogwatch.cdx.json",
        "100644 usr/share/doc/dogwatch-coordinator/copyright",
    ] {
        assert!(added.contains(file), "{file} is not in {added:#?}");
    }
    for (command, name) in [
        ("dogwatch", "dogwatch"),
        ("kubectl-dogwatch", "dogwatch"),
        ("dogwatch-coordinator", "dogwatch-coordinator"),
    ] {
        let printed = run(in_root(root).args([command, "--version"]));
        assert!(
            printed.contains(name) && printed.contains(VERSION),
            "{printed}"
        );
    }
}

#[test]
fn dpkg_installs_updates_removes_and_purges_both_packages() {
    let root = empty_root();
    let before = list_files(root.path());
    let dpkg = || {
        let mut command = as_root("dpkg");
        command
            .arg(format!("--root={}", root.path().display()))
            .arg("--force-not-root");
        command
    };
    run(dpkg().arg("--install").args(packages_ending_with(".deb")));
    assert_installed(root.path(), &before);
    // A setting that somebody has changed outlives an update and a removal.
    let settings = root.path().join("etc/dogwatch/coordinator.env");
    fs::write(&settings, "DOGWATCH_NODE_NAME=mine\n").unwrap();
    run(dpkg()
        .args(["--force-confold", "--install"])
        .args(packages_ending_with(".deb")));
    run(dpkg().args(["--remove", "dogwatch", "dogwatch-coordinator"]));
    assert_eq!(
        fs::read_to_string(&settings).unwrap(),
        "DOGWATCH_NODE_NAME=mine\n"
    );
    run(dpkg().args(["--purge", "dogwatch", "dogwatch-coordinator"]));
    assert_eq!(list_files(root.path()), before);
}

#[test]
fn rpm_installs_verifies_and_erases_both_packages() {
    let root = empty_root();
    let before = list_files(root.path());
    let rpm = || {
        let mut command = as_root("rpm");
        command
            .arg("--root")
            .arg(root.path())
            .args(["--dbpath", "/var/lib/rpm"]);
        command
    };
    // No rpm of glibc is here; which libraries are required is asked of the packages below.
    run(rpm()
        .args(["--install", "--nodeps"])
        .args(packages_ending_with(".rpm")));
    assert_installed(root.path(), &before);
    run(rpm().args(["--verify", "--nodeps", "dogwatch", "dogwatch-coordinator"]));
    let settings = root.path().join("etc/dogwatch/coordinator.env");
    fs::write(&settings, "DOGWATCH_NODE_NAME=mine\n").unwrap();
    run(rpm().args(["--erase", "dogwatch", "dogwatch-coordinator"]));
    let kept = settings.with_extension("env.rpmsave");
    assert_eq!(
        fs::read_to_string(&kept).unwrap(),
        "DOGWATCH_NODE_NAME=mine\n"
    );
    fs::remove_file(kept).unwrap();
    assert_eq!(list_files(root.path()), before);
}

#[test]
fn the_packages_name_the_libraries_that_their_programs_need() {
    for deb in packages_ending_with(".deb") {
        let fields = run(Command::new("dpkg-deb").arg("--field").arg(&deb));
        assert!(
            fields.contains(&format!("Version: {VERSION}\n")),
            "{fields}"
        );
        let needs = fields
            .lines()
            .find(|line| line.starts_with("Depends: "))
            .unwrap();
        assert!(
            needs.contains("libc6 (>= 2.") && needs.contains("libgcc-s1"),
            "{needs}"
        );
    }
    for rpm in packages_ending_with(".rpm") {
        let needs = run(Command::new("rpm")
            .args(["--query", "--requires", "--package"])
            .arg(rpm));
        assert!(needs.contains("libc.so.6(GLIBC_2."), "{needs}");
        assert!(needs.contains("libgcc_s.so.1()(64bit)"), "{needs}");
    }
}

#[test]
fn the_checksums_hold_and_name_every_file() {
    let folder = packages();
    let mut check = Command::new("sha256sum");
    check
        .args(["--check", "--strict", "SHA256SUMS"])
        .current_dir(folder);
    let listed = run(&mut check).lines().count();
    assert_eq!(listed + 1, fs::read_dir(folder).unwrap().count());
}

#[test]
fn krews_manifest_has_the_sum_of_its_archive_and_the_archive_has_what_it_names() {
    let folder = packages();
    let manifest = fs::read_to_string(folder.join("dogwatch.krew.yaml")).unwrap();
    let value = |key: &str| {
        let line = manifest
            .lines()
            .find_map(|line| line.trim().strip_prefix(key));
        line.unwrap().trim().to_owned()
    };
    let url = value("uri:");
    let archive = url
        .strip_prefix("https://downloads.example/dogwatch/")
        .unwrap();
    let bytes = fs::read(folder.join(archive)).unwrap();
    assert_eq!(value("sha256:"), dogwatch_packaging::sha256_hex(&bytes));
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
    let entries = archive.entries().unwrap();
    let paths: BTreeSet<String> = entries
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    for line in manifest.lines() {
        if let Some(from) = line.trim().strip_prefix("- from: ") {
            assert!(paths.contains(from), "{from} is not in {paths:?}");
        }
    }
    let about = value("shortDescription:");
    assert!(
        about.len() <= 50 && !about.ends_with('.'),
        "krew's rules for it: {about}"
    );
}

#[test]
fn two_runs_write_the_same_bytes() {
    let again = TempDir::new().unwrap();
    write_test_packages(again.path());
    run(Command::new("diff")
        .arg("--recursive")
        .arg(packages())
        .arg(again.path()));
}
