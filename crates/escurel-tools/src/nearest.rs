//! The names that were probably meant.

/// How many are named at most.
const MOST: usize = 3;

/// The candidate most like `given`, if one is like it at all.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    alike(given, candidates).into_iter().next()
}

/// The candidates that are like `given`, best first.
pub fn alike<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // Long input is no typing error, and the comparison is quadratic.
    if given.is_empty() || given.len() > 64 {
        return Vec::new();
    }
    let given = given.to_lowercase().replace('-', "_");
    let scored = candidates.into_iter().map(|c| (likeness(&given, c), c));
    let mut found: Vec<(f64, &str)> = scored.filter(|(score, _)| *score >= 0.5).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    // Next to a good fit a poor one is noise.
    let best = found.first().map_or(0.0, |f| f.0);
    found.retain(|(score, _)| *score >= best - 0.2);
    found.into_iter().take(MOST).map(|(_, c)| c).collect()
}

fn likeness(given: &str, candidate: &str) -> f64 {
    let edits = strsim::normalized_damerau_levenshtein(given, candidate);
    let start = strsim::jaro_winkler(given, candidate);
    // `page` for `page_id`, `id` for `skill_id`, `query` for `q`.
    let part = |s: &str, of: &str| of.starts_with(s) || (s.len() >= 2 && of.ends_with(s));
    let part = if part(given, candidate) || part(candidate, given) {
        0.75
    } else {
        0.0
    };
    let start = if start >= 0.84 { start - 0.1 } else { 0.0 };
    edits.max(part).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_meant() {
        let check = |given: &str, of: &[&str], expect: &[&str]| {
            assert_eq!(alike(given, of.iter().copied()), expect, "{given}");
        };
        check("qery", &["q", "queries", "k"], &["q"]);
        check("query", &["q", "queries", "k"], &["queries", "q"]);
        check("limt", &["limit", "link_skill"], &["limit"]);
        check("page", &["page_id", "page_type"], &["page_id", "page_type"]);
        check("filters", &["filter", "q", "page_id"], &["filter"]);
        check("list-skills", &["list_skills", "search"], &["list_skills"]);
        check("top_k", &["k", "q", "as_of"], &[]);
        check("zzz", &["limit", "q"], &[]);
        check(&"a".repeat(1 << 20), &["limit"], &[]);
    }
}
