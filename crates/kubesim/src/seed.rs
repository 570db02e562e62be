//! One seed for everything random in a simulated cluster.
//!
//! Every actor draws from its own stream, named after it. So one more node or pod changes nothing
//! for the others, and a failure found with a seed can be reproduced.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// The seed of a whole simulated cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulationSeed(pub u64);

impl SimulationSeed {
    /// The random stream of this actor: fixed by seed and name, independent of all other streams.
    pub fn stream_for_actor(self, actor: &str) -> RandomStream {
        RandomStream(ChaCha8Rng::seed_from_u64(
            self.0 ^ hash_fnv1a(actor.as_bytes()).rotate_left(32),
        ))
    }
}

/// One actor's source of randomness.
#[derive(Debug, Clone)]
pub struct RandomStream(ChaCha8Rng);

impl RandomStream {
    /// A number below `bound`; 0 if `bound` is 0.
    pub fn next_below(&mut self, bound: u64) -> u64 {
        // The bias of the remainder is far below what any simulation here could show.
        self.0.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// A number from 0 up to, but not including, 1.
    pub fn next_fraction(&mut self) -> f64 {
        let bits = u32::try_from(self.0.next_u64() >> 32).expect("32 bits are left");
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }

    /// Text in the form of a random UUID.
    pub fn next_uuid(&mut self) -> String {
        let mut bytes = [0_u8; 16];
        self.0.fill_bytes(&mut bytes);
        // Version 4, variant 1 (RFC 9562 §5.4), as the kernel's boot ids and systemd's machine ids.
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = |range: std::ops::Range<usize>| {
            bytes[range].iter().fold(String::new(), |mut text, byte| {
                for digit in [byte >> 4, byte & 0x0f] {
                    text.push(char::from_digit(u32::from(digit), 16).expect("four bits"));
                }
                text
            })
        };
        [hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)].join("-")
    }

    /// A new boot id.
    pub fn next_boot_id(&mut self) -> String {
        self.next_uuid()
    }
}

/// FNV-1a, 64 bits: short, stable across versions and machines, and good enough to keep names
/// apart.
fn hash_fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A short name for some bytes, stable across runs and machines.
pub fn short_hash(bytes: &[u8]) -> String {
    format!("{:010x}", hash_fnv1a(bytes) & 0xff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actors_stream_depends_on_the_seed_and_its_name_only() {
        let draw =
            |seed: u64, actor: &str| SimulationSeed(seed).stream_for_actor(actor).next_uuid();
        assert_eq!(draw(7, "kubelet/n1"), draw(7, "kubelet/n1"));
        assert_ne!(draw(7, "kubelet/n1"), draw(7, "kubelet/n2"));
        assert_ne!(draw(7, "kubelet/n1"), draw(8, "kubelet/n1"));
    }

    #[test]
    fn a_boot_id_looks_like_the_kernels() {
        let id = SimulationSeed(1).stream_for_actor("host").next_boot_id();
        assert_eq!(id.len(), 36);
        assert_eq!(id.as_bytes()[14], b'4');
        assert_eq!(id.matches('-').count(), 4);
    }

    #[test]
    fn a_fraction_is_at_least_nothing_and_less_than_one() {
        let mut stream = SimulationSeed(3).stream_for_actor("jitter");
        for _ in 0..1000 {
            assert!((0.0..1.0).contains(&stream.next_fraction()));
        }
    }
}
