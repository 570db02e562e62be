//! The committed ratchet: no figure in it may rise. `cargo xtask lint --lower-ratchet` writes the figures that fell.

use std::{collections::BTreeMap, fmt::Write, fs};

use anyhow::{Context, Result, ensure};

use super::Figure;
use crate::source_tree;

/// Lines `NAME FIGURE`; a figure that is not named is free.
const RATCHET_FILE: &str = "xtask/ratchet.txt";

/// Fails where a figure is above the ratchet; with `lower` writes the file for those that fell.
pub fn check_ratchet(figures: &[Figure], lower: bool) -> Result<String> {
    let file = source_tree::workspace_root().join(RATCHET_FILE);
    let text =
        fs::read_to_string(&file).with_context(|| format!("failed to read {RATCHET_FILE}"))?;
    let limits = parse_ratchet(&text)?;
    let risen = risen_figures(figures, &limits);
    ensure!(
        risen.is_empty(),
        "above {RATCHET_FILE}, which may only fall: {}",
        risen.join(", ")
    );
    if lower {
        let lowered = lower_ratchet(&text, figures, &limits);
        fs::write(&file, lowered).with_context(|| format!("failed to write {RATCHET_FILE}"))?;
    }
    Ok(format!("ok ({} figures held)", limits.len()))
}

fn parse_ratchet(text: &str) -> Result<BTreeMap<&str, u64>> {
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line
                .split_once(' ')
                .with_context(|| format!("{RATCHET_FILE}: not NAME FIGURE: {line}"))?;
            let value = value
                .trim()
                .parse()
                .with_context(|| format!("{RATCHET_FILE}: no figure: {line}"))?;
            Ok((name, value))
        })
        .collect()
}

fn risen_figures(figures: &[Figure], limits: &BTreeMap<&str, u64>) -> Vec<String> {
    let risen = figures.iter().filter_map(|Figure { name, value }| {
        let limit = limits.get(name).filter(|limit| value > limit)?;
        Some(format!("{name} is {value}, was {limit}"))
    });
    risen.collect()
}

fn lower_ratchet(text: &str, figures: &[Figure], limits: &BTreeMap<&str, u64>) -> String {
    let comments = text.lines().filter(|line| line.starts_with('#'));
    let mut lowered = comments.collect::<Vec<_>>().join("\n");
    lowered.push('\n');
    for Figure { name, value } in figures {
        if limits.contains_key(name) {
            writeln!(lowered, "{name} {value}").expect("a String takes all");
        }
    }
    lowered
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# a comment\nfunctions 10\ntypes 5\n";

    fn figures(functions: u64) -> [Figure; 2] {
        [("functions", functions), ("types", 4)].map(|(name, value)| Figure { name, value })
    }

    #[test]
    fn a_figure_that_rose_is_named_and_one_that_fell_lowers_the_ratchet() {
        let limits = parse_ratchet(TEXT).expect("two figures");
        assert_eq!(
            risen_figures(&figures(11), &limits),
            ["functions is 11, was 10"]
        );
        assert!(risen_figures(&figures(10), &limits).is_empty());
        assert_eq!(
            lower_ratchet(TEXT, &figures(9), &limits),
            "# a comment\nfunctions 9\ntypes 4\n"
        );
        assert!(parse_ratchet("functions many\n").is_err());
    }
}
