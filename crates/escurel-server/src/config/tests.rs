use super::*;

fn env(pairs: &[(&str, &str)]) -> Sources {
    Sources {
        env: pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        ..Sources::default()
    }
}

fn refused(pairs: &[(&str, &str)], expect: &str) {
    let message = Config::load(&env(pairs)).unwrap_err().to_string();
    assert!(message.contains(expect), "{message}");
}

#[test]
fn defaults_and_precedence() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("escurel.toml");
    std::fs::write(&file, "listen = \"127.0.0.1:1\"\nallowed_hosts = [\"a\", \"b\"]\nread_only = true\nmax_body_bytes = 9\n").unwrap();
    let mut sources = Sources {
        file: Some(file),
        ..env(&[("ESCUREL_LISTEN", "127.0.0.1:2"), ("ESCUREL_LOG", "")])
    };
    let config = Config::load(&sources).unwrap();
    assert_eq!(config.listen.port(), 2);
    assert_eq!(config.allowed_hosts, ["a", "b"]);
    assert!(config.read_only && config.max_body_bytes == 9 && config.log == "info");
    sources.flags = vec![("listen", "[::1]:3".into())];
    assert_eq!(Config::load(&sources).unwrap().listen.port(), 3);
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    refused(&[("ESCUREL_LISTE", "x")], "Did you mean ESCUREL_LISTEN?");
    refused(&[("ESCUREL_XYZZY", "x")], "unknown setting ESCUREL_XYZZY.");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("escurel.toml");
    std::fs::write(&file, "lisen = \"x\"").unwrap();
    let error = Config::load(&Sources {
        file: Some(file),
        ..Sources::default()
    })
    .unwrap_err();
    assert!(
        error.to_string().contains("Did you mean listen?"),
        "{error}"
    );
}

