//! `dogwatch completions`.

use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Args;
use crate::exit::Failure;
use crate::output;

/// Which shell.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shells,
}

/// The shells that were asked for; clap knows others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Shells {
    /// source <(dogwatch completions bash)
    Bash,
    /// dogwatch completions zsh > "${fpath[1]}/_dogwatch"
    Zsh,
    /// dogwatch completions fish | source
    Fish,
}

/// Prints them.
pub fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let shell = match args.shell {
        Shells::Bash => Shell::Bash,
        Shells::Zsh => Shell::Zsh,
        Shells::Fish => Shell::Fish,
    };
    // clap_complete panics where it cannot write, and a closed pipe is no reason to.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "dogwatch", &mut script);
    let mut out = output::stdout();
    out.write_all(&script)?;
    Ok(out.flush()?)
}
