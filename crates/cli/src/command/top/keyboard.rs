//! Turns the bytes of a terminal into keys.

use dogwatch_top::TopKey;

/// Keeps the start of a sequence whose end has not come yet.
#[derive(Debug, Default)]
pub struct KeyParser {
    pending: Vec<u8>,
}

/// What the first bytes are.
enum ParsedInput {
    Key(TopKey, usize),
    /// A sequence that means nothing here.
    Skipped(usize),
    Incomplete,
}

impl KeyParser {
    /// The keys that are complete. An escape at the end is the key Escape.
    pub fn parse_bytes(&mut self, bytes: &[u8]) -> Vec<TopKey> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut at = 0;
        while at < self.pending.len() {
            match parse_input(&self.pending[at..]) {
                ParsedInput::Key(key, length) => {
                    keys.push(key);
                    at += length;
                }
                ParsedInput::Skipped(length) => at += length,
                ParsedInput::Incomplete => break,
            }
        }
        self.pending.drain(..at);
        keys
    }
}

fn parse_input(bytes: &[u8]) -> ParsedInput {
    match bytes {
        [0x1b, b'[', rest @ ..] => parse_control_sequence(rest),
        [0x1b, b'O', letter, ..] => letter_key(*letter, 3),
        [0x1b, b'O'] => ParsedInput::Incomplete,
        // Alt with a character: the character does not mean what it means alone.
        [0x1b, other, ..] if *other != 0x1b => ParsedInput::Skipped(2),
        [0x1b, ..] => ParsedInput::Key(TopKey::Escape, 1),
        [b'\r' | b'\n', ..] => ParsedInput::Key(TopKey::Enter, 1),
        [b'\t', ..] => ParsedInput::Key(TopKey::Tab, 1),
        [0x7f | 0x08, ..] => ParsedInput::Key(TopKey::Backspace, 1),
        [0x03, ..] => ParsedInput::Key(TopKey::Interrupt, 1),
        [control, ..] if *control < 0x20 => ParsedInput::Skipped(1),
        _ => parse_character(bytes),
    }
}

/// What follows `ESC [`: parameters, then a letter or `~`.
fn parse_control_sequence(rest: &[u8]) -> ParsedInput {
    let Some(end) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        // Longer than any key: noise, which must not hold back what follows it.
        return if rest.len() > 32 {
            ParsedInput::Skipped(rest.len() + 2)
        } else {
            ParsedInput::Incomplete
        };
    };
    let length = end + 3;
    let page = |key| ParsedInput::Key(key, length);
    match (&rest[..end], rest[end]) {
        (b"1" | b"7", b'~') => page(TopKey::Home),
        (b"4" | b"8", b'~') => page(TopKey::End),
        (b"5", b'~') => page(TopKey::PageUp),
        (b"6", b'~') => page(TopKey::PageDown),
        (b"", letter) => letter_key(letter, length),
        _ => ParsedInput::Skipped(length),
    }
}

fn letter_key(letter: u8, length: usize) -> ParsedInput {
    let key = match letter {
        b'A' => TopKey::Up,
        b'B' => TopKey::Down,
        b'C' => TopKey::Right,
        b'D' => TopKey::Left,
        b'H' => TopKey::Home,
        b'F' => TopKey::End,
        b'M' => TopKey::Enter,
        b'Z' => TopKey::BackTab,
        _ => return ParsedInput::Skipped(length),
    };
    ParsedInput::Key(key, length)
}

fn parse_character(bytes: &[u8]) -> ParsedInput {
    let most = bytes.len().min(4);
    for length in 1..=most {
        if let Ok(text) = std::str::from_utf8(&bytes[..length])
            && let Some(c) = text.chars().next()
        {
            return ParsedInput::Key(TopKey::Char(c), length);
        }
    }
    match std::str::from_utf8(&bytes[..most]) {
        Err(error) if error.error_len().is_none() => ParsedInput::Incomplete,
        Err(_) | Ok(_) => ParsedInput::Skipped(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<TopKey> {
        KeyParser::default().parse_bytes(bytes)
    }

    #[test]
    fn the_keys_of_the_help_are_understood_in_both_modes_of_a_terminal() {
        let cases: &[(&[u8], TopKey)] = &[
            (b"\x1b[A", TopKey::Up),
            (b"\x1bOA", TopKey::Up),
            (b"\x1b[B", TopKey::Down),
            (b"\x1b[C", TopKey::Right),
            (b"\x1bOD", TopKey::Left),
            (b"\x1b[H", TopKey::Home),
            (b"\x1b[1~", TopKey::Home),
            (b"\x1b[4~", TopKey::End),
            (b"\x1b[5~", TopKey::PageUp),
            (b"\x1b[6~", TopKey::PageDown),
            (b"\x1b[Z", TopKey::BackTab),
            (b"\t", TopKey::Tab),
            (b"\r", TopKey::Enter),
            (b"\x7f", TopKey::Backspace),
            (b"\x03", TopKey::Interrupt),
            (b"\x1b", TopKey::Escape),
            (b"q", TopKey::Char('q')),
            ("é".as_bytes(), TopKey::Char('é')),
        ];
        for (bytes, key) in cases {
            assert_eq!(keys(bytes), [*key], "{bytes:?}");
        }
    }

    #[test]
    fn a_sequence_in_pieces_is_one_key() {
        let mut parser = KeyParser::default();
        assert!(parser.parse_bytes(b"\x1b[").is_empty());
        assert_eq!(parser.parse_bytes(b"A"), [TopKey::Up]);
        assert!(parser.parse_bytes(&"é".as_bytes()[..1]).is_empty());
        let expected = [TopKey::Char('é'), TopKey::Char('x')];
        assert_eq!(parser.parse_bytes(&[0xa9, b'x']), expected);
    }

    #[test]
    fn what_means_nothing_is_skipped_and_holds_nothing_back() {
        assert_eq!(keys(b"\x1b[1;5A\x00\x0cq"), [TopKey::Char('q')]);
        assert!(keys(b"\x1by").is_empty(), "alt-y confirms nothing");
        assert_eq!(keys(&[0xff, 0xfe, b'q']), [TopKey::Char('q')]);
        let mut noise = b"\x1b[".to_vec();
        noise.extend([b'0'; 64]);
        let mut parser = KeyParser::default();
        assert!(parser.parse_bytes(&noise).is_empty());
        assert_eq!(parser.parse_bytes(b"q"), [TopKey::Char('q')]);
    }

    #[test]
    fn escape_twice_is_two_keys() {
        assert_eq!(keys(b"\x1b\x1b"), [TopKey::Escape, TopKey::Escape]);
        assert_eq!(keys(b"\x1b\x1b[A"), [TopKey::Escape, TopKey::Up]);
    }
}
