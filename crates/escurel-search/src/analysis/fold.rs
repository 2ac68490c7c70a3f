//! Folding for search: case, accents, width and spelling variants that readers
//! take for the same word.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

use super::class::is_join;

/// Appends the folded form of `text` to `out`.
pub(crate) fn fold(text: &str, out: &mut String) {
    if text.is_ascii() {
        let from = out.len();
        out.push_str(text);
        out[from..].make_ascii_lowercase();
        return;
    }
    let plain = text.nfkd().filter(|c| !is_join(*c) && !is_accent(*c));
    for c in plain.nfc() {
        fold_char(c, out);
    }
}

/// Accents of Latin, Greek and Cyrillic, Hebrew points, Arabic and Syriac
/// vowels. Marks that are letters in their script (Indic vowels, Thai tones,
/// kana voicing) stay.
fn is_accent(c: char) -> bool {
    matches!(canonical_combining_class(c), 10..=36 | 200..=240)
        || matches!(c, '\u{20D0}'..='\u{20FF}')
}

fn fold_char(c: char, out: &mut String) {
    for lower in c.to_lowercase() {
        match spelled_out(lower) {
            Some(letters) => out.push_str(letters),
            None => out.push(digit(lower).unwrap_or(lower)),
        }
    }
}

/// Letters that have no decomposition but a usual plain spelling.
fn spelled_out(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ħ' => "h",
        'ı' => "i",
        'ł' => "l",
        'þ' => "th",
        'ŧ' => "t",
        'ς' => "σ",
        'ٱ' => "ا",
        'ى' | 'ی' => "ي",
        'ک' => "ك",
        'ة' => "ه",
        // What lower-casing leaves of a dotted capital I.
        '\u{0307}' => "",
        _ => return None,
    })
}

/// Decimal digits of other scripts read as ASCII ones.
fn digit(c: char) -> Option<char> {
    const ZEROS: [u32; 12] = [
        0x0660, 0x06F0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66,
        0x0E50,
    ];
    let code = c as u32;
    ZEROS
        .iter()
        .find(|zero| (**zero..**zero + 10).contains(&code))
        .and_then(|zero| char::from_digit(code - zero, 10))
}
