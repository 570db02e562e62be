//! The local user's name, and the confirmation question.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::exit::{CliExitCode, CommandFailure};
use crate::output;

pub fn user_name() -> String {
    ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()))
        .unwrap_or_else(|| "unknown".into())
}

/// Returns if the person confirms, with `--yes` or at the prompt. Without a terminal to ask on, it
/// fails.
pub fn ask_confirmation(question: &str, yes: bool) -> Result<(), CommandFailure> {
    if yes {
        return Ok(());
    }
    if output::is_captured() || !std::io::stdin().is_terminal() {
        return Err(CommandFailure::new(
            CliExitCode::Usage,
            format!(
                "{question} This command needs a confirmation, and no terminal is there to ask"
            ),
        )
        .with_next_step("to confirm without a question, add --yes"));
    }
    eprint!("dogwatch: {question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(CommandFailure::new(CliExitCode::Failed, "nothing was done")),
    }
}
