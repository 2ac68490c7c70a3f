//! Editing live: sessions whose changes are CRDT operations.

pub mod apply_op;
pub mod close_session;
pub mod list_op_authors;
pub mod open_session;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use escurel_core::{Code, Refusal};

use crate::spec::Numbered;

const UNKNOWN: Numbered = Numbered {
    code: Code::UnknownSession,
    at: None,
    number: -32603,
};

/// Bytes that an argument gives in base64.
///
/// # Errors
/// `invalid_argument` names `argument`.
fn bytes(text: &str, argument: &'static str) -> Result<Vec<u8>, Refusal> {
    STANDARD.decode(text.trim()).map_err(|error| {
        let why = format!("{argument} is not base64: {error}.");
        Refusal::new(Code::InvalidArgument, why).at(argument)
    })
}

fn text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
