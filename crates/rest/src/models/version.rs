//! Versions of the gateway. Follows: `VersionModel`.

use super::Model;
use crate::xml::Writer;
use proto::{Message, rest};
use serde_json::json;

/// Version of HBase's REST interface.
const REST_VERSION: &str = "0.0.3";

/// What answers, and on what it runs. Two fields are Java's; they say what takes its place.
pub struct Version {
    jvm: String,
    os: String,
    server: String,
    jersey: String,
    version: String,
    revision: String,
}

impl Version {
    /// Of this process.
    pub fn own() -> Version {
        let own = env!("CARGO_PKG_VERSION");
        Version {
            jvm: format!("none: Basalt {own} is native"),
            os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            server: format!("Basalt/{own}"),
            jersey: String::new(),
            version: own.to_owned(),
            revision: "Unknown".to_owned(),
        }
    }
}

impl Model for Version {
    fn text(&self) -> String {
        let Version { jvm, os, server, jersey, version, revision } = self;
        format!(
            "rest {REST_VERSION} [JVM: {jvm}] [OS: {os}] [Server: {server}] [Jersey: {jersey}] [Version: {version}] \
             [Revision: {revision}]\n"
        )
    }

    fn xml(&self, xml: &mut Writer) {
        xml.element("Version", |xml| {
            xml.attribute("JVM", &self.jvm);
            xml.attribute("Jersey", &self.jersey);
            xml.attribute("OS", &self.os);
            xml.attribute("REST", REST_VERSION);
            xml.attribute("Revision", &self.revision);
            xml.attribute("Server", &self.server);
            xml.attribute("Version", &self.version);
        });
    }

    fn json(&self) -> String {
        json!({
            "REST": REST_VERSION, "JVM": self.jvm, "OS": self.os, "Server": self.server, "Jersey": self.jersey,
            "Version": self.version, "Revision": self.revision,
        })
        .to_string()
    }

    fn protobuf(&self) -> Vec<u8> {
        let message = rest::Version {
            rest_version: Some(REST_VERSION.to_owned()),
            jvm_version: Some(self.jvm.clone()),
            os_version: Some(self.os.clone()),
            server_version: Some(self.server.clone()),
            jersey_version: Some(self.jersey.clone()),
            version: Some(self.version.clone()),
            revision: Some(self.revision.clone()),
        };
        message.encode_to_vec()
    }
}