#[test]
fn names_of_others_are_ignored() {
    let pairs = [
        ("ESCUREL_SERVICE_HOST", "10.0.0.1"),
        ("ESCUREL_PORT", "tcp://10.0.0.1:80"),
        ("ESCUREL_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("ESCUREL_EMBEDDING_PROVIDER", "none"),
        ("ESCUREL_AUTONOMY_LINT", "enforce"),
        ("ESCUREL_EVENT_ACL", "log"),
        ("ESCUREL_OIDC_ISSUER", ""),
        ("PATH", "/bin"),
    ];
    assert!(Config::load(&env(&pairs)).is_ok());
}

#[test]
fn what_this_release_cannot_keep_is_refused() {
    refused(
        &[("ESCUREL_OIDC_ISSUER", "https://id.example")],
        "does not have token verification",
    );
    refused(&[("ESCUREL_WRITE_ACL", "x")], "does not have access rules");
    refused(
        &[("ESCUREL_AUTONOMY_LINT", "yes")],
        "not off, log or enforce",
    );
    refused(&[("ESCUREL_EVENT_ACL", "on")], "not off, log or enforce");
    refused(
        &[("ESCUREL_WEBHOOK_URL", "ftp://a.example")],
        "not an http or https address",
    );
    refused(
        &[("ESCUREL_EMBEDDING_PROVIDER", "word2vec")],
        "not local, openai, gemini, embedding-gemma or none",
    );
}

#[test]
fn secrets_come_from_the_environment_and_are_not_shown() {
    let given = env(&[("ESCUREL_EMBEDDING_API_KEY", " s3cret\n")]);
    let config = Config::load(&given).unwrap();
    let key = config.embedding_api_key.as_ref().map(Secret::reveal);
    assert_eq!(key, Some("s3cret"));
    assert!(!format!("{config:?}").contains("s3cret"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("escurel.toml");
    std::fs::write(&file, "embedding_api_key = \"s3cret\"").unwrap();
    let file = Some(file);
    let told = Config::load(&Sources {
        file,
        ..Sources::default()
    });
    let told = told.unwrap_err().to_string();
    assert!(told.starts_with("config_secret: "), "{told}");
    assert!(told.contains("ESCUREL_EMBEDDING_API_KEY") && !told.contains("s3cret"));
}

#[test]
fn the_package_index_of_the_machine_counts_unless_ours_is_named() {
    let index = |pairs: &[(&str, &str)], file: Option<PathBuf>| {
        let sources = Sources { file, ..env(pairs) };
        Config::load(&sources).unwrap().model_index
    };
    let pip = ("PIP_INDEX_URL", "https://pip.example/simple");
    let own = ("ESCUREL_MODEL_INDEX", "https://own.example/simple");
    assert_eq!(index(&[], None), "https://pypi.org/simple");
    assert_eq!(
        index(&[("PIP_INDEX_URL", "")], None),
        "https://pypi.org/simple"
    );
    assert_eq!(index(&[pip], None), pip.1);
    assert_eq!(index(&[own, pip], None), own.1);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("escurel.toml");
    std::fs::write(&file, "model_index = \"https://file.example/simple\"").unwrap();
    assert_eq!(index(&[pip], Some(file)), "https://file.example/simple");
}

#[test]
fn values_are_checked() {
    refused(&[("ESCUREL_LISTEN", "nonsense:port:1")], "not address:port");
    refused(&[("ESCUREL_READ_ONLY", "maybe")], "not true or false");
    refused(&[("ESCUREL_MAX_BODY_BYTES", "0")], "above zero");
    refused(&[("ESCUREL_REQUEST_TIMEOUT", "-1")], "seconds above zero");
    refused(&[("ESCUREL_REQUEST_TIMEOUT", "nan")], "seconds above zero");
}

#[test]
fn texts_with_a_form_are_checked() {
    let ok = |name: &str, value: &str| {
        let loaded = Config::load(&env(&[(name, value)]));
        assert!(loaded.is_ok(), "{name}={value}: {loaded:?}");
    };
    let log = "sets log to";
    for value in ["banana", "info,x=banana", "info,debg"] {
        refused(&[("ESCUREL_LOG", value)], log);
    }
    for value in ["warn", "off", "info,escurel_server=debug", "INFO"] {
        ok("ESCUREL_LOG", value);
    }
    let origins = "sets allowed_origins to";
    for value in [
        "*",
        "kb.example.org",
        "https://a.org/path",
        "https://",
        "null",
    ] {
        refused(&[("ESCUREL_ALLOWED_ORIGINS", value)], origins);
    }
    ok(
        "ESCUREL_ALLOWED_ORIGINS",
        "https://a.org, http://b.org:8080/, app://obsidian.md",
    );
    let hosts = "sets allowed_hosts to";
    for value in ["*", "https://a.org", "a.org/x", "a.org:http", "a b"] {
        refused(&[("ESCUREL_ALLOWED_HOSTS", value)], hosts);
    }
    ok(
        "ESCUREL_ALLOWED_HOSTS",
        "a.org, b.org:8080, 10.0.0.1, [::1]:80, my_host",
    );
}

#[test]
fn open_addresses_need_consent() {
    refused(&[("ESCUREL_LISTEN", "0.0.0.0:80")], "--insecure");
    assert!(
        Config::load(&env(&[
            ("ESCUREL_LISTEN", "0.0.0.0:80"),
            ("ESCUREL_INSECURE", "1")
        ]))
        .is_ok()
    );
    refused(
        &[
            ("ESCUREL_LISTEN", "0.0.0.0:80"),
            ("ESCUREL_INSECURE", "1"),
            ("ESCUREL_TEST_FIXTURES", "1"),
        ],
        "loopback",
    );
    assert!(
        Config::load(&env(&[("ESCUREL_LISTEN", "9000")]))
            .unwrap()
            .listen
            .ip()
            .is_loopback()
    );
}

#[test]
fn keys_are_unique_and_documented() {
    for (i, key) in KEYS.iter().enumerate() {
        assert!(
            key.doc.ends_with('.') && key.env.starts_with("ESCUREL_"),
            "{}",
            key.name
        );
        assert!(
            KEYS[..i]
                .iter()
                .all(|k| k.name != key.name && k.env != key.env),
            "{}",
            key.name
        );
        assert!(later(key.env).is_none(), "{}", key.name);
    }
}

#[test]
fn the_reference_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config.md");
    let want = reference_md();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &want).unwrap();
    }
    let got = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(got, want, "run UPDATE_DOCS=1 cargo test -p escurel-server");
}
