//! The name that was probably meant.

/// The candidate most like `given`, if one is like it at all.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Long input is no typing error, and the comparison is quadratic.
    if given.len() > 64 {
        return None;
    }
    let given = given.to_lowercase().replace('-', "_");
    let scored = candidates.into_iter().map(|c| (likeness(&given, c), c));
    scored.filter(|(s, _)| *s >= 0.6).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, c)| c)
}

fn likeness(given: &str, candidate: &str) -> f64 {
    let edits = strsim::normalized_damerau_levenshtein(given, candidate);
    // `query` for `queries`, `page` for `page_id`, `id` for `skill_id`.
    let part = |s: &str, of: &str| s.len() >= 2 && (of.starts_with(s) || of.ends_with(s));
    if part(given, candidate) || part(candidate, given) { edits.max(0.7) + 0.01 * edits } else { edits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_meant() {
        let check = |given: &str, of: &[&str], expect: Option<&str>| {
            assert_eq!(nearest(given, of.iter().copied()), expect, "{given}");
        };
        check("qery", &["q", "queries", "k"], Some("queries"));
        check("query", &["q", "queries", "k"], Some("queries"));
        check("limt", &["limit", "link_skill"], Some("limit"));
        check("page", &["page_id", "page_type"], Some("page_id"));
        check("list-skills", &["list_skills", "search"], Some("list_skills"));
        check("zzz", &["limit", "q"], None);
        check(&"a".repeat(1 << 20), &["limit"], None);
    }
}
