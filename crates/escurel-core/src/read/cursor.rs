//! Where a listing goes on, as text that is opaque to callers.

use crate::{Code, Refusal, Result};

/// `place` and a seal over it and the listing.
pub(crate) fn close(listing: &str, place: &str) -> String {
    let plain = format!("{:016x}|{place}", seal(listing, place));
    plain.bytes().map(|b| format!("{b:02x}")).collect()
}

/// The place in a cursor that [`close`] made for the same listing.
///
/// # Errors
/// `cursor_invalid`.
pub(crate) fn open(listing: &str, text: &str) -> Result<String> {
    let place = read(listing, text);
    place.ok_or_else(bad)
}

pub(crate) fn bad() -> Refusal {
    let why = "The cursor is not one of this listing.";
    Refusal::new(Code::CursorInvalid, why).at("cursor")
}

fn read(listing: &str, text: &str) -> Option<String> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = text
        .len()
        .is_multiple_of(2)
        .then(|| text.as_bytes().chunks(2).map(byte).collect())
        .flatten();
    let plain = String::from_utf8(bytes?).ok()?;
    let (sealed, place) = plain.split_once('|')?;
    (sealed == format!("{:016x}", seal(listing, place))).then(|| place.to_owned())
}

/// Differs for every other listing and position, so that a cursor that was
/// altered or came from elsewhere is noticed. No secret: it guards against mistakes.
fn seal(listing: &str, place: &str) -> u64 {
    rapidhash::v3::rapidhash_v3(format!("{listing} {place}").as_bytes())
}
