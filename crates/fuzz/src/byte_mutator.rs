//! Makes inputs from seeds.

/// The longest input, in bytes: the limit of the lock API's bodies.
const LONGEST_INPUT: usize = 64 << 10;
/// Most inputs are about this long.
const USUAL_LENGTH: usize = 4 << 10;

/// What parsers have been caught by: limits of integers, nesting, control characters, bad UTF-8,
/// quotes.
const WORDS: [&[u8]; 34] = [
    b"0",
    b"-1",
    b"255",
    b"65536",
    b"2147483648",
    b"18446744073709551616",
    b"1e999",
    b"-0.0",
    b"9223372036854775807",
    b"\x00",
    b"\r\n",
    b"\n",
    b"\x1b[31m",
    b"\x7f",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"%00",
    b"%0a",
    b"%",
    b"\"",
    b"'",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"{\"\":{\"\":{\"\":{\"\":{\"\":{\"\":{\"\":",
    b"null",
    b"true",
    b"..",
    b"/",
    b":",
    "\u{202e}\u{0130}ß".as_bytes(),
];

/// The next inputs of one target.
pub struct ByteMutator {
    random: u64,
    seeds: Vec<Vec<u8>>,
}

impl ByteMutator {
    /// `name` seeds the random numbers.
    pub fn new(name: &str, mut seeds: Vec<Vec<u8>>) -> Self {
        if seeds.is_empty() {
            seeds.push(Vec::new());
        }
        let random = hash_bytes(name.as_bytes());
        Self { random, seeds }
    }

    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.any_seed();
        let changes = 1 + self.next_below(6);
        for _ in 0..changes {
            self.change_input(&mut input);
        }
        let most = if self.next_below(200) == 0 {
            LONGEST_INPUT
        } else {
            USUAL_LENGTH
        };
        input.truncate(most);
        input
    }

    /// A number below `bound`, by splitmix64; 0 if `bound` is 0.
    pub fn next_below(&mut self, bound: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed >> 1)
            .unwrap_or_default()
            .checked_rem(bound)
            .unwrap_or_default()
    }

    fn any_seed(&mut self) -> Vec<u8> {
        let at = self.next_below(self.seeds.len());
        self.seeds[at].clone()
    }

    fn any_byte(&mut self) -> u8 {
        u8::try_from(self.next_below(256)).unwrap_or_default()
    }

    /// A place, and an end that is mostly near.
    fn any_range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.next_below(length + 1);
        let most = [1, 4, 32, length][self.next_below(4)];
        let to = from + self.next_below(most + 1);
        from..to.min(length)
    }

    fn change_input(&mut self, input: &mut Vec<u8>) {
        let range = self.any_range(input.len());
        match self.next_below(10) {
            0 => {
                if let Some(byte) = input.get_mut(range.start) {
                    *byte ^= 1 << self.next_below(8);
                }
            }
            1 => {
                let byte = self.any_byte();
                if let Some(place) = input.get_mut(range.start) {
                    *place = byte;
                }
            }
            2 => {
                let byte = self.any_byte();
                input.insert(range.start, byte);
            }
            3 => drop(input.drain(range)),
            4 => {
                let copy = input[range].to_vec();
                let at = self.next_below(input.len() + 1);
                insert_bytes(input, at, &copy);
            }
            5 => self.repeat_range(input, range),
            6 => {
                let word = WORDS[self.next_below(WORDS.len())];
                drop(input.splice(range, word.iter().copied()));
            }
            7 => {
                let word = WORDS[self.next_below(WORDS.len())];
                insert_bytes(input, range.start, word);
            }
            8 => {
                let other = self.any_seed();
                let of_other = self.any_range(other.len());
                drop(input.splice(range, other[of_other].iter().copied()));
            }
            _ => input.truncate(range.start),
        }
    }

    /// Nesting and length are found by repetition.
    fn repeat_range(&mut self, input: &mut Vec<u8>, range: std::ops::Range<usize>) {
        let times = [2, 10, 200][self.next_below(3)];
        let copy = input[range.clone()].repeat(times);
        insert_bytes(input, range.end, &copy[..copy.len().min(LONGEST_INPUT)]);
    }
}

fn insert_bytes(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    drop(input.splice(at..at, bytes.iter().copied()));
}

/// FNV-1a, 64 bits.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_gives_the_same_inputs() {
        let inputs = |name| {
            let mut mutator = ByteMutator::new(name, vec![b"hostname=n1&wait=true".to_vec()]);
            (0..500).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs("a"), inputs("a"));
        assert_ne!(inputs("a"), inputs("b"));
        assert!(inputs("a").iter().any(std::vec::Vec::is_empty));
        assert!(inputs("a").iter().any(|input| input.len() > 1000));
        assert!(inputs("a").iter().all(|input| input.len() <= LONGEST_INPUT));
    }
}
