use super::*;

fn check(words: &[&str], expected: f32) {
    let words: Vec<Vec<&str>> = words.iter().map(|word| word.split('|').collect()).collect();
    assert_eq!(unknown_share(&words), expected, "{words:?}");
}

#[test]
fn latin_words_are_known_also_in_single_characters() {
    check(&["heart", "dis|eas"], 0.0);
    check(&["x|k|q|7"], 0.0);
    check(&["foo", "_", "bar"], 0.0);
    check(&["ſ|ø|ß"], 0.0);
}

#[test]
fn words_that_became_unk_are_unknown() {
    check(&["[UNK]"], 1.0);
    check(&["party", "[UNK]"], 0.5);
}

#[test]
fn words_of_other_scripts_are_unknown_when_they_fall_apart() {
    check(&["м|о|с|к|в|а"], 1.0);
    check(&["и|ста", "к|от"], 0.5);
    check(&["ω|ρ|ος", "heart"], 0.5);
}

#[test]
fn ideographs_and_kana_are_unknown_each() {
    check(&["東", "京"], 1.0);
    check(&["python", "東"], 0.5);
}

#[test]
fn a_lone_letter_of_another_script_is_known() {
    check(&["λ", "calculus"], 0.0);
}

#[test]
fn digits_and_punctuation_say_nothing() {
    check(&[], 0.0);
    check(&["2", ".", "4", ".", "11"], 0.0);
    check(&["[UNK]", "1", "!", "?"], 1.0);
}
