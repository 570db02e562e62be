//! House rules that no other tool knows: nothing of a machine is left in the tree, and what is long is named.

use std::{fmt::Write, fs, path::Path};

use anyhow::{Context, Result, ensure};

use crate::{
    figures::{LONG_FILE_LINES, LONG_FUNCTION_LINES, function_length, function_name},
    source_tree,
};

/// What betrays the machine it was written on, or that somebody was not done. In pieces, so that this file passes.
const LEFTOVERS: [&str; 7] = [
    concat!("/", "root/"),
    concat!("/", "home/"),
    concat!("/", "work/"),
    concat!("/tmp", "/t/"),
    concat!("FIX", "ME"),
    concat!("TO", "DO:"),
    concat!("XX", "X:"),
];

/// The crates whose code runs in scenarios. A scenario runs twice and must print the same text twice.
const CRATES_OF_SCENARIOS: [&str; 6] = [
    "crates/controller/src/",
    "crates/coordinator/src/",
    "crates/k8s/src/",
    "crates/kubesim/src/",
    "crates/runtime/src/",
    "crates/sim/src/",
];

/// Fails on leftovers and on a choice by chance; reports what is long.
pub fn check_house_rules() -> Result<String> {
    let mut leftovers = Vec::new();
    let mut long = Vec::new();
    let mut by_chance = Vec::new();
    for file in source_tree::tracked_files()? {
        let bytes = fs::read(source_tree::workspace_root().join(&file))
            .with_context(|| format!("failed to read {}", file.display()))?;
        // What is not text has no lines to look at.
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        leftovers.extend(find_leftovers(&file, &text));
        if file.extension().is_some_and(|extension| extension == "rs") {
            long.extend(find_long_code(&file, &text));
            by_chance.extend(find_random_selects(&file, &text));
        }
    }
    for line in &long {
        eprintln!("long: {line}");
    }
    let mut found = String::new();
    for line in &leftovers {
        write!(found, "\n  {line}").expect("a String takes all");
    }
    ensure!(
        leftovers.is_empty(),
        "leftovers that must not be committed:{found}"
    );
    ensure!(
        by_chance.is_empty(),
        "`select!` without `biased;`: events of one moment are handled in an order by chance:\n  {}",
        by_chance.join("\n  ")
    );
    Ok(format!(
        "ok ({} files or functions are long, named above)",
        long.len()
    ))
}

fn find_leftovers(file: &Path, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let found = lines.filter_map(|(index, line)| {
        let leftover = LEFTOVERS
            .iter()
            .find(|leftover| line.contains(**leftover))?;
        Some(format!("{}:{}: {leftover}", file.display(), index + 1))
    });
    found.collect()
}

/// Without `biased;`, `select!` takes one of several ready branches by chance.
fn find_random_selects(file: &Path, text: &str) -> Vec<String> {
    let path = file.to_string_lossy();
    if !CRATES_OF_SCENARIOS
        .iter()
        .any(|start| path.starts_with(start))
    {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_random = |start: usize| {
        let first = lines[start + 1..]
            .iter()
            .find(|line| !line.starts_with("//"));
        lines[start].ends_with("select! {") && first != Some(&"biased;")
    };
    let found = (0..lines.len()).filter(|start| is_random(*start));
    found.map(|start| format!("{path}:{}", start + 1)).collect()
}

fn find_long_code(file: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > LONG_FILE_LINES {
        found.push(format!("{}: {} lines", file.display(), lines.len()));
    }
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let length = function_length(&lines[start..]);
        if length > LONG_FUNCTION_LINES {
            found.push(format!(
                "{}:{}: fn {name}: {length} lines",
                file.display(),
                start + 1
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machines_path_is_found_with_its_line() {
        let text = format!("fine\nlet path = \"{}x\";\n", LEFTOVERS[0]);
        assert_eq!(find_leftovers(Path::new("a.rs"), &text).len(), 1);
        assert!(find_leftovers(Path::new("a.rs"), &text)[0].starts_with("a.rs:2:"));
    }

    #[test]
    fn a_select_by_chance_is_found_in_what_scenarios_run() {
        let text = "tokio::select! {\n    // Why.\n    biased;\n}\nlet x = tokio::select! {\n    a = b => {}\n}\n";
        let found = find_random_selects(Path::new("crates/sim/src/a.rs"), text);
        assert_eq!(found, ["crates/sim/src/a.rs:5"]);
        assert!(find_random_selects(Path::new("crates/cli/src/a.rs"), text).is_empty());
    }

    #[test]
    fn a_long_function_is_named_and_a_short_one_is_not() {
        let body = "        call();\n".repeat(LONG_FUNCTION_LINES);
        let text = format!(
            "    pub async fn long<T>(\n        a: T,\n    ) {{\n{body}    }}\n    fn short() {{\n    }}\n"
        );
        let found = find_long_code(Path::new("a.rs"), &text);
        assert_eq!(
            found,
            [format!(
                "a.rs:1: fn long: {} lines",
                LONG_FUNCTION_LINES + 4
            )]
        );
    }
}
