//! Numbers that spread what would otherwise happen at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A sequence of numbers that differs between processes, for nothing that must be secret or fair.
/// Clones draw from the same sequence.
#[derive(Debug, Clone)]
pub struct JitterSource {
    seed: u64,
    draws: Arc<AtomicU64>,
}

impl JitterSource {
    /// `process` is the random identity of the process.
    pub fn of_process(process: &str) -> Self {
        Self {
            seed: seed_of(process),
            draws: Arc::default(),
        }
    }

    /// In 0..1.
    pub fn next_fraction(&self) -> f64 {
        let draw = self.draws.fetch_add(1, Ordering::Relaxed);
        nth_fraction(self.seed, draw)
    }
}

/// A number that differs between texts (the random ids of processes, of runs): their FNV-1a.
pub fn seed_of(text: &str) -> u64 {
    hash_fnv1a(0xcbf2_9ce4_8422_2325, text.bytes())
}

/// The number `draw` of this seed's sequence, in 0..1.
pub fn nth_fraction(seed: u64, draw: u64) -> f64 {
    fraction_of_bits(hash_fnv1a(seed, draw.to_le_bytes().into_iter()))
}

/// The upper half of the bits as a number in 0..1.
pub fn fraction_of_bits(bits: u64) -> f64 {
    f64::from(u32::try_from(bits >> 32).expect("32 bits are left")) / f64::from(u32::MAX)
}

fn hash_fnv1a(start: u64, bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_within_bounds_and_differ() {
        let jitter = JitterSource::of_process("a");
        let draws: Vec<f64> = (0..1000).map(|_| jitter.next_fraction()).collect();
        assert!(draws.iter().all(|draw| (0.0..=1.0).contains(draw)));
        let low = draws.iter().filter(|draw| **draw < 0.5).count();
        assert!((300..700).contains(&low), "{low} of 1000 below a half");
        assert_ne!(
            JitterSource::of_process("b").next_fraction().to_bits(),
            draws[0].to_bits()
        );
    }
}
