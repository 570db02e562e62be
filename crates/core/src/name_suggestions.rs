//! Suggests existing names for a mistyped one.

const MAX_SUGGESTIONS: usize = 3;

/// The existing names nearest to `wrong`, nearest first. Empty if none is near.
pub fn suggest_names<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let most = (wrong.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = names
        .map(|name| (edit_distance(wrong, name), name))
        .filter(|(distance, name)| *distance <= most || name.starts_with(wrong))
        .collect();
    near.sort_unstable();
    near.into_iter()
        .take(MAX_SUGGESTIONS)
        .map(|(_, name)| name)
        .collect()
}

/// The Levenshtein distance: how many letters must be inserted, removed or changed.
fn edit_distance(a: &str, b: &str) -> usize {
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
            assert_eq!(suggest_names(wrong, names.into_iter()), meant, "{wrong}");
        }
    }
}
