//! Lines and columns of byte offsets.
//!
//! A line ends with `\n`, `\r\n` or `\r`. Invariant: asking for positions in
//! rising order costs no more than the text once.

use std::ops::Range;

use memchr::memchr2_iter;

pub(crate) struct Lines<'a> {
    text: &'a str,
    /// Offset at which each line starts; the first is 0.
    starts: Vec<usize>,
    /// Last answer: offset, line index, column.
    last: (usize, usize, u32),
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Lines<'a> {
        let b = text.as_bytes();
        let mut starts = Vec::with_capacity(16 + text.len() / 32);
        starts.push(0);
        for i in memchr2_iter(b'\n', b'\r', b) {
            if b.get(i) == Some(&b'\n') || b.get(i + 1) != Some(&b'\n') {
                starts.push(i + 1);
            }
        }
        Lines {
            text,
            starts,
            last: (0, 0, 1),
        }
    }

    /// 1-based line of an offset.
    pub(crate) fn line(&self, offset: usize) -> u32 {
        self.index(offset) as u32 + 1
    }

    fn index(&self, offset: usize) -> usize {
        self.starts
            .partition_point(|s| *s <= offset)
            .saturating_sub(1)
    }

    /// 1-based line and column, the column in characters.
    pub(crate) fn position(&mut self, offset: usize) -> (u32, u32) {
        let index = self.index(offset);
        let start = self.starts.get(index).copied().unwrap_or(0);
        let (from, base) = match self.last {
            (at, line, col) if line == index && at >= start && at <= offset => (at, col),
            _ => (start, 1),
        };
        let col = base + self.text.get(from..offset).map_or(0, |s| s.chars().count()) as u32;
        self.last = (offset, index, col);
        (index as u32 + 1, col)
    }

    /// The line with this 1-based number, ending included.
    pub(crate) fn range(&self, line: u32) -> Range<usize> {
        let index = (line as usize).saturating_sub(1);
        let start = self.starts.get(index).copied().unwrap_or(self.text.len());
        start
            ..self
                .starts
                .get(index + 1)
                .copied()
                .unwrap_or(self.text.len())
    }
}
