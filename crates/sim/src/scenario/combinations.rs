//! `each NAME=VALUES…`: one script, run for every combination of values.

use std::collections::BTreeMap;

use super::line_words::split_words;
use super::script_parser::{ScriptError, command_lines, line_error};

/// A script without `each`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandedScript {
    /// `NAME=VALUE` of each value; empty if the script has no `each`.
    pub values: String,
    pub text: String,
}

/// The scripts that this one stands for: one for each combination of the values of its `each`.
pub fn expand_script(text: &str) -> Result<Vec<ExpandedScript>, ScriptError> {
    let first = command_lines(text).next();
    let Some((number, line)) = first.filter(|(_, line)| line.starts_with("each ")) else {
        let (values, text) = (String::new(), text.to_owned());
        return Ok(vec![ExpandedScript { values, text }]);
    };
    let combinations = value_combinations(line).map_err(|what| line_error(number, line, what))?;
    let expand = |values: BTreeMap<String, String>| {
        // Only the line's text is removed, so that line numbers in errors stay correct.
        let text = values
            .iter()
            .fold(text.replacen(line, "", 1), |text, (name, value)| {
                text.replace(&format!("${name}"), value)
            });
        let values: Vec<String> = values
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let values = values.join(" ");
        ExpandedScript { values, text }
    };
    Ok(combinations.into_iter().map(expand).collect())
}

/// Returns every combination of the values of `each a=1..3 b=x,y`.
fn value_combinations(line: &str) -> Result<Vec<BTreeMap<String, String>>, String> {
    let mut all = vec![BTreeMap::new()];
    for word in split_words(line)?.into_iter().skip(1) {
        let (name, values) = word
            .split_once('=')
            .ok_or_else(|| format!("{word:?} has no values"))?;
        let values = parse_values(values)?;
        let with = |known: &BTreeMap<String, String>| {
            let known = known.clone();
            values.clone().into_iter().map(move |value| {
                let mut known = known.clone();
                known.insert(name.to_owned(), value);
                known
            })
        };
        all = all.iter().flat_map(with).collect();
    }
    Ok(all)
}

fn parse_values(text: &str) -> Result<Vec<String>, String> {
    let Some((from, to)) = text.split_once("..") else {
        return Ok(text.split(',').map(str::to_owned).collect());
    };
    let number = |text: &str| {
        text.parse::<u32>()
            .map_err(|error| format!("{text:?}: {error}"))
    };
    Ok((number(from)?..=number(to)?)
        .map(|number| number.to_string())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_meets_every_other() {
        let all = value_combinations("each a=1..2 b=x,y").unwrap();
        let texts: Vec<String> = all
            .iter()
            .map(|values| format!("{}{}", values["a"], values["b"]))
            .collect();
        assert_eq!(texts, ["1x", "1y", "2x", "2y"]);
        assert!(value_combinations("each a").is_err());
        assert!(value_combinations("each a=1..x").is_err());
    }
}
