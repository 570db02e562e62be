//! `cargo xtask generate`: the files, and the blocks in files, that are made from code. `--check` only says what is stale.
//!
//! A test of `dogwatch-api` makes the definitions in `deploy/` (`src/schema/generated_manifests.rs`), and one of `dogwatch-top`
//! the pictures in `docs/pictures/` (`src/tests/pictures.rs`), so that xtask links none of the project's crates.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::{helm_chart, source_tree};

/// The page with the block that `cargo xtask help` fills.
const HELP_PAGE: &str = "CONTRIBUTING.md";
const HELP_BLOCK: &str = "cargo xtask help";

#[derive(clap::Args)]
pub struct GenerateArguments {
    /// Write nothing; fail where something is stale
    #[arg(long)]
    check: bool,
}

pub fn run(arguments: &GenerateArguments) -> Result<()> {
    if arguments.check {
        return check_up_to_date();
    }
    run_manifest_test(true)?;
    run_picture_test(true)?;
    for name in helm_chart::write_templates()? {
        println!("wrote deploy/chart/templates/{name}");
    }
    let (current, wanted) = read_help_page()?;
    if current != wanted {
        let file = source_tree::workspace_root().join(HELP_PAGE);
        fs::write(file, wanted).with_context(|| format!("failed to write {HELP_PAGE}"))?;
        println!("wrote {HELP_PAGE}");
    }
    Ok(())
}

/// Fails where a file is not what `generate` would write.
pub fn check_up_to_date() -> Result<()> {
    let (current, wanted) = read_help_page()?;
    ensure!(
        current == wanted,
        "stale: {HELP_PAGE} (cargo xtask generate writes it)"
    );
    helm_chart::check_templates()?;
    run_picture_test(false)?;
    run_manifest_test(false)
}

/// The screens and pictures of `dogwatch top` and of the demo.
fn run_picture_test(write: bool) -> Result<()> {
    let mut command = source_tree::test_cargo_command();
    command.args(["test", "--quiet", "--package", "dogwatch-top", "--lib"]);
    command.args(["generated_", "--", "--nocapture"]);
    if write {
        command.env("DOGWATCH_WRITE_GENERATED", "1");
    }
    source_tree::run_command(&mut command)
}

fn run_manifest_test(write: bool) -> Result<()> {
    let mut command = source_tree::test_cargo_command();
    // Only this crate: its schemas are derived where its own unit tests are built.
    command.args(["test", "--quiet", "--package", "dogwatch-api", "--lib"]);
    command.args(["generated_manifests", "--", "--nocapture"]);
    if write {
        command.env("DOGWATCH_WRITE_GENERATED", "1");
    }
    source_tree::run_command(&mut command)
}

/// The page as it is, and as it should be.
fn read_help_page() -> Result<(String, String)> {
    let file = source_tree::workspace_root().join(HELP_PAGE);
    let current =
        fs::read_to_string(file).with_context(|| format!("failed to read {HELP_PAGE}"))?;
    let wanted = replace_block(&current, HELP_BLOCK, &crate::help_text())
        .with_context(|| format!("failed to find the block in {HELP_PAGE}"))?;
    Ok((current, wanted))
}

fn replace_block(text: &str, name: &str, content: &str) -> Result<String> {
    let begin = format!("<!-- generated: {name} -->\n");
    let (before, rest) = text
        .split_once(&begin)
        .with_context(|| format!("no line {}", begin.trim_end()))?;
    let (_, after) = rest
        .split_once("<!-- end -->\n")
        .context("no line <!-- end --> after it")?;
    let lines: Vec<&str> = content.trim_end().lines().map(str::trim_end).collect();
    Ok(format!(
        "{before}{begin}```text\n{}\n```\n<!-- end -->\n{after}",
        lines.join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_replaced_and_what_is_around_it_stays() {
        let text = "a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n";
        let new = replace_block(text, "x", "new \n").unwrap();
        assert_eq!(
            new,
            "a\n<!-- generated: x -->\n```text\nnew\n```\n<!-- end -->\nb\n"
        );
        assert_eq!(replace_block(&new, "x", "new").unwrap(), new);
        assert!(replace_block(text, "y", "new").is_err());
    }
}
