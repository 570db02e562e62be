//! Converts bytes from the host into text for conditions, Events and terminals.

use dogwatch_core::printable::printable_text;

/// How many bytes of a sentinel file, or of a command's output, are shown as the reason. Source:
/// specification §2.1.
pub(crate) const REASON_BYTES: usize = 1024;

/// The first [`REASON_BYTES`] as one trimmed line: invalid UTF-8 and control characters are
/// replaced, so that no file can move a terminal's cursor or break a log line.
pub(crate) fn one_line_reason(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(REASON_BYTES)];
    let text = printable_text(&String::from_utf8_lossy(cut));
    let mut end = text.len().min(REASON_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    // An incomplete character at the cut is our doing, not the file's.
    let text = if cut.len() < bytes.len() {
        text.trim_end_matches(char::REPLACEMENT_CHARACTER)
    } else {
        text
    };
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_are_replaced_and_the_ends_trimmed() {
        assert_eq!(
            one_line_reason(b"  kernel\n\x1b[2Jlibc\0 \n"),
            "kernel  [2Jlibc"
        );
        assert_eq!(one_line_reason("a\u{202e}b".as_bytes()), "a b");
        assert_eq!(one_line_reason(b""), "");
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(one_line_reason(b"a\xffb"), "a\u{fffd}b");
    }

    #[test]
    fn a_character_cut_in_half_leaves_no_trace() {
        let mut long = vec![b'x'; REASON_BYTES - 1];
        long.extend_from_slice("é and more".as_bytes());
        assert_eq!(one_line_reason(&long), "x".repeat(REASON_BYTES - 1));
        // The same if an earlier replacement has made room for a whole replacement character.
        let shrunk = format!("\u{202e}{}é and more", "x".repeat(REASON_BYTES - 4));
        assert_eq!(
            one_line_reason(shrunk.as_bytes()),
            "x".repeat(REASON_BYTES - 4)
        );
    }

    proptest! {
        #[test]
        fn it_is_one_line_of_at_most_a_kibibyte(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
            let text = one_line_reason(&bytes);
            prop_assert!(text.len() <= REASON_BYTES);
            prop_assert!(!text.chars().any(char::is_control));
        }
    }
}
