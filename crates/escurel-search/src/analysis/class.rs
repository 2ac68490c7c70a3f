//! What a character does to the words around it.

use unicode_normalization::char::is_combining_mark;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Letters and digits of scripts that separate words.
    Word,
    /// Characters of scripts written without spaces: taken in pairs.
    Gram,
    /// Belongs to the character before it.
    Mark,
    /// Invisible; neither separates words nor belongs to one.
    Join,
    Emoji,
    Separator,
}

pub(super) fn class(c: char) -> Class {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() {
            Class::Word
        } else {
            Class::Separator
        };
    }
    if is_join(c) {
        Class::Join
    } else if is_trailing_part(c) || is_combining_mark(c) {
        Class::Mark
    } else if is_gram(c) {
        Class::Gram
    } else if c.is_alphanumeric() {
        Class::Word
    } else if is_emoji(c) {
        Class::Emoji
    } else {
        Class::Separator
    }
}

/// Joiners, soft hyphen, tatweel, direction marks, variation selectors.
pub(super) fn is_join(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{0640}' | '\u{200C}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{2069}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}')
}

/// Vowel and final jamo, half-width voicing marks: letters by category that
/// cannot stand alone.
fn is_trailing_part(c: char) -> bool {
    matches!(c, '\u{1160}'..='\u{11FF}' | '\u{D7B0}'..='\u{D7FF}' | '\u{FF9E}' | '\u{FF9F}')
}

/// Han, kana, Hangul, Bopomofo, Yi, Thai, Lao, Khmer, Myanmar.
fn is_gram(c: char) -> bool {
    let in_script = matches!(c as u32,
        0x0E01..=0x0E4F | 0x0E80..=0x0ECF | 0x0EDC..=0x0EDF | 0x1000..=0x103F | 0x1050..=0x108F
        | 0x1100..=0x115F | 0x1780..=0x17D3 | 0x17D7 | 0x17DC
        | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3031..=0x3035 | 0x303B | 0x303C
        | 0x3041..=0x3096 | 0x309D..=0x309F | 0x30A1..=0x30FA | 0x30FC..=0x30FF
        | 0x3105..=0x312F | 0x3131..=0x318E | 0x31A0..=0x31BF | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xA000..=0xA48C | 0xA960..=0xA97F
        | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFF66..=0xFF9D
        | 0x1B000..=0x1B16F | 0x20000..=0x323AF);
    in_script && (c.is_alphanumeric() || matches!(c as u32, 0x2E80..=0x2FDF))
}

fn is_emoji(c: char) -> bool {
    matches!(c as u32,
        0x1F000..=0x1FAFF | 0x2600..=0x27BF | 0x2B05..=0x2B07 | 0x2B1B..=0x2B1C | 0x2B50
        | 0x2B55 | 0x231A..=0x231B | 0x23E9..=0x23F3 | 0x23F8..=0x23FA | 0x2934..=0x2935)
}
