//! Words that a question needs and a search does not. They are indexed, so that
//! quoted phrases work, and dropped from queries that say more.

/// English function and question words, as typed (before stemming).
const WORDS: &[&str] = &[
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being", "but", "by",
    "can", "could", "d", "did", "didn", "do", "does", "doesn", "don", "for", "from", "had", "has",
    "have", "he", "her", "him", "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its",
    "ll", "me", "my", "of", "on", "or", "our", "re", "s", "shall", "she", "should", "so", "t",
    "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "to", "us", "ve", "was", "wasn", "we", "were", "what", "when", "where", "which", "who", "whom",
    "whose", "why", "will", "with", "would", "you", "your",
];

/// Whether a word of a query, folded and not stemmed, may be left out.
pub(crate) fn is_stop_word(folded: &str) -> bool {
    WORDS.binary_search(&folded).is_ok()
}

#[cfg(test)]
#[test]
fn the_list_is_sorted() {
    assert!(WORDS.is_sorted());
}
