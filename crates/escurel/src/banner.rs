//! What `serve` says once it is ready: what is served and how to use it.

use std::net::SocketAddr;
use std::path::Path;

use escurel_core::api::Status;
use serde_json::json;

/// Where the server is reached.
pub struct Addresses {
    pub http: SocketAddr,
    pub metrics: Option<SocketAddr>,
}

impl Addresses {
    /// For an address that means every interface, the name of this machine's own.
    fn host(&self) -> String {
        if self.http.ip().is_unspecified() {
            format!("localhost:{}", self.http.port())
        } else {
            self.http.to_string()
        }
    }

    pub fn mcp(&self) -> String {
        format!("http://{}/mcp", self.host())
    }
}

pub fn text(folder: &Path, program: &Path, status: &Status, addresses: &Addresses) -> String {
    let mut out = format!(
        "\nServing {}{}\n  {} pages, {} skills, {} links, {} broken links{}\n",
        folder.display(),
        if status.read_only { " (read-only)" } else { "" },
        status.pages,
        status.skills,
        status.links,
        status.broken_links,
        findings(status),
    );
    if status.vectors.state == "off" {
        let reason = status.vectors.reason.as_deref().unwrap_or_default();
        out.push_str(&format!("  found by their words only: {reason}\n"));
    }
    for warning in status.notices() {
        out.push_str(&format!("  warning: {warning}\n"));
    }
    let url = addresses.mcp();
    let host = addresses.host();
    out.push_str(&format!(
        "\nMCP      {url}\nHTTP     http://{host}/openapi.json\nHealth   http://{host}/readyz\n"
    ));
    if let Some(metrics) = addresses.metrics {
        out.push_str(&format!("Metrics  http://{metrics}/metrics\n"));
    }
    out.push_str(&clients(&url, folder, program));
    out
}

fn findings(status: &Status) -> String {
    match status.pages_with_issues {
        0 => String::new(),
        pages => format!(", {pages} pages with findings"),
    }
}

/// The exact text to paste, for clients that connect and for those that start their own.
fn clients(url: &str, folder: &Path, program: &Path) -> String {
    let http = json!({"mcpServers": {"escurel": {"type": "http", "url": url}}});
    let (program, folder) = (program.display().to_string(), folder.display().to_string());
    let stdio = json!({"mcpServers": {"escurel": {"command": program, "args": ["mcp", folder]}}});
    format!(
        "\nConnect a client:\n  claude mcp add --transport http escurel {url}\n  {http}\n\
         or let it start its own server:\n  claude mcp add escurel -- {} mcp {}\n  {stdio}\n",
        quoted(&program),
        quoted(&folder),
    )
}

/// A word as a POSIX shell reads it.
fn quoted(word: &str) -> String {
    if !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_alphanumeric() || "-_./:=@".contains(c))
    {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use escurel_core::api::VectorStatus;

    use super::*;

    #[test]
    fn says_what_to_paste() {
        let status = Status {
            pages: 3,
            broken_links: 1,
            held_deletions: 2,
            warnings: vec!["careful".into()],
            vectors: VectorStatus {
                state: "off",
                reason: Some("run `escurel model pull`".into()),
                ..VectorStatus::default()
            },
            ..Status::default()
        };
        let addresses = Addresses {
            http: "0.0.0.0:8080".parse().unwrap(),
            metrics: None,
        };
        let text = text(
            Path::new("/my notes"),
            Path::new("/bin/escurel"),
            &status,
            &addresses,
        );
        for part in [
            "3 pages",
            "1 broken links",
            "warning: careful",
            "found by their words only: run `escurel model pull`",
            "confirm-deletions",
            "claude mcp add --transport http escurel http://localhost:8080/mcp",
            r#"{"mcpServers":{"escurel":{"type":"http","url":"http://localhost:8080/mcp"}}}"#,
            "claude mcp add escurel -- /bin/escurel mcp '/my notes'",
            r#"{"command":"/bin/escurel","args":["mcp","/my notes"]}"#,
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
