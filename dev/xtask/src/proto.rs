//! `cargo xtask proto`: makes `crates/proto/src/gen/` and `crates/rpc/src/gen/` from `crates/proto/proto/*.proto`.
//!
//! The generated code is checked in, so that building Basalt needs neither a protobuf compiler nor a build script.
//! Three files come out: the messages as prost writes them, a table of every method of every service, and a trait for each
//! service that has connections of its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, bail};
use prost_build::Config;

/// Services that a `ConnectionHeader` may name: a server implements their traits. The others are coprocessor endpoints, which a region answers.
const DIRECT: &[&str] = &[
    "AdminService",
    "BootstrapNodeService",
    "ClientMetaService",
    "ClientService",
    "ConnectionRegistryService",
    "HbckService",
    "LockService",
    "MasterService",
    "RegionServerStatusService",
];

/// Methods whose implementation takes the call still encoded. They carry the rows: a small request is decoded where it
/// came in, a large one on the lane of writes, and the choice is the implementation's.
const ENCODED: &[(&str, &str)] =
    &[("ClientService", "Get"), ("ClientService", "Multi"), ("ClientService", "Mutate"), ("ClientService", "Scan")];

/// The methods of each service by name, each with the names of its two messages.
type Services = BTreeMap<String, BTreeMap<String, (String, String)>>;

/// Packages that messages are generated of: HBase's, and its REST gateway's.
const PACKAGES: &[&str] = &["hbase.pb", "hbase.rest"];

/// Writes the generated files, or with `check` only says (as an error) which of them are stale.
pub fn generate(check: bool) -> anyhow::Result<()> {
    let crate_dir = crate::run::root().join("crates/proto");
    let proto_dir = crate_dir.join("proto");
    let gen_dir = crate_dir.join("src/gen");
    let service_dir = crate::run::root().join("crates/rpc/src/gen");

    let mut sources = self::sources(&proto_dir)?;
    sources.extend(self::sources(&proto_dir.join("rest"))?);
    let descriptors = protox::compile(&sources, [&proto_dir])?;

    let services = services(&descriptors);
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    files.insert(gen_dir.join("methods.rs"), methods(&services)?);
    files.insert(service_dir.join("services.rs"), traits(&services)?);
    let mut config = Config::new();
    config.bytes(["."]).btree_map(["."]);
    config.extern_path(".google.protobuf.Any", "crate::Any");
    let modules = descriptors
        .file
        .into_iter()
        .filter(|f| PACKAGES.contains(&f.package()))
        .map(|f| (prost_build::Module::from_protobuf_package_name(f.package()), f))
        .collect::<Vec<_>>();
    for (module, text) in config.generate(modules)? {
        files.insert(gen_dir.join(module.to_file_name_or("hbase.pb")), text);
    }

    std::fs::create_dir_all(&gen_dir)?;
    std::fs::create_dir_all(&service_dir)?;
    let mut stale = Vec::new();
    for (path, text) in &files {
        if std::fs::read_to_string(path).ok().as_ref() == Some(text) {
            continue;
        }
        if check {
            stale.push(path.display().to_string());
        } else {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    if !stale.is_empty() {
        bail!("generated code is stale, run `cargo xtask proto`: {}", stale.join(", "));
    }
    Ok(())
}

fn sources(directory: &std::path::Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "proto") {
            sources.push(path);
        }
    }
    sources.sort();
    Ok(sources)
}

fn services(descriptors: &prost_types::FileDescriptorSet) -> Services {
    let mut services = Services::new();
    for service in descriptors.file.iter().filter(|f| f.package() == "hbase.pb").flat_map(|f| &f.service) {
        let methods = services.entry(service.name().to_string()).or_default();
        for method in &service.method {
            let short = |t: &str| t.trim_start_matches(".hbase.pb.").to_string();
            methods.insert(method.name().to_string(), (short(method.input_type()), short(method.output_type())));
        }
    }
    services
}

fn variant(service: &str) -> &str {
    service.strip_suffix("Service").unwrap_or(service)
}

/// The variant of `Method` for a method.
pub fn method_variant(service: &str, method: &str) -> String {
    let mut chars = method.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase()).into_iter();
    format!("{}{}", variant(service), first.chain(chars).collect::<String>())
}

