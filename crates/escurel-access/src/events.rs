//! Who sees an event: unreviewed text of third parties, which pages' rules do
//! not cover until it belongs to one.

use crate::Caller;

/// Whether the rule holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventAcl {
    /// Everybody sees every event.
    Off,
    /// The same, and what the rule would hide is logged.
    Log,
    #[default]
    Enforce,
}

/// What the decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct EventFacts<'a> {
    /// Absent: captured before that was noted.
    pub captured_by: Option<&'a str>,
    /// Whether the caller sees the page that the event names; absent: it names none.
    pub instance_visible: Option<bool>,
}

/// An event is as visible as the page that it names. As long as it names none,
/// it is its captor's; one without a captor is everybody's.
pub fn sees_event(caller: &Caller, event: &EventFacts<'_>) -> bool {
    caller.is_admin()
        || event.instance_visible.unwrap_or_else(|| {
            event
                .captured_by
                .is_none_or(|subject| subject == caller.subject)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_follows_its_page_and_before_that_its_captor() {
        let (ann, admin) = (Caller::agent("ann", []), Caller::local());
        for (captured_by, instance_visible, seen) in [
            (Some("ann"), None, true),
            (Some("bob"), None, false),
            (None, None, true),
            (Some("ann"), Some(false), false),
            (Some("bob"), Some(true), true),
            (None, Some(false), false),
        ] {
            let event = EventFacts {
                captured_by,
                instance_visible,
            };
            assert_eq!(sees_event(&ann, &event), seen, "{event:?}");
            assert!(sees_event(&admin, &event));
        }
    }
}
