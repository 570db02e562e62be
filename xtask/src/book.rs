//! `cargo xtask book`: mdbook makes a book of `docs/`, with a search.

use std::process::Command;

use anyhow::Result;

use crate::{cargo_tool::CargoTool, source_tree};

const MDBOOK: CargoTool = CargoTool {
    name: "mdbook",
    version: "0.5.4",
    // Without its server, which would be half of it.
    install_arguments: &["--no-default-features", "--features", "search"],
    usual_install_time: "about 5 minutes",
};

#[derive(clap::Args)]
pub struct BookArguments {}

pub fn run(_: &BookArguments) -> Result<()> {
    make_book()
}

pub fn make_book() -> Result<()> {
    let mut command = Command::new(MDBOOK.find_or_install()?);
    command.arg("build").arg(source_tree::workspace_root());
    source_tree::run_command(&mut command)?;
    println!("target/book/index.html");
    Ok(())
}
