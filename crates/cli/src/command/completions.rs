//! Implements `dogwatch completions`.

use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Args;
use crate::exit::CommandFailure;
use crate::output;

#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// Shell to print completions for
    #[arg(value_enum)]
    shell: CompletionShell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CompletionShell {
    /// source <(dogwatch completions bash)
    Bash,
    /// dogwatch completions zsh > "${fpath[1]}/_dogwatch"
    Zsh,
    /// dogwatch completions fish | source
    Fish,
}

pub fn run(args: &CompletionsArgs) -> Result<(), CommandFailure> {
    let shell = match args.shell {
        CompletionShell::Bash => Shell::Bash,
        CompletionShell::Zsh => Shell::Zsh,
        CompletionShell::Fish => Shell::Fish,
    };
    // clap_complete panics when a write fails, and a closed pipe must not cause a panic.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "dogwatch", &mut script);
    let mut out = output::buffered_stdout();
    out.write_all(&script)?;
    Ok(out.flush()?)
}
