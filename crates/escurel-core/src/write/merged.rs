//! When a union of two texts still is the page that both meant.

use std::collections::BTreeSet;

use escurel_md::{Layout, Page};

/// Both changes to `base`, or nothing when they cannot stand together: a text is no text, the
/// union's header cannot be read, or both gave the same words or the same key different values.
pub(super) fn merge_pages(
    path: &str,
    layout: Layout,
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
) -> Option<Vec<u8>> {
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let both = escurel_live::merge(text(base)?, text(ours)?, text(theirs)?)?.into_bytes();
    let [base, ours, theirs, union] =
        [base, ours, theirs, &both].map(|bytes| escurel_md::parse(path, bytes, layout));
    (is_readable(&union) && has_both_headers(&base, &ours, &theirs, &union)).then_some(both)
}

fn is_readable(page: &Page) -> bool {
    let unreadable = [
        "frontmatter_unparsable",
        "frontmatter_unclosed",
        "identity_unclear",
    ];
    let mut codes = page.issues.iter().map(|issue| issue.code);
    !codes.any(|code| unreadable.contains(&code))
}

/// Each key has the value of the side that changed it.
fn has_both_headers(base: &Page, ours: &Page, theirs: &Page, union: &Page) -> bool {
    let pages = [base, ours, theirs, union];
    let keys: BTreeSet<&String> = pages
        .iter()
        .flat_map(|page| page.frontmatter.keys())
        .collect();
    keys.into_iter().all(|key| {
        let [base, ours, theirs, union] = pages.map(|page| page.frontmatter.get(key));
        let meant = if ours == base { theirs } else { ours };
        (ours == base || theirs == base || ours == theirs) && union == meant
    })
}

/// As [`merge_pages`] for a file that somebody saved while we wrote it. Nobody reads that union
/// before it stands, so lines that both changed are not joined.
pub(super) fn merge_saves(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let text = |bytes| std::str::from_utf8(bytes).ok();
    escurel_live::merge_lines(text(base)?, text(ours)?, text(theirs)?).map(String::into_bytes)
}
