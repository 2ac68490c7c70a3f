//! How a setting is read from text.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use escurel_access::EventAcl;
use escurel_core::AutonomyLint;
use escurel_fetch::Url;

/// A type that a setting can have. Every source hands in text.
pub trait Setting: Sized {
    /// What it is, for messages and the reference.
    const KIND: &'static str;
    fn parse(text: &str) -> Option<Self>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Auto,
    Human,
    Json,
}

impl Setting for LogFormat {
    const KIND: &'static str = "auto, human or json";
    fn parse(text: &str) -> Option<LogFormat> {
        match text {
            "auto" => Some(LogFormat::Auto),
            "human" => Some(LogFormat::Human),
            "json" => Some(LogFormat::Json),
            _ => None,
        }
    }
}

/// Who makes vectors of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Nobody: pages are found by their words.
    None,
    /// The sentence encoder on this machine.
    Local,
    /// A server that speaks OpenAI's protocol.
    OpenAi,
    Gemini,
    /// EmbeddingGemma, on a server that speaks OpenAI's protocol.
    EmbeddingGemma,
}

impl Setting for Provider {
    const KIND: &'static str = "local, openai, gemini, embedding-gemma or none";
    fn parse(text: &str) -> Option<Provider> {
        match text {
            "local" => Some(Provider::Local),
            "openai" => Some(Provider::OpenAi),
            "gemini" => Some(Provider::Gemini),
            "embedding-gemma" => Some(Provider::EmbeddingGemma),
            "none" | "zero" => Some(Provider::None),
            _ => None,
        }
    }
}

impl Setting for AutonomyLint {
    const KIND: &'static str = "off, log or enforce";
    fn parse(text: &str) -> Option<AutonomyLint> {
        match text {
            "off" => Some(AutonomyLint::Off),
            "log" => Some(AutonomyLint::Log),
            "enforce" => Some(AutonomyLint::Enforce),
            _ => None,
        }
    }
}

impl Setting for EventAcl {
    const KIND: &'static str = "off, log or enforce";
    fn parse(text: &str) -> Option<EventAcl> {
        match text {
            "off" => Some(EventAcl::Off),
            "log" => Some(EventAcl::Log),
            "enforce" => Some(EventAcl::Enforce),
            _ => None,
        }
    }
}

/// A text that is never shown, in no message and no log.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Setting for Secret {
    const KIND: &'static str = "a secret";
    fn parse(text: &str) -> Option<Secret> {
        Some(Secret(text.trim().to_owned()))
    }
}

impl Setting for Url {
    const KIND: &'static str = "an http or https address";
    fn parse(text: &str) -> Option<Url> {
        let url = Url::parse(text.trim()).ok()?;
        matches!(url.scheme(), "http" | "https").then_some(url)
    }
}

impl Setting for bool {
    const KIND: &'static str = "true or false";
    fn parse(text: &str) -> Option<bool> {
        match text {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        }
    }
}

impl Setting for usize {
    const KIND: &'static str = "a whole number above zero";
    fn parse(text: &str) -> Option<usize> {
        text.parse().ok().filter(|n| *n > 0)
    }
}

impl Setting for Duration {
    const KIND: &'static str = "seconds above zero";
    fn parse(text: &str) -> Option<Duration> {
        let seconds: f64 = text.parse().ok()?;
        Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|d| !d.is_zero())
    }
}

impl Setting for String {
    const KIND: &'static str = "text";
    fn parse(text: &str) -> Option<String> {
        Some(text.to_owned())
    }
}

impl Setting for SocketAddr {
    const KIND: &'static str = "address:port";
    /// A name stands for its first address; a bare port for loopback.
    fn parse(text: &str) -> Option<SocketAddr> {
        if let Ok(address) = text.parse() {
            return Some(address);
        }
        let port = text.strip_prefix(':').unwrap_or(text);
        if let Ok(port) = port.parse::<u16>() {
            return Some(SocketAddr::from(([127, 0, 0, 1], port)));
        }
        text.to_socket_addrs().ok()?.next()
    }
}

impl Setting for PathBuf {
    const KIND: &'static str = "a path";
    fn parse(text: &str) -> Option<PathBuf> {
        Some(PathBuf::from(text))
    }
}

impl Setting for Vec<String> {
    const KIND: &'static str = "a comma separated list";
    fn parse(text: &str) -> Option<Vec<String>> {
        Some(
            text.split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }
}

impl<T: Setting> Setting for Option<T> {
    const KIND: &'static str = T::KIND;
    fn parse(text: &str) -> Option<Option<T>> {
        if text.is_empty() {
            Some(None)
        } else {
            T::parse(text).map(Some)
        }
    }
}

/// `host` or `host:port`, as browsers and clients write it in a request.
pub fn is_host(text: &str) -> bool {
    if text.parse::<IpAddr>().is_ok() || text.parse::<SocketAddr>().is_ok() {
        return true;
    }
    if let Some(address) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        return address.parse::<IpAddr>().is_ok();
    }
    let (name, port) = text.split_once(':').unwrap_or((text, "1"));
    let in_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    !name.is_empty() && name.bytes().all(in_name) && port.parse::<u16>().is_ok()
}

/// `scheme://host[:port]`; a slash at the end is forgiven.
pub fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else {
        return false;
    };
    let in_scheme = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(in_scheme)
        && is_host(host.strip_suffix('/').unwrap_or(host))
}

/// A file's value as the text that the environment would hold.
pub fn toml_text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(toml_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
