//! The programs that the tests pack, and small roots to run things in.
#![allow(dead_code, reason = "each test program uses its part")]

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use dogwatch_packaging::{
    elf::find_shared_objects,
    shipped_program::{ProgramFolder, SHIPPED_PROGRAMS},
};

/// Names a folder with both programs in place of those that cargo built for the tests.
const PROGRAMS_VARIABLE: &str = "DOGWATCH_PROGRAMS";

/// For images that only tests read.
pub const QUICK_ZSTD_LEVEL: i32 = 1;

/// The programs that cargo built beside this test, without their symbols, which are nine tenths of them.
pub fn stripped_programs() -> &'static ProgramFolder {
    static STRIPPED: OnceLock<ProgramFolder> = OnceLock::new();
    STRIPPED.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stripped-programs");
        std::fs::create_dir_all(&folder).unwrap();
        for program in SHIPPED_PROGRAMS {
            strip_program(program.file_name(), &folder);
        }
        ProgramFolder::use_existing(&folder).unwrap()
    })
}

/// Other test programs may use the folder at the same time, so the file appears whole.
fn strip_program(name: &str, folder: &Path) {
    let built = built_programs().join(name);
    assert!(
        built.is_file(),
        "{} is missing: run cargo build -p dogwatch-cli -p dogwatch-coordinator, or set {PROGRAMS_VARIABLE}",
        built.display()
    );
    let unfinished = folder.join(format!("{name}-{}", std::process::id()));
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&unfinished).arg(built);
    assert!(strip.status().unwrap().success(), "{strip:?}");
    std::fs::rename(unfinished, folder.join(name)).unwrap();
}

fn built_programs() -> PathBuf {
    if let Some(folder) = env::var_os(PROGRAMS_VARIABLE) {
        return folder.into();
    }
    // target/debug/deps/TEST
    let test = env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().to_owned()
}

/// A command whose root is this folder. Only root may do that; others are root in a user namespace of their own.
pub fn in_root(root: &Path) -> Command {
    let mut command = as_root("chroot");
    command
        .arg(root)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}

pub fn as_root(program: &str) -> Command {
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout == b"0\n" {
        return Command::new(program);
    }
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", program]);
    command
}

/// Copies these programs of the machine, and what they need, into a root.
pub fn add_machine_programs(root: &Path, programs: &[PathBuf]) {
    let libraries = find_shared_objects(programs).unwrap();
    let all = libraries.into_values().chain(programs.iter().cloned());
    for path in all.filter(|path| path.starts_with("/")) {
        let place = root.join(path.strip_prefix("/").unwrap());
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::copy(&path, place).unwrap();
    }
}
