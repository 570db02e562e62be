use dogwatch_core::name::NodeName;
use dogwatch_core::remedy::Beat;

use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_look_is_answered_by_what_was_asked_later_only() {
    let mut note = Note::default();
    let look = |second| Look::Beat {
        node: NodeName::new("n1").unwrap(),
        newer_than: seconds(second),
    };
    assert!(!note.has(&look(0)));
    let beat = Beat {
        node_uid: None,
        renewed: None,
        posted: None,
        lease_lasts: None,
    };
    note.found(Found::Beat(seconds(3), beat), seconds(4));
    assert!(note.has(&look(2)) && !note.has(&look(3)));
}

#[test]
fn after_a_change_it_is_soon_decided_again_and_after_trouble_within_half_a_minute() {
    let (mut note, now) = (Note::default(), seconds(100));
    note.trouble(&Trouble::Changed("it".into()), now);
    let pause = |note: &Note| note.paused(now).unwrap().saturating_sub(now);
    assert_eq!(pause(&note), Duration::from_millis(20));
    note.trouble(&Trouble::Refused("no right".into()), now);
    assert_eq!(pause(&note), seconds(1));
    for _ in 0..9 {
        note.trouble(&Trouble::Failed("no answer".into()), now);
    }
    assert_eq!(pause(&note), seconds(30));
    assert_eq!(note.refused.as_deref(), Some("no right"));
    note.well();
    assert_eq!((note.paused(now), &note.refused), (None, &None));
}
