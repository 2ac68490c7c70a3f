//! Skill pages that every folder has: compiled in, shadowed by a page of the
//! same id. They are in no journal and on no disk.

use std::sync::Arc;

use escurel_index::{Entry, EntryDraft, Resolution, Scope};
use escurel_md::{Layout, LinkKind, PageType, Wikilink};
use escurel_search::Doc;
use escurel_store::{ObjectId, Uid};

use crate::facts::Parsed;
use crate::lane::LaneState;

/// Where their paths begin; a colon right there cannot be in a page's path.
const PREFIX: &str = "builtin:";
/// Versions of built-in pages belong to no journal record.
const SEQ: u64 = 0;

const PAGES: &[(&str, &str)] = &[
    (
        "builtin:skills/escurel.md",
        include_str!("../../../markdown/skills/escurel.md"),
    ),
    (
        "builtin:skills/note.md",
        include_str!("../../../markdown/skills/note.md"),
    ),
];

pub(crate) fn is_builtin(path: &str) -> bool {
    path.starts_with(PREFIX)
}

pub(crate) fn text(path: &str) -> Option<&'static str> {
    PAGES
        .iter()
        .find(|(p, _)| *p == path)
        .map(|(_, text)| *text)
}

/// Built-in pages that a page of the folder replaces are found no more; the
/// replacing page still tells what it shadows.
pub(crate) fn settle(state: &mut LaneState) {
    for (path, _) in PAGES {
        let Some(entry) = state.dir.by_path(path).cloned() else {
            continue;
        };
        let own = |e: &Entry| {
            e.facts.page_type == PageType::Skill
                && !is_builtin(&e.path)
                && e.facts.scenario.is_none()
        };
        let link = Wikilink {
            id: Some(entry.facts.id.to_string()),
            ..Wikilink::default()
        };
        let scope = Scope {
            scenario: None,
            visible: &own,
        };
        let shadowed = !matches!(
            state.dir.resolve(&link, LinkKind::Wikilink, None, &scope),
            Resolution::Missing
        );
        if shadowed {
            state.live.clear(entry.no)
        } else {
            state.live.set(entry.no, SEQ)
        }
    }
}

/// Adds the built-in pages, below everything else, and returns the text index
/// entries of those that were not there as they are now; with `anew`, of all.
pub(crate) fn install(state: &mut LaneState, anew: bool) -> Vec<Doc> {
    let pages = PAGES.iter().enumerate();
    pages
        .filter_map(|(n, (path, text))| install_one(state, n as u128, path, text, anew))
        .collect()
}

fn install_one(state: &mut LaneState, n: u128, path: &str, text: &str, anew: bool) -> Option<Doc> {
    let mut parsed = Parsed::of(path, text.as_bytes(), Layout::Tenant);
    parsed.page.layer = Some(format!("base@builtin@v{}", env!("CARGO_PKG_VERSION")));
    parsed.facts = Arc::new(escurel_index::Facts::of(&parsed.page));
    let known = state.dir.by_uid(Uid(n));
    let known = known.filter(|e| e.facts == parsed.facts && e.digest == parsed.digest);
    if let Some(entry) = known {
        return anew.then(|| parsed.doc(entry.no.0, SEQ, 0));
    }
    let draft = EntryDraft {
        uid: Uid(n),
        path: (*path).into(),
        version: 1,
        seq: SEQ,
        from: 0,
        written_at: 0,
        author: "escurel".into(),
        stat: None,
        object: ObjectId([0; 32]),
        digest: parsed.digest,
        bytes: parsed.bytes,
        missing: false,
        facts: parsed.facts.clone(),
    };
    let no = state.upsert(draft).no;
    Some(parsed.doc(no.0, SEQ, 0))
}
