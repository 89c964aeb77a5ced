//! The arguments of `basalt shell`, and what they ask for.

use std::fs::File;
use std::io::{BufReader, BufWriter, IsTerminal};
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use client::Connection;

use crate::echo::{self, Echo};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::interactive;
use crate::output::{Output, Style};
use crate::session::Session;

const USAGE: &str = "\
HBase's shell: commands and scripts for a cluster.

Usage: basalt shell [OPTIONS] [SCRIPT]

  -e COMMAND              run this and end; may be given more than once
  -n, --noninteractive    no session after the script; end with a code that is not zero at the first error
  -q, --quorum HOSTS      the cluster's ZooKeeper: host[:port][,host[:port]...][/base-node]
  -D KEY=VALUE            one setting, over what hbase-site.xml says
      --json              one JSON object a line: each row of a table under its columns' heads; no counts and times
      --no-color          no colours, on a terminal either (as with NO_COLOR in the environment)
  -d, --debug             accepted for the sake of scripts
  --top-level-defs        accepted for the sake of scripts
  -h, --help              this text

Without a script, commands are read from standard input: with a prompt where that is a terminal.
Settings come from hbase-site.xml in --config DIR or $HBASE_CONF_DIR.

Examples:
  basalt shell
  basalt shell -e \"create 't', 'f'\" -e \"put 't', 'r', 'f:q', 'v'\" -e \"scan 't'\"
  echo \"status\" | basalt shell -n
  basalt shell --json -e \"scan 't', {LIMIT => 10}\" | jq .
  basalt shell -n -q zk1,zk2,zk3 migrate.rb
";

/// What the arguments say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    help: bool,
    noninteractive: bool,
    json: bool,
    no_color: bool,
    commands: Vec<String>,
    quorum: Option<String>,
    settings: Vec<(String, String)>,
    script: Option<String>,
}

fn parse(arguments: &[String]) -> anyhow::Result<Asked> {
    let mut asked = Asked::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = |what: &str| rest.next().cloned().with_context(|| format!("{argument} needs {what} after it"));
        let setting = |text: &str| -> anyhow::Result<(String, String)> {
            let (key, value) =
                text.split_once('=').with_context(|| format!("-D {text} is not of the form key=value"))?;
            Ok((key.to_owned(), value.to_owned()))
        };
        match argument.as_str() {
            "-h" | "--help" => asked.help = true,
            "-n" | "--noninteractive" => asked.noninteractive = true,
            "--json" => asked.json = true,
            "--no-color" | "--no-colour" => asked.no_color = true,
            "-d" | "--debug" | "--top-level-defs" | "-r" | "--return-values" => {}
            "-e" => asked.commands.push(value("a command")?),
            "-q" | "--quorum" => asked.quorum = Some(value("hosts")?),
            "-D" => asked.settings.push(setting(&value("key=value")?)?),
            text if text.starts_with("-D") => asked.settings.push(setting(&text[2..])?),
            text if text.starts_with('-') && text.len() > 1 => {
                bail!("{text} is no option of the shell; basalt shell --help lists them");
            }
            script => {
                // What comes after it is the script's.
                asked.script = Some(script.to_owned());
                break;
            }
        }
    }
    Ok(asked)
}

/// Runs the shell; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, the script cannot be read, or a runtime cannot be made.
pub fn run(config: &Config, arguments: &[String]) -> anyhow::Result<ExitCode> {
    let asked = parse(arguments)?;
    if asked.help {
        print!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let mut config = config.clone();
    asked.settings.iter().for_each(|(key, value)| config.set(key.clone(), value.clone()));
    let mut options = client::Options::from_config(&config);
    if let Some(quorum) = &asked.quorum {
        options.registry = client::Options::parse(quorum).map_err(|error| anyhow::anyhow!("{error}"))?.registry;
    }
    // Connections live in a worker's tasks; the thread at hand evaluates.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let connection = {
        let _entered = runtime.enter();
        Connection::open(options)
    };
    let one_shot = !asked.commands.is_empty();
    let output = Output::new(Box::new(BufWriter::new(std::io::stdout())), interactive::width()).styled(style(&asked));
    let session = Session::new(connection, runtime, output, !asked.noninteractive && !one_shot);
    let mut shell = Shell::new(session);
    let ended = converse(&mut shell, &asked)?;
    // Output whose reader has gone is nobody's loss.
    let _ = shell.session.output.flush();
    match ended {
        Ok(code) => Ok(ExitCode::from(code.unwrap_or(0))),
        Err(Flow::Exit(code)) => Ok(ExitCode::from(code)),
        Err(Flow::Raise(exception)) => bail!("{}", exception.message),
        Err(_) => Ok(ExitCode::FAILURE),
    }
}

/// Colours are for people at a terminal that did not ask for none.
fn style(asked: &Asked) -> Style {
    let wanted = !asked.no_color && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    match () {
        () if asked.json => Style::Json,
        () if wanted && std::io::stdout().is_terminal() && std::env::var("TERM").as_deref() != Ok("dumb") => {
            Style::Coloured
        }
        () => Style::Plain,
    }
}

/// Commands, the script, then what is typed or piped.
fn converse(shell: &mut Shell, asked: &Asked) -> anyhow::Result<Result<Option<u8>>> {
    for command in &asked.commands {
        match echo::run(shell, &mut command.as_bytes(), Echo::None) {
            Ok(None) => {}
            ended => return Ok(ended),
        }
    }
    if let Some(path) = &asked.script {
        let file = File::open(path).with_context(|| format!("cannot read the script {path}"))?;
        match echo::run(shell, &mut BufReader::new(file), Echo::All) {
            Ok(None) if !asked.noninteractive => {}
            ended => return Ok(ended),
        }
    } else if !asked.commands.is_empty() {
        return Ok(Ok(None));
    }
    let stdin = std::io::stdin();
    Ok(match stdin.is_terminal() {
        true => interactive::run(shell),
        false => echo::run(shell, &mut BufReader::new(stdin), Echo::All),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> anyhow::Result<Asked> {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        parse(&arguments)
    }

    #[test]
    fn arguments_are_hbases() {
        let asked = of(&["-n", "-Da=b=c", "-D", "d=e", "-q", "zk", "script.rb", "-x"]).unwrap_or_default();
        assert!(asked.noninteractive);
        assert_eq!(asked.settings, [("a".into(), "b=c".into()), ("d".into(), "e".into())]);
        assert_eq!((asked.quorum.as_deref(), asked.script.as_deref()), (Some("zk"), Some("script.rb")));
        assert!(of(&["-x"]).is_err() && of(&["-e"]).is_err() && of(&["-Dx"]).is_err());
    }
}