/// The name of a method in its trait: `RollWALWriter` is `roll_wal_writer`.
pub fn method_name(method: &str) -> String {
    let chars: Vec<char> = method.replace("HFile", "Hfile").chars().collect();
    let mut name = String::new();
    for (i, c) in chars.iter().enumerate() {
        let after_lower = i > 0 && chars[i - 1].is_lowercase();
        let before_lower = i > 0 && chars.get(i + 1).is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (after_lower || before_lower) {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// The Rust name that prost gives a message.
fn message_type(message: &str) -> String {
    let chars: Vec<char> = message.chars().collect();
    let mut name = String::new();
    for (i, c) in chars.iter().enumerate() {
        // Inside a run of capitals only the first of each word stays one.
        let starts_word = i == 0 || chars[i - 1].is_lowercase() || chars[i - 1].is_numeric();
        let before_lower = chars.get(i + 1).is_some_and(|next| next.is_lowercase());
        name.push(if starts_word || before_lower { *c } else { c.to_ascii_lowercase() });
    }
    name
}

/// A trait for each direct service, with a dispatcher.
fn traits(services: &Services) -> anyhow::Result<String> {
    let mut o = String::from("// This file is @generated by `cargo xtask proto`.\n");
    for service in DIRECT {
        let methods = services.get(*service).with_context(|| format!("no service {service} in the .proto files"))?;
        write!(
            o,
            "\n/// The RPCs of `{service}`. One that is not implemented is answered as unsupported.\n\
             #[allow(unused_variables)]\npub trait {service} {{\n"
        )?;
        let mut arms = String::new();
        for (method, (request, response)) in methods {
            let (name, variant) = (method_name(method), method_variant(service, method));
            let (request, response) = (message_type(request), message_type(response));
            writeln!(o, "    /// `{method}`.")?;
            if ENCODED.contains(&(service, method)) {
                writeln!(o, "    /// Takes the request (`{request}`) still encoded.")?;
                writeln!(o, "    fn {name}(&self, call: Call) -> Result<Outcome, Exception> {{")?;
                writeln!(arms, "            Method::{variant} => encoded(self.{name}(call)),")?;
            } else {
                writeln!(o, "    fn {name}(&self, call: &Call, request: pb::{request}) -> Answer<pb::{response}> {{")?;
                writeln!(
                    arms,
                    "            Method::{variant} => typed(call.decode().and_then(|request| self.{name}(&call, request))),"
                )?;
            }
            writeln!(o, "        Err(Exception::unsupported(call.method))\n    }}\n")?;
        }
        write!(
            o,
            "    /// Decodes the request, calls the method that it is for, encodes the answer.\n    \
             fn dispatch(&self, call: Call) -> Outcome {{\n        match call.method.method {{\n{arms}            \
             _ => Exception::unsupported(call.method).into(),\n        }}\n    }}\n}}\n"
        )?;
    }
    Ok(o)
}

/// The table of methods: an enum of services, an enum of methods, and a sorted slice that describes each.
fn methods(rows: &Services) -> anyhow::Result<String> {
    let mut o = String::from("// This file is @generated by `cargo xtask proto`.\n");
    o.push_str("/// A protobuf service.\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n");
    o.push_str("pub enum Service {\n");
    for service in rows.keys() {
        writeln!(o, "    /// `{service}`.\n    {},", variant(service))?;
    }
    o.push_str("}\n\nimpl Service {\n    /// Every service, by name.\n    pub const ALL: &'static [Self] = &[\n");
    for service in rows.keys() {
        writeln!(o, "        Self::{},", variant(service))?;
    }
    o.push_str("    ];\n\n    /// Its name in the `ConnectionHeader`.\n    pub const fn name(self) -> &'static str {\n        match self {\n");
    for service in rows.keys() {
        writeln!(o, "            Self::{} => \"{service}\",", variant(service))?;
    }
    o.push_str("        }\n    }\n\n    /// Its methods, by name in byte order.\n    pub fn methods(self) -> &'static [MethodInfo] {\n        match self {\n");
    let mut at = 0;
    for (service, of_service) in rows {
        writeln!(o, "            Self::{} => &METHODS[{at}..{}],", variant(service), at + of_service.len())?;
        at += of_service.len();
    }
    o.push_str("        }\n    }\n}\n\n/// A method of a service.\n");
    o.push_str("#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\npub enum Method {\n");
    for (service, of_service) in rows {
        for method in of_service.keys() {
            writeln!(o, "    /// `{service}.{method}`.\n    {},", method_variant(service, method))?;
        }
    }
    writeln!(
        o,
        "}}\n\n/// Every method: by service, then by name in byte order.\npub static METHODS: &[MethodInfo] = &["
    )?;
    for (service, of_service) in rows {
        for (method, (request, response)) in of_service {
            writeln!(
                o,
                "    MethodInfo {{ service: Service::{}, method: Method::{}, name: \"{method}\", request: \"{request}\", response: \"{response}\" }},",
                variant(service),
                method_variant(service, method),
            )?;
        }
    }
    o.push_str("];\n");
    Ok(o)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_rust_and_prost() {
        assert_eq!(method_name("getProcedureResult"), "get_procedure_result");
        assert_eq!(method_name("RollWALWriter"), "roll_wal_writer");
        assert_eq!(method_name("BulkLoadHFile"), "bulk_load_hfile");
        assert_eq!(method_variant("MasterService", "getProcedureResult"), "MasterGetProcedureResult");
        assert_eq!(message_type("RollWALWriterRequest"), "RollWalWriterRequest");
        assert_eq!(message_type("BulkLoadHFileRequest"), "BulkLoadHFileRequest");
    }
}
