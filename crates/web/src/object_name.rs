//! Names of beans, and the patterns that `/jmx?qry=` selects them by. Follows: `javax.management.ObjectName`.

/// `domain:key=value,...`, where domain and values may hold `*` and `?`, and a lone `*` stands for any further keys.
#[derive(Debug, PartialEq, Eq)]
pub struct Pattern<'a> {
    domain: &'a str,
    properties: Vec<(&'a str, &'a str)>,
    open: bool,
}

impl<'a> Pattern<'a> {
    /// Reads a pattern; `None` when it is not one.
    pub fn parse(text: &'a str) -> Option<Pattern<'a>> {
        let (domain, list) = text.split_once(':')?;
        let mut pattern = Pattern { domain, properties: Vec::new(), open: false };
        for part in list.split(',') {
            match part.split_once('=') {
                None if part == "*" && !pattern.open => pattern.open = true,
                Some((key, value)) if !key.is_empty() && pattern.properties.iter().all(|(k, _)| *k != key) => {
                    pattern.properties.push((key, value));
                }
                _ => return None,
            }
        }
        Some(pattern)
    }

    /// Whether a bean's name is selected.
    pub fn selects(&self, name: &str) -> bool {
        let Some(name) = Pattern::parse(name) else { return false };
        matches(self.domain, name.domain)
            && (self.open || self.properties.len() == name.properties.len())
            && self.properties.iter().all(|(key, value)| {
                name.properties.iter().any(|(its_key, its_value)| its_key == key && matches(value, its_value))
            })
    }
}

/// Whether `text` is of the form of `pattern`, with `*` for any run and `?` for one character. Time: their product.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(b) if *b == b'?' || *b == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut retry {
                // the last star takes one character more
                Some((after_star, taken)) => {
                    *taken += 1;
                    (p, t) = (*after_star, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection() {
        let name = "Hadoop:service=HBase,name=RegionServer,sub=Server";
        let selects = [
            "*:*",
            "Hadoop:*",
            name,
            "Hadoop:sub=Server,name=RegionServer,service=HBase",
            "Hadoop:service=HBase,name=Region*,sub=Server",
            "Hadoop:service=HBase,name=RegionServer,sub=*",
            "H*p:*,sub=S?rv*r",
        ];
        for pattern in selects {
            assert!(Pattern::parse(pattern).expect(pattern).selects(name), "{pattern}");
        }
        let not = [
            "Hadoop:service=HBase",
            "Hadoop:service=HBase,name=RegionServer",
            "java.lang:*",
            "*:*,sub=WAL",
            "*:sub=*e",
        ];
        for pattern in not {
            assert!(!Pattern::parse(pattern).expect(pattern).selects(name), "{pattern}");
        }
        for bad in ["", "bad", "a:b", "a:", "a:=b", "a:b=c,b=d", "a:*,*"] {
            assert_eq!(Pattern::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn stars_are_cheap() {
        assert!(!matches(&"*a".repeat(200), &"a".repeat(199)));
        assert!(matches(&"*a".repeat(200), &"a".repeat(200)));
    }
}
