//! Who may do what: callers, verbs and the policy that decides.
//!
//! Owns the decision and nothing else. Pure: no IO, no clock, no lookups; the
//! facts a decision needs are handed in. Invariant: every read and write of the
//! core asks a [`Policy`]; there is no caller for whom it is not asked.

use std::collections::BTreeSet;

use escurel_md::PageType;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a caller is trusted to administer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads and writes what the policy grants.
    Agent,
    /// Administers its own tenant.
    Admin,
    /// Administers every tenant of the process.
    Operator,
}

/// Somebody who calls, as verified at the rim. Never built from call arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Caller {
    pub subject: String,
    pub role: Role,
    pub groups: BTreeSet<String>,
}

impl Caller {
    /// The person at this machine, when no verifier is configured.
    pub fn local() -> Caller {
        Caller {
            subject: "local".into(),
            role: Role::Admin,
            groups: BTreeSet::new(),
        }
    }

    /// An ordinary caller in the given groups.
    pub fn agent(subject: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Caller {
        Caller {
            subject: subject.into(),
            role: Role::Agent,
            groups: groups.into_iter().collect(),
        }
    }

    pub fn is_admin(&self) -> bool {
        self.role >= Role::Admin
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Read,
    Create,
    Update,
    Delete,
}

/// What a decision may depend on of one page.
pub struct PageFacts<'a> {
    pub path: &'a str,
    pub page_type: PageType,
    pub skill: &'a str,
    pub id: &'a str,
    /// Parsed on demand: most decisions need only the skill.
    pub frontmatter: &'a dyn Fn() -> Map<String, Value>,
}

/// Decides. Implementations are pure functions of their configuration and arguments.
pub trait Policy: Send + Sync {
    /// True when this caller may read every page, so that no page needs to be asked about.
    fn reads_everything(&self, caller: &Caller) -> bool;

    /// May `caller` do `verb` to this page?
    fn may(&self, caller: &Caller, verb: Verb, page: &PageFacts<'_>) -> bool;

    /// Changes whenever an earlier decision may come out differently.
    fn revision(&self) -> u64 {
        0
    }
}

/// Everybody may do everything: the policy of a folder without access rules.
pub struct OpenPolicy;

impl Policy for OpenPolicy {
    fn reads_everything(&self, _: &Caller) -> bool {
        true
    }

    fn may(&self, _: &Caller, _: Verb, _: &PageFacts<'_>) -> bool {
        true
    }
}

mod events;

pub use events::{EventAcl, EventFacts, sees_event};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_ordered_by_power() {
        assert!(Caller::local().is_admin());
        assert!(!Caller::agent("a", []).is_admin());
        assert!(Role::Operator > Role::Admin);
    }
}
