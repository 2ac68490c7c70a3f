//! What a person might type, by chance: the kinds of `rounds.mjs`, with places counted in bytes,
//! UTF-16 units and characters.

use anyhow::Result;
use loro::LoroText;

const PIECES: &[&str] = &[
    "plum ",
    "\n",
    "\n\n## Heading\n\n",
    "- item\n",
    "`code` ",
    "\t",
    "🛶",
    "👨‍👩‍👧‍👦",
    "🇩🇪🇯🇵",
    "👍🏽",
    "e\u{301}",
    "n\u{303}o\u{308}\u{332}",
    "漢字",
    "かな交じり",
    "한국어",
    "שלום",
    "नमस्ते",
    "𝔘𝔫𝔦",
    "\u{200d}",
    "\u{fe0f}",
];
const KEYS: &[&str] = &["status", "owner", "rusts"];
const VALUES: &[&str] = &["open", "closed", "wartend", "待機", "🛶"];
/// Above this the text shrinks, so that long runs stay quick. Characters.
const LONG: usize = 5000;

/// Chance that can be repeated: the splitmix64 generator.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `end`; 0 when there is none.
    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// One change of the text, or of a key in the header.
///
/// # Errors
/// What Loro refuses; it must not refuse any of these.
pub fn make(body: &LoroText, dice: &mut Dice) -> Result<()> {
    let text = body.to_string();
    let start = after_header(&text);
    if start > 0 && dice.below(5) == 0 {
        return key(body, &text[..start], dice);
    }
    let first = text[..start].chars().count();
    let length = text.chars().count();
    let at = first + dice.below(length - first + 1);
    let (deletes, most) = if length > LONG { (8, 200) } else { (3, 8) };
    if dice.below(10) < deletes {
        let count = (1 + dice.below(most)).min(length - at);
        return Ok(body.delete(at, count)?);
    }
    insert(body, &text, at, dice)
}

/// The same place, counted in one of three ways.
fn insert(body: &LoroText, text: &str, at: usize, dice: &mut Dice) -> Result<()> {
    let piece = dice.of(PIECES);
    let before = text.chars().take(at);
    match dice.below(3) {
        0 => body.insert(at, piece)?,
        1 => body.insert_utf8(before.map(char::len_utf8).sum(), piece)?,
        _ => body.insert_utf16(before.map(char::len_utf16).sum(), piece)?,
    }
    Ok(())
}

/// Gives a key another value, or adds it.
fn key(body: &LoroText, header: &str, dice: &mut Dice) -> Result<()> {
    let (key, value) = (dice.of(KEYS), dice.of(VALUES));
    let line = format!("\n{key}: ");
    let Some(found) = header.find(&line) else {
        let end = header.len() - "---\n".len();
        return Ok(body.insert_utf8(end, &format!("{key}: {value}\n"))?);
    };
    let from = found + line.len();
    let length = header[from..].find('\n').unwrap_or(0);
    body.delete_utf8(from, length)?;
    Ok(body.insert_utf8(from, value)?)
}

/// Where the text after the header begins, in bytes; 0 without a header.
fn after_header(text: &str) -> usize {
    let closing = "\n---\n";
    match text.strip_prefix("---").and_then(|rest| rest.find(closing)) {
        Some(at) => "---".len() + at + closing.len(),
        None => 0,
    }
}
