//! Splits a script's line into words and options.

use std::time::Duration;

use dogwatch_core::duration;

/// Splits a line at spaces. Quoted text is one word; single quotes may contain double quotes.
pub fn split_words(line: &str) -> Result<Vec<String>, String> {
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
pub struct LineWords {
    plain: std::collections::VecDeque<String>,
    options: Vec<(String, String)>,
}

impl LineWords {
    /// Separates options from plain words. A word with a slash or a space before its `=` is not an
    /// option.
    pub fn new(words: Vec<String>) -> Self {
        let mut sorted = Self {
            plain: std::collections::VecDeque::new(),
            options: Vec::new(),
        };
        for word in words {
            match word.split_once('=') {
                Some((name, value)) if is_option_name(name) => {
                    sorted.options.push((name.to_owned(), value.to_owned()));
                }
                Some(_) | None => sorted.plain.push_back(word),
            }
        }
        sorted
    }

    pub fn next_word(&mut self, what: &str) -> Result<String, String> {
        self.plain
            .pop_front()
            .ok_or_else(|| format!("{what} is missing"))
    }

    /// Takes the next plain word if it is this one.
    pub fn take_if_next(&mut self, word: &str) -> bool {
        let there = self.plain.front().is_some_and(|next| next == word);
        if there {
            self.plain.pop_front();
        }
        there
    }

    /// Takes the next plain word, which must be this one.
    pub fn expect_word(&mut self, word: &str) -> Result<(), String> {
        if self.take_if_next(word) {
            Ok(())
        } else {
            Err(format!("{word:?} is missing"))
        }
    }

    pub fn take_option(&mut self, name: &str) -> Option<String> {
        let at = self.options.iter().position(|(other, _)| other == name)?;
        Some(self.options.remove(at).1)
    }

    /// Takes an option and parses it with `read`.
    pub fn read_option<T, E: std::fmt::Display>(
        &mut self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, String> {
        self.take_option(name)
            .map(|text| read(&text).map_err(|error| format!("{name}: {error}")))
            .transpose()
    }

    pub fn duration_option(&mut self, name: &str) -> Result<Option<Duration>, String> {
        self.read_option(name, duration::parse_duration)
    }

    pub fn number_option(&mut self, name: &str) -> Result<Option<u32>, String> {
        self.read_option(name, str::parse::<u32>)
    }

    pub fn next_duration(&mut self) -> Result<Duration, String> {
        let text = self.next_word("a duration, such as 30s,")?;
        duration::parse_duration(&text).map_err(|error| error.to_string())
    }

    /// Takes everything that is left, plain words first.
    pub fn take_rest(&mut self) -> Vec<String> {
        let options = std::mem::take(&mut self.options);
        let options = options
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"));
        std::mem::take(&mut self.plain)
            .into_iter()
            .chain(options)
            .collect()
    }

    /// Returns an error if any word is left.
    pub fn expect_end(&mut self) -> Result<(), String> {
        let left = self.take_rest();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("cannot read {:?}", left.join(" ")))
        }
    }
}

fn is_option_name(name: &str) -> bool {
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
            split_words("touch n1  /run/x \"a b\"").unwrap(),
            ["touch", "n1", "/run/x", "a b"]
        );
        assert_eq!(
            split_words(r#"annotate n1 x '{"a": 1}'"#).unwrap(),
            ["annotate", "n1", "x", r#"{"a": 1}"#]
        );
        assert!(split_words("touch \"n1").is_err());
    }

    #[test]
    fn an_option_that_nobody_takes_is_an_error() {
        let mut words = LineWords::new(vec!["n1".into(), "colour=red".into()]);
        words.next_word("a node").unwrap();
        assert_eq!(
            words.expect_end().unwrap_err(),
            "cannot read \"colour=red\""
        );
    }
}
