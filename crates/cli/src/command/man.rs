//! Implements the hidden command `dogwatch man`, which `cargo xtask dist` runs: the man pages of both programs.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::args::Args;
use crate::exit::CommandFailure;

const MANUAL: &str = "Dogwatch";
/// Commands of users, and daemons of administrators (man-pages(7)).
const USER_SECTION: &str = "1";
const DAEMON_SECTION: &str = "8";

#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Folder to write the man pages to
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub fn run(args: &ManArgs) -> Result<(), CommandFailure> {
    fs::create_dir_all(&args.folder)?;
    // Without the terminal's width, which would show in the pages.
    let mut command = Args::command().term_width(0);
    command.build();
    write_command_pages(&command, USER_SECTION, &args.folder)?;
    let mut coordinator = dogwatch_coordinator::args::Args::command().term_width(0);
    coordinator.build();
    Ok(write_command_pages(
        &coordinator,
        DAEMON_SECTION,
        &args.folder,
    )?)
}

/// One page for the command, and one for each of its subcommands.
fn write_command_pages(command: &Command, section: &str, folder: &Path) -> std::io::Result<()> {
    let page = Man::new(command.clone())
        .section(section)
        .source(format!("Dogwatch {}", env!("CARGO_PKG_VERSION")))
        .manual(MANUAL);
    page.generate_to(folder)?;
    for subcommand in command.get_subcommands() {
        // `help` has no flags, and its page would only repeat the first one.
        if !subcommand.is_hide_set() && subcommand.get_name() != "help" {
            write_command_pages(subcommand, section, folder)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a command and all its subcommands that people see.
    fn command_names(command: &Command, names: &mut Vec<String>) {
        let name = command.get_display_name().unwrap_or(command.get_name());
        names.push(name.to_owned());
        for subcommand in command.get_subcommands() {
            if !subcommand.is_hide_set() && subcommand.get_name() != "help" {
                command_names(subcommand, names);
            }
        }
    }

    #[test]
    fn each_command_has_a_page_with_its_flags() {
        let folder = tempfile::tempdir().unwrap();
        let args = ManArgs {
            folder: folder.path().join("pages"),
        };
        run(&args).unwrap();
        let mut command = Args::command();
        command.build();
        let mut names = Vec::new();
        command_names(&command, &mut names);
        assert!(names.contains(&"dogwatch-power-on".to_owned()), "{names:?}");
        let page = |file: String| fs::read_to_string(args.folder.join(&file)).expect(&file);
        for name in names {
            let text = page(format!("{name}.1"));
            assert!(
                text.contains(".TH ") && text.contains(".SH SYNOPSIS"),
                "{text}"
            );
        }
        assert!(page("dogwatch-reboot.1".to_owned()).contains("\\-\\-reason"));
        assert!(page("dogwatch-coordinator.8".to_owned()).contains("\\-\\-sentinel"));
        assert!(
            !args.folder.join("dogwatch-man.1").exists(),
            "it is for packages only"
        );
    }
}
