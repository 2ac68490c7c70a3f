//! The chain as text for outside verifiers.

use std::io::{self, Write};

use crate::record::encode;
use crate::{Store, StoreError};

/// Writes the whole chain, one record a line, oldest first; answers how many.
/// `korg-verify` accepts the output as it is.
pub fn export(store: &dyn Store, mut out: impl Write) -> Result<u64, StoreError> {
    let mut count = 0;
    let mut line = Vec::new();
    for record in store.records(0) {
        line.clear();
        encode(&mut record?, &mut line)?;
        out.write_all(&line).map_err(output_error)?;
        count += 1;
    }
    out.flush().map_err(output_error)?;
    Ok(count)
}

fn output_error(error: io::Error) -> StoreError {
    StoreError::from_io(std::path::Path::new("the export"), error)
}
