//! The person at the terminal: a name, and a word.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::exit::{Exit, Failure};

/// The name of the user at this machine.
pub fn name() -> String {
    ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()))
        .unwrap_or_else(|| "unknown".into())
}

/// Goes on only if the person says so: beforehand with `--yes`, or now. Where nobody can be asked,
/// it was not said.
pub fn confirm(question: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(
            Failure::new(Exit::Usage, format!("{question} Nobody can be asked here"))
                .next("say --yes if that is what you want"),
        );
    }
    eprint!("dogwatch: {question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::new(Exit::Failed, "nothing was done")),
    }
}
