//! `/conf`: settings in force, as XML or JSON. Follows: `ConfServlet`, Hadoop's `Configuration` and `ConfigRedactor`.

use crate::jmx;
use crate::markup::Markup;
use crate::status::Property;

/// Shown instead of a secret.
const REDACTED: &str = "<redacted>";

/// Whether a key's value is kept from view. Follows: `hadoop.security.sensitive-config-keys`.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let ends = ["secret", "password", "passwd", ".pass", "credential", "secret.key", "secretkey", "access.key"];
    ends.iter().any(|end| key.ends_with(end)) || key.contains("oauth") && key.ends_with("token")
}

/// The value, if it is no secret.
pub fn shown(property: &Property) -> &str {
    if is_secret(&property.key) { REDACTED } else { &property.value }
}

/// Arguments of a process, the secrets among them hidden: `-D key=value`, `-Dkey=value`, `--key=value`, and what follows a lone `--key`.
pub fn shown_arguments(arguments: &[String]) -> Vec<String> {
    let mut hide_next = false;
    let one = |argument: &String| {
        let hide = std::mem::take(&mut hide_next);
        let is_option = argument.starts_with('-');
        let words = argument.trim_start_matches('-');
        match argument.split_once('=') {
            Some((before, _)) if is_secret(words.split('=').next().unwrap_or_default()) => {
                format!("{before}={REDACTED}")
            }
            None if hide && !is_option => REDACTED.to_owned(),
            None => {
                hide_next = is_option && is_secret(words);
                argument.clone()
            }
            Some(_) => argument.clone(),
        }
    };
    arguments.iter().map(one).collect()
}

/// As an `hbase-site.xml` with sources.
pub fn xml(properties: &[Property]) -> String {
    let mut out = Markup::with_capacity(properties.len() * 160 + 128);
    out.raw("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?><configuration>\n");
    for property in properties {
        out.raw("<property><name>").text(&property.key).raw("</name><value>").text(shown(property));
        out.raw("</value><final>false</final><source>").text(property.source).raw("</source></property>\n");
    }
    out.raw("</configuration>\n");
    out.finish()
}

/// As Hadoop dumps it.
pub fn json(properties: &[Property]) -> String {
    let mut out = String::from("{\"properties\":[");
    for (i, property) in properties.iter().enumerate() {
        out.push_str(if i == 0 { "{\"key\":" } else { ",{\"key\":" });
        jmx::string(&mut out, &property.key);
        out.push_str(",\"value\":");
        jmx::string(&mut out, shown(property));
        out.push_str(",\"isFinal\":false,\"resource\":");
        jmx::string(&mut out, property.source);
        out.push('}');
    }
    out.push_str("]}");
    out
}

#[cfg(test)]
mod tests {
    use super::{is_secret, shown_arguments};

    #[test]
    fn secrets_are_told_from_settings() {
        for key in ["ssl.server.keystore.password", "fs.s3a.secret.key", "hbase.rest.ssl.keystore.Password"] {
            assert!(is_secret(key), "{key}");
        }
        for key in ["hbase.rootdir", "hbase.auth.key.update.interval", "hbase.client.password.file.mode"] {
            assert!(!is_secret(key), "{key}");
        }
    }

    #[test]
    fn secrets_are_hidden_among_arguments() {
        let shown = |arguments: &str| {
            let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
            shown_arguments(&arguments).join(" ")
        };
        for plain in ["standalone -D hbase.rootdir=/data --config /etc/basalt", "-Dx.y=a=b", "--keep password"] {
            assert_eq!(shown(plain), plain);
        }
        for (told, is_shown) in [
            ("-D a.password=x=y b", "-D a.password=<redacted> b"),
            ("-Dssl.server.keystore.password=x", "-Dssl.server.keystore.password=<redacted>"),
            ("--password x y", "--password <redacted> y"),
            ("--password --other x", "--password --other x"),
        ] {
            assert_eq!(shown(told), is_shown);
        }
    }
}
