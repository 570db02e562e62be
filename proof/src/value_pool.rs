//! Gives each distinct production value a small number, so that a state of the search is a few
//! numbers: cheap to copy, to compare and to keep by the million.

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, RwLock};

/// The number of a value in its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolKey(u32);

/// All values of one type that the search has met. Two values are the same if their `Debug` texts
/// are: production types derive it, so it shows every field.
#[derive(Debug)]
pub struct ValuePool<T> {
    inner: RwLock<PoolInner<T>>,
}

#[derive(Debug)]
struct PoolInner<T> {
    keys: HashMap<[u64; 2], PoolKey>,
    values: Vec<Arc<T>>,
}

impl<T> Default for ValuePool<T> {
    fn default() -> Self {
        let (keys, values) = (HashMap::new(), Vec::new());
        Self {
            inner: RwLock::new(PoolInner { keys, values }),
        }
    }
}

impl<T: Debug> ValuePool<T> {
    pub fn intern_value(&self, value: Arc<T>) -> PoolKey {
        let digest = digest_debug_text(&value);
        let known = self
            .inner
            .read()
            .expect("no holder panics")
            .keys
            .get(&digest)
            .copied();
        if let Some(key) = known {
            return key;
        }
        let mut inner = self.inner.write().expect("no holder panics");
        let next = PoolKey(u32::try_from(inner.values.len()).expect("fewer values than 2^32"));
        let key = *inner.keys.entry(digest).or_insert(next);
        if key == next {
            inner.values.push(value);
        }
        key
    }

    pub fn find_value(&self, key: PoolKey) -> Arc<T> {
        let inner = self.inner.read().expect("no holder panics");
        let place = usize::try_from(key.0).expect("a number of 32 bits");
        inner.values[place].clone()
    }
}

struct DigestWriter([DefaultHasher; 2]);

impl Write for DigestWriter {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for hasher in &mut self.0 {
            hasher.write(text.as_bytes());
        }
        Ok(())
    }
}

/// 128 bits of the value's `Debug` text.
fn digest_debug_text(value: &impl Debug) -> [u64; 2] {
    let mut writer = DigestWriter([DefaultHasher::new(), DefaultHasher::new()]);
    writer.0[1].write_u8(1);
    write!(writer, "{value:?}").expect("a hasher takes everything");
    writer.0.map(|hasher| hasher.finish())
}
