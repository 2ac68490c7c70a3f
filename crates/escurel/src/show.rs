//! What goes to standard output.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ArgMatches;
use escurel_tools::Table;
use serde_json::Value;

use crate::args;
use crate::failure::Failure;

/// Columns of a terminal that tells none.
const WIDTH: u16 = 80;

/// A line. A reader that has gone away is not an error.
pub fn line(text: &str) {
    let mut out = io::stdout().lock();
    let text = if out.is_terminal() {
        visible(text)
    } else {
        Cow::Borrowed(text)
    };
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// A line of standard error, which may have gone away as well.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", visible(text));
}

/// Text of strangers must not command the terminal: control characters but
/// newline and tab are shown as signs.
pub fn visible(text: &str) -> Cow<'_, str> {
    let commands = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(commands) {
        return Cow::Borrowed(text);
    }
    let sign = |c: char| match c {
        '\n' | '\t' => c,
        '\u{7f}' => '\u{2421}',
        c if c < ' ' => char::from_u32(0x2400 + c as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    // The end of a line as Windows writes it is no command.
    Cow::Owned(text.replace("\r\n", "\n").chars().map(sign).collect())
}

/// Output that somebody may stop reading.
pub struct Pipe<W> {
    inner: W,
    pub gone: bool,
}

impl<W: Write> Pipe<W> {
    pub fn new(inner: W) -> Pipe<W> {
        Pipe { inner, gone: false }
    }

    fn noted<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &done {
            self.gone |= error.kind() == io::ErrorKind::BrokenPipe;
        }
        done
    }
}

impl<W: Write> Write for Pipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.inner.write(bytes);
        self.noted(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.inner.flush();
        self.noted(done)
    }
}

/// JSON for programs, pretty for people.
pub fn json(value: &Value) {
    let pretty = io::stdout().is_terminal();
    let text = if pretty {
        serde_json::to_string_pretty(value).unwrap_or_default()
    } else {
        value.to_string()
    };
    line(&text);
}

/// Does a person read this?
pub fn for_people(given: &ArgMatches) -> bool {
    io::stdout().is_terminal() && !given.get_flag("json")
}

pub fn table(table: &Table) {
    if !table.rows.is_empty() {
        let mut drawn = comfy_table::Table::new();
        drawn
            .load_style(comfy_table::presets::NOTHING)
            .set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
        // A terminal that does not tell its width has none.
        if drawn.width() == Some(0) {
            drawn.set_width(WIDTH);
        }
        let cells = |row: &Vec<String>| row.iter().map(|c| visible(c).into_owned()).collect();
        let rows: Vec<Vec<String>> = table.rows.iter().map(cells).collect();
        drawn.set_header(&table.headers);
        drawn.add_rows(&rows);
        line(&drawn.to_string());
    }
    if let Some(footer) = &table.footer {
        line(footer);
    }
}

pub fn completions(given: &ArgMatches) -> Result<ExitCode, Failure> {
    let Some(shell) = given.get_one::<clap_complete::Shell>("shell") else {
        return Err(Failure::usage("Name a shell."));
    };
    let mut out = Vec::new();
    clap_complete::generate(*shell, &mut args::command(), "escurel", &mut out);
    line(&String::from_utf8_lossy(&out));
    Ok(ExitCode::SUCCESS)
}

pub fn man(given: &ArgMatches) -> Result<ExitCode, Failure> {
    if let Some(dir) = given.get_one::<PathBuf>("dir") {
        std::fs::create_dir_all(dir)?;
        clap_mangen::generate_to(args::command(), dir)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = Vec::new();
    clap_mangen::Man::new(args::command()).render(&mut out)?;
    line(&String::from_utf8_lossy(&out));
    Ok(ExitCode::SUCCESS)
}

pub fn version() -> Result<ExitCode, Failure> {
    line(&format!("escurel {}", env!("CARGO_PKG_VERSION")));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_signs() {
        let check = |text: &str, expect: &str| assert_eq!(visible(text), expect);
        check("plain\n\ttext é", "plain\n\ttext é");
        check("\u{1b}]0;owned\u{7}", "␛]0;owned␇");
        check("a\u{9b}31mb", "a\u{fffd}31mb");
        check("a\r\nb\rc\u{8}\u{7f}", "a\nb␍c␈␡");
    }

    #[test]
    fn a_reader_that_has_gone_away_is_noticed() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut pipe = Pipe::new(io::BufWriter::with_capacity(1, Gone));
        assert!(pipe.write_all(b"some text").is_err() && pipe.gone);
    }
}
