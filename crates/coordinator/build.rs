//! Makes the shipped program smaller: what is in it is in the memory of each node.
//!
//! - Packed relative relocations: the loader reads all of them at the start. Packed they are 5 KB,
//!   otherwise 370 KB.
//! - Functions with the same code are kept once: 70 KB.

use std::env;
use std::process::Command;

/// The first glibc whose loader reads packed relocations.
const FIRST_GLIBC: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if !is_variable("PROFILE", "release") || !is_variable("CARGO_CFG_TARGET_OS", "linux") {
        return;
    }
    if is_variable("CARGO_CFG_TARGET_ENV", "musl") || can_glibc_load() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if is_linked_by_lld() {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}

fn is_variable(name: &str, value: &str) -> bool {
    env::var(name).is_ok_and(|found| found == value)
}

/// rustc links with its own lld on this target, unless somebody names another linker.
fn is_linked_by_lld() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let has_own_linker = env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    is_variable("TARGET", "x86_64-unknown-linux-gnu") && !has_own_linker
}

/// Whether this machine's glibc, which the image takes along, reads packed relocations.
fn can_glibc_load() -> bool {
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else {
        return false;
    };
    // `glibc 2.36`
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().strip_prefix("glibc ").unwrap_or_default();
    let numbers = version
        .split_once('.')
        .map(|(major, minor)| (major.parse(), minor.parse()));
    matches!(numbers, Some((Ok(major), Ok(minor))) if (major, minor) >= FIRST_GLIBC)
}
