//! The one HTTP client.
//!
//! Invariant: what an error says never holds a header or what an address
//! carries besides its path.

use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::HeaderValue;
use ureq::tls::{RootCerts, TlsConfig};
use url::Url;

const CONNECT: Duration = Duration::from_secs(15);
/// Of an answer that is still arriving.
const SILENCE: Duration = Duration::from_secs(60);
/// Bytes of an answer to what was sent.
const LARGEST: u64 = 64 << 20;
/// A server that wants to be left alone for longer is asked again all the same.
const LONGEST_REST: u64 = 600;

/// Trusts the certificates that this machine trusts, and goes through the proxy
/// that the environment names. A clone shares its connections.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
}

/// An answer, whatever its status.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
}

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unanswered(pub String);

impl Default for Client {
    fn default() -> Client {
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
        let config = Agent::config_builder()
            .tls_config(tls.build())
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(SILENCE))
            .user_agent(concat!("escurel/", env!("CARGO_PKG_VERSION")));
        Client {
            agent: config.build().new_agent(),
        }
    }
}

impl Client {
    /// Sends JSON and waits for the answer, at most `within`.
    ///
    /// # Errors
    /// [`Unanswered`], whose text may be shown to anybody.
    pub fn post(
        &self,
        url: &Url,
        secret: Option<(&str, &str)>,
        body: &Value,
        within: Duration,
    ) -> Result<Answer, Unanswered> {
        self.send(url, secret, body.to_string().into_bytes(), within)
    }

    /// As [`Client::post`] for JSON whose very bytes matter.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub fn send(
        &self,
        url: &Url,
        secret: Option<(&str, &str)>,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Answer, Unanswered> {
        let mut request = self
            .agent
            .post(url.as_str())
            .content_type("application/json")
            .config()
            .timeout_global(Some(within))
            // A redirect is an answer like others: the key goes nowhere else.
            .max_redirects(0)
            .build();
        if let Some((name, value)) = secret {
            let bad = |_| Unanswered(format!("the key cannot be sent in the header {name}"));
            let mut value = HeaderValue::from_str(value).map_err(bad)?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let mut response = request.send(&body[..]).map_err(unanswered)?;
        let status = response.status().as_u16();
        let after = response.headers().get("retry-after");
        let seconds = after.and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
        let body = response.body_mut().with_config().limit(LARGEST);
        Ok(Answer {
            status,
            retry_after: seconds.map(|s| Duration::from_secs(s.min(LONGEST_REST))),
            body: body.read_to_vec().map_err(unanswered)?,
        })
    }

    /// The answer's head; its body is read from it.
    pub(crate) fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
    ) -> Result<ureq::http::Response<ureq::Body>, Unanswered> {
        let request = headers
            .iter()
            .fold(self.agent.get(url.as_str()), |request, (name, value)| {
                request.header(*name, *value)
            });
        request.call().map_err(unanswered)
    }
}

fn unanswered(error: ureq::Error) -> Unanswered {
    Unanswered(reason(&error))
}

/// In words for people, without anything that was sent.
fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        ureq::Error::HostNotFound => "its name is not known here".to_owned(),
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            "no answer in time".to_owned()
        }
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => "it is no address".to_owned(),
        ureq::Error::Rustls(error) => format!("TLS: {error}"),
        error => error.to_string(),
    }
}

/// An address as it may be shown: tokens travel as user names and in queries.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}
