//! `cargo xtask generate`: the files, and the blocks in files, that are made from code. `--check` only says what is stale.

use std::{fs, io::ErrorKind};

use anyhow::{Context, Result, ensure};

use crate::tree;

/// Something that is made from code.
struct Generated {
    /// The file, relative to the workspace's folder.
    path: &'static str,
    /// The whole file, or the block between two marks in it.
    place: Place,
    /// Makes the content.
    make: fn() -> Result<String>,
}

enum Place {
    /// The whole file.
    File,
    /// The lines between `<!-- generated: NAME -->` and `<!-- end -->`, as a block of plain text.
    Block(&'static str),
}

/// Everything that is generated; a new one is added here.
const GENERATED: &[Generated] = &[
    Generated {
        path: "CONTRIBUTING.md",
        place: Place::Block("cargo xtask help"),
        make: || Ok(crate::help()),
    },
    Generated {
        path: "deploy/crds/powerremediations.yaml",
        place: Place::File,
        make: || manifest(&dogwatch_api::power_remediation::crd()),
    },
    Generated {
        path: "deploy/crds/powerremediationtemplates.yaml",
        place: Place::File,
        make: || manifest(&dogwatch_api::power_remediation_template::crd()),
    },
    Generated {
        path: "deploy/crds/rebootpolicies.yaml",
        place: Place::File,
        make: || manifest(&dogwatch_api::reboot_policy::crd()),
    },
    Generated {
        path: "deploy/crds/rebootschedules.yaml",
        place: Place::File,
        make: || manifest(&dogwatch_api::reboot_schedule::crd()),
    },
    Generated {
        path: "deploy/crds-hosts/baremetalhosts.yaml",
        place: Place::File,
        make: || manifest(&dogwatch_api::bare_metal_host::crd()),
    },
];

/// An object as it stands in `deploy/`.
fn manifest(object: &serde_json::Value) -> Result<String> {
    let yaml = serde_saphyr::to_string(object)?;
    Ok(format!("# Made from code: cargo xtask generate\n{yaml}"))
}

#[derive(clap::Args)]
pub struct Arguments {
    /// Writes nothing; fails where something is stale
    #[arg(long)]
    check: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.check {
        return check();
    }
    for (path, content) in stale()? {
        let file = tree::root().join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("failed to make the folder of {path}"))?;
        }
        fs::write(file, content).with_context(|| format!("failed to write {path}"))?;
        println!("wrote {path}");
    }
    Ok(())
}

/// Fails where a file is not what `generate` would write.
pub fn check() -> Result<()> {
    let stale: Vec<&str> = stale()?.into_iter().map(|(path, _)| path).collect();
    ensure!(
        stale.is_empty(),
        "stale: {} (cargo xtask generate writes them)",
        stale.join(", ")
    );
    Ok(())
}

/// The files that are not what they should be, with what they should be.
fn stale() -> Result<Vec<(&'static str, String)>> {
    let mut stale: Vec<(&'static str, String)> = Vec::new();
    for generated in GENERATED {
        let path = generated.path;
        // Two blocks of one file: the second goes into what the first made of it.
        let earlier = stale
            .iter()
            .position(|(other, _)| *other == path)
            .map(|at| stale.remove(at).1);
        let is_changed = earlier.is_some();
        let now = earlier.map_or_else(|| read(path), Ok)?;
        let made = (generated.make)().with_context(|| format!("failed to make {path}"))?;
        let wanted = match generated.place {
            Place::File => made,
            Place::Block(name) => replace_block(&now, name, &made)
                .with_context(|| format!("failed to find the block in {path}"))?,
        };
        if is_changed || wanted != now {
            stale.push((path, wanted));
        }
    }
    Ok(stale)
}

/// A file that is not there yet is empty.
fn read(path: &str) -> Result<String> {
    match fs::read_to_string(tree::root().join(path)) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("failed to read {path}")),
    }
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
