//! The settings as a page for people.

use super::KEYS;

/// Text of `docs/reference/config.md`.
pub fn reference_md() -> String {
    let mut out = String::from(HEAD);
    for key in KEYS.iter().filter(|key| !key.hidden) {
        let flag = if key.flag.is_empty() {
            String::new()
        } else {
            format!("`--{}`", key.flag)
        };
        let default = if key.default.is_empty() {
            String::new()
        } else {
            format!("`{}`", key.default)
        };
        out.push_str(&format!(
            "| `{}` | `{}` | {flag} | {} | {default} | {} |\n",
            key.name, key.env, key.kind, key.doc
        ));
    }
    out.push_str(TAIL);
    out
}

const HEAD: &str = "# Settings

Written by `cargo test`; change the table in `crates/escurel-server/src/config.rs`.

A setting comes from, the later one winning: its default, the configuration file, the environment, a flag of `escurel serve`.
The file is `escurel.toml` in `$XDG_CONFIG_HOME/escurel` (or `~/.config/escurel`), or the one that `--config` or `ESCUREL_CONFIG` names;
a file inside the served folder is never read. Unknown names, in the file or as `ESCUREL_*`, stop the start.

| key | environment | flag | is | default | what it does |
|---|---|---|---|---|---|
";

const TAIL: &str = "
Variables named `ESCUREL_SERVICE_*` and `ESCUREL_PORT*` are ignored: container platforms set them for a service called escurel.
Settings of verification and access rules are refused by this release instead of being ignored.

```toml
# escurel.toml
listen = \"127.0.0.1:8080\"
allowed_hosts = [\"kb.example.org\"]
```
";
