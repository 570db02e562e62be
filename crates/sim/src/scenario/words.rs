//! The words of a line.

use std::time::Duration;

use dogwatch_core::duration;

/// Splits a line at spaces; what stands in quotes is one word: in single ones it may have double ones.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted: Option<char> = None;
    for letter in line.chars() {
        match (letter, quoted) {
            ('"' | '\'', None) => {
                quoted = Some(letter);
                word.get_or_insert_default();
            }
            (letter, Some(quote)) if letter == quote => quoted = None,
            (' ' | '\t', None) => words.extend(word.take()),
            (other, Some(_) | None) => word.get_or_insert_default().push(other),
        }
    }
    if quoted.is_some() {
        return Err("a quotation mark is missing".into());
    }
    words.extend(word);
    Ok(words)
}

/// The words of a command after its name, taken from the left; options are `name=value`.
pub struct Words {
    plain: std::collections::VecDeque<String>,
    options: Vec<(String, String)>,
}

impl Words {
    /// Sorts options from plain words. What has a slash or a space before its `=` is no option.
    pub fn new(words: Vec<String>) -> Self {
        let mut sorted = Self {
            plain: std::collections::VecDeque::new(),
            options: Vec::new(),
        };
        for word in words {
            match word.split_once('=') {
                Some((name, value)) if is_name(name) => {
                    sorted.options.push((name.to_owned(), value.to_owned()));
                }
                Some(_) | None => sorted.plain.push_back(word),
            }
        }
        sorted
    }

    /// The next plain word.
    pub fn next(&mut self, what: &str) -> Result<String, String> {
        self.plain
            .pop_front()
            .ok_or_else(|| format!("{what} is missing"))
    }

    /// The next plain word, if it is this one.
    pub fn is_next(&mut self, word: &str) -> bool {
        let there = self.plain.front().is_some_and(|next| next == word);
        if there {
            self.plain.pop_front();
        }
        there
    }

    /// The next plain word must be this one.
    pub fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.is_next(word) {
            Ok(())
        } else {
            Err(format!("{word:?} is missing"))
        }
    }

    /// Takes an option.
    pub fn option(&mut self, name: &str) -> Option<String> {
        let at = self.options.iter().position(|(other, _)| other == name)?;
        Some(self.options.remove(at).1)
    }

    /// Takes an option that is read by `read`.
    pub fn read<T, E: std::fmt::Display>(
        &mut self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, String> {
        self.option(name)
            .map(|text| read(&text).map_err(|error| format!("{name}: {error}")))
            .transpose()
    }

    /// Takes an option that is a duration.
    pub fn duration(&mut self, name: &str) -> Result<Option<Duration>, String> {
        self.read(name, duration::parse)
    }

    /// Takes an option that is a number.
    pub fn number(&mut self, name: &str) -> Result<Option<u32>, String> {
        self.read(name, str::parse::<u32>)
    }

    /// Takes a plain word that is a duration.
    pub fn next_duration(&mut self) -> Result<Duration, String> {
        let text = self.next("a duration, such as 30s,")?;
        duration::parse(&text).map_err(|error| error.to_string())
    }

    /// Everything that is left, plain words first.
    pub fn rest(&mut self) -> Vec<String> {
        let options = std::mem::take(&mut self.options);
        let options = options
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"));
        std::mem::take(&mut self.plain)
            .into_iter()
            .chain(options)
            .collect()
    }

    /// Nothing may be left.
    pub fn end(&mut self) -> Result<(), String> {
        let left = self.rest();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("cannot read {:?}", left.join(" ")))
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_quotes_is_one_word() {
        assert_eq!(
            split("touch n1  /run/x \"a b\"").unwrap(),
            ["touch", "n1", "/run/x", "a b"]
        );
        assert_eq!(
            split(r#"annotate n1 x '{"a": 1}'"#).unwrap(),
            ["annotate", "n1", "x", r#"{"a": 1}"#]
        );
        assert!(split("touch \"n1").is_err());
    }

    #[test]
    fn an_option_that_nobody_takes_is_an_error() {
        let mut words = Words::new(vec!["n1".into(), "colour=red".into()]);
        words.next("a node").unwrap();
        assert_eq!(words.end().unwrap_err(), "cannot read \"colour=red\"");
    }
}
