//! A list of strings in one allocation.

use serde::{Deserialize, Serialize};

/// Immutable list of short strings. A NUL inside a string becomes U+FFFD: NUL
/// ends each element.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Texts(Box<str>);

impl Texts {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split_terminator('\0')
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.iter().count()
    }

    pub fn contains(&self, text: &str) -> bool {
        self.iter().any(|t| t == text)
    }
}

impl<S: AsRef<str>> FromIterator<S> for Texts {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Texts {
        let mut out = String::new();
        for text in texts {
            let start = out.len();
            out.push_str(text.as_ref());
            if out[start..].contains('\0') {
                let clean = out[start..].replace('\0', "\u{fffd}");
                out.replace_range(start.., &clean);
            }
            out.push('\0');
        }
        Texts(out.into_boxed_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Texts;

    #[test]
    fn keeps_elements() {
        for list in [&[][..], &[""], &["a"], &["", "b\n", ""]] {
            let texts: Texts = list.iter().collect();
            assert_eq!(texts.iter().collect::<Vec<_>>(), list);
        }
        assert_eq!(
            Texts::from_iter(["a\0b"]).iter().collect::<Vec<_>>(),
            ["a\u{fffd}b"]
        );
    }
}
