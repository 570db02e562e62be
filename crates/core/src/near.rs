//! Names that somebody may have meant.

/// How many are suggested.
const MOST: usize = 3;

/// The names nearest to one that does not exist, the nearest first; none where none is near.
pub fn near<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let most = (wrong.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = names
        .map(|name| (distance(wrong, name), name))
        .filter(|(distance, name)| *distance <= most || name.starts_with(wrong))
        .collect();
    near.sort_unstable();
    near.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// How many letters have to be put in, taken out or changed (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood_and_a_stranger_is_not() {
        let names = ["worker-1", "worker-12", "control-1"];
        for (wrong, meant) in [
            ("wroker-1", &["worker-1"][..]),
            ("worker1", &["worker-1", "worker-12"]),
            ("worker-2", &["worker-1", "worker-12"]),
            ("contr", &["control-1"]),
            ("database", &[]),
        ] {
            assert_eq!(near(wrong, names.into_iter()), meant, "{wrong}");
        }
    }
}
