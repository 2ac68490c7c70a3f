//! Lines of bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

#[derive(Debug, PartialEq)]
pub enum Line {
    Message(Vec<u8>),
    /// Longer than the limit; it has been skipped.
    TooLong,
    End,
}

/// The next line that is not blank. A last line without its end counts.
pub async fn next(input: &mut (impl AsyncBufRead + Unpin), limit: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let available = input.fill_buf().await?;
        let end = available.iter().position(|b| *b == b'\n');
        let (taken, ended) = match end {
            Some(at) => (at + 1, true),
            None => (available.len(), available.is_empty()),
        };
        if line.len() + taken > limit.saturating_add(1) {
            too_long = true;
            line.clear();
        }
        if !too_long {
            line.extend_from_slice(&available[..taken]);
        }
        let at_end = taken == 0;
        input.consume(taken);
        if !ended {
            continue;
        }
        if too_long {
            return Ok(Line::TooLong);
        }
        if line.iter().any(|b| !b.is_ascii_whitespace()) {
            return Ok(Line::Message(line));
        }
        if at_end {
            return Ok(Line::End);
        }
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::BufReader;

    #[tokio::test]
    async fn blank_long_and_last_lines() {
        let mut input = BufReader::with_capacity(3, &b"\n  \r\nabc\r\n0123456789\n{}\nlast"[..]);
        let mut got = Vec::new();
        loop {
            match next(&mut input, 6).await.unwrap() {
                Line::End => break,
                line => got.push(line),
            }
        }
        let message = |text: &str| Line::Message(text.into());
        assert_eq!(
            got,
            [
                message("abc\r\n"),
                Line::TooLong,
                message("{}\n"),
                message("last")
            ]
        );
    }
}
