//! Command lines as HBase's tools read them: short options that may stand together (`-pv`), long ones with one or two dashes, values behind an
//! option, joined to it or after `=`, and the rest. Follows: `PosixParser` of commons-cli, `AbstractHBaseTool`.

use anyhow::{Context, bail};

/// An option that a tool knows.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Its letter, or short word; empty where it has none.
    pub short: &'static str,
    /// Its long word; empty where it has none.
    pub long: &'static str,
    /// Whether a value follows.
    pub has_value: bool,
}

/// An option without a value.
pub const fn flag(short: &'static str, long: &'static str) -> Known {
    Known { short, long, has_value: false }
}

/// An option with a value.
pub const fn valued(short: &'static str, long: &'static str) -> Known {
    Known { short, long, has_value: true }
}

/// A command line, taken apart.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// Options under their long words, or the short one where there is no long one, each with its value.
    options: Vec<(&'static str, String)>,
    /// What is no option.
    pub rest: Vec<String>,
}

impl Known {
    fn name(&self) -> &'static str {
        if self.long.is_empty() { self.short } else { self.long }
    }

    fn is(&self, word: &str) -> bool {
        !word.is_empty() && (self.short == word || self.long == word)
    }
}

/// Takes a command line of `tool` apart. Behind `--` everything is rest.
///
/// # Errors
/// An option that is not known, or a value that is missing or too much.
pub fn parse(tool: &str, known: &[Known], arguments: &[String]) -> anyhow::Result<Parsed> {
    let mut parsed = Parsed::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            parsed.rest.extend(words.by_ref().cloned());
            break;
        }
        let Some(named) = word.strip_prefix('-').filter(|named| !named.is_empty()) else {
            parsed.rest.push(word.clone());
            continue;
        };
        let named = named.strip_prefix('-').unwrap_or(named);
        let (named, joined) = match named.split_once('=') {
            Some((named, value)) => (named, Some(value.to_owned())),
            None => (named, None),
        };
        if let Some(option) = known.iter().find(|option| option.is(named)) {
            let value = match (option.has_value, joined) {
                (true, Some(value)) => value,
                (true, None) => {
                    words.next().cloned().with_context(|| format!("{tool}: {word} needs a value after it"))?
                }
                (false, None) => String::new(),
                (false, Some(_)) => bail!("{tool}: {word}: this option takes no value"),
            };
            parsed.options.push((option.name(), value));
            continue;
        }
        if word.starts_with("--") || joined.is_some() {
            bail!("{tool}: {word} is no option; basalt {tool} --help lists them");
        }
        together(tool, known, word, named, &mut words, &mut parsed)?;
    }
    Ok(parsed)
}

/// Letters that stand together: flags, and at the end one whose value is what is left or what follows.
fn together<'a>(
    tool: &str,
    known: &[Known],
    word: &str,
    letters: &str,
    words: &mut impl Iterator<Item = &'a String>,
    parsed: &mut Parsed,
) -> anyhow::Result<()> {
    for (at, letter) in letters.char_indices() {
        let mut buffer = [0; 4];
        let letter_text: &str = letter.encode_utf8(&mut buffer);
        let Some(option) = known.iter().find(|option| option.short == letter_text) else {
            bail!("{tool}: {word} is no option; basalt {tool} --help lists them");
        };
        if !option.has_value {
            parsed.options.push((option.name(), String::new()));
            continue;
        }
        let left = &letters[at + letter.len_utf8()..];
        let value = match left.is_empty() {
            false => left.to_owned(),
            true => words.next().cloned().with_context(|| format!("{tool}: -{letter} needs a value after it"))?,
        };
        parsed.options.push((option.name(), value));
        break;
    }
    Ok(())
}

impl Parsed {
    /// Whether an option is given.
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(known, _)| *known == name)
    }

    /// The value of an option, the last one where it is given several times.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Every value of an option.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.options.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The value of an option as a number.
    ///
    /// # Errors
    /// It is none, or out of bounds.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> anyhow::Result<Option<T>> {
        let number = |value: &str| {
            let number = value.trim().parse().ok();
            number.with_context(|| format!("--{name} {value}: this is no number that fits"))
        };
        self.value(name).map(number).transpose()
    }
}

/// Whether help is asked for: by `-h`, `--help`, `-help` or `help` alone.
pub fn wants_help(arguments: &[String]) -> bool {
    arguments.iter().any(|word| matches!(word.as_str(), "--help" | "-help"))
        || matches!(arguments, [word] if matches!(word.as_str(), "-h" | "help" | "-?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Known] = &[flag("p", "printkv"), flag("v", "verbose"), valued("f", "file"), valued("", "limit")];

    fn of(words: &[&str]) -> anyhow::Result<Parsed> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse("hfile", KNOWN, &words)
    }

    #[test]
    fn options_may_stand_together_and_have_their_values_joined() {
        let parsed = of(&["-pvf", "a", "-limit=3", "b", "--", "-p"]).expect("legal");
        assert!(parsed.has("printkv") && parsed.has("verbose"));
        assert_eq!(parsed.value("file"), Some("a"));
        assert_eq!(parsed.number::<u32>("limit").expect("a number"), Some(3));
        assert_eq!(parsed.rest, ["b", "-p"]);
        let parsed = of(&["-fx", "--file", "y", "-"]).expect("legal");
        assert_eq!(parsed.values("file").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!((parsed.value("file"), parsed.rest.as_slice()), (Some("y"), &["-".to_owned()][..]));
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for words in [&["-x"][..], &["--nope"], &["-f"], &["--printkv=1"], &["-px"], &["--limit"]] {
            assert!(of(words).is_err(), "{words:?}");
        }
        assert!(of(&["--limit", "many"]).expect("legal").number::<u32>("limit").is_err());
    }
}
