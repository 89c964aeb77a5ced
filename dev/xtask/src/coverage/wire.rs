//! What goes over the wire: methods, messages, exceptions, filters.

use std::collections::{BTreeMap, BTreeSet};

use prost_types::DescriptorProto;

use super::source::{Function, Source, word_at};
use anyhow::bail;

use super::lists::Reasons;
use super::{Item, Listing, Standing, Surface, Tree};
use crate::proto::{method_name, method_variant};

/// What a function that answers an RPC does with a call, as far as its text tells.
fn standing_of(function: &Function<'_>) -> Standing {
    let answers = ["Ok(", "later(", "blocking("].iter().any(|word| function.body.contains(word));
    if !answers && function.body.contains("Err(") {
        // Always an error, whatever is asked.
        return Standing::Missing;
    }
    // An unused parameter is named `_`, or the compiler complains. Nothing that is asked and nothing that the server knows
    // goes into such an answer.
    let uses = function.signature.split("->").next().unwrap_or("").matches(": ").count();
    let ignores = function.signature.matches("_: ").count();
    if uses == ignores { Standing::Part } else { Standing::There }
}

/// The RPCs that an `impl` block of a service's trait answers: written out as functions, or as a line
/// `method(Request) -> Response = module::function;` of `answered_by!`.
fn answered<'a>(block: &'a str, file: &Source, files: &[&'a Source]) -> BTreeMap<&'a str, Standing> {
    let mut found = BTreeMap::new();
    for (at, _) in block.match_indices("fn ") {
        found.insert(word_at(block, at + 3), Standing::There);
    }
    for line in block.split(';') {
        let Some((declared, function)) = line.rsplit_once(" = ") else { continue };
        let declared = declared.rsplit_once("answered_by! {").map_or(declared, |(_, declared)| declared).trim();
        let (module, function) = function.rsplit_once("::").map_or((None, function), |(m, f)| (Some(m), f));
        let is_there = |candidate: &&&Source| match module {
            None => candidate.path == file.path,
            Some(module) => {
                let ends = |suffix: &str| candidate.path.ends_with(&format!("/{module}{suffix}"));
                ends(".rs") || ends("/mod.rs")
            }
        };
        let functions = files.iter().filter(is_there).flat_map(|candidate| candidate.functions());
        let standing = functions.filter(|f| f.name == function).map(|f| standing_of(&f)).next();
        found.insert(word_at(declared, 0), standing.unwrap_or(Standing::Missing));
    }
    found
}

/// Methods of every service.
pub fn rpc_methods(tree: &Tree) -> anyhow::Result<Surface> {
    let mut direct: BTreeMap<(&str, &str), Standing> = BTreeMap::new();
    let mut endpoints: BTreeSet<&str> = BTreeSet::new();
    for krate in ["regionserver", "master", "leader"] {
        let files: Vec<&Source> = tree.of_crate(krate).collect();
        for file in &files {
            for (service, block) in file.impls("Service") {
                let found = answered(block, file, &files);
                direct.extend(found.into_iter().map(|(method, standing)| ((service, method), standing)));
            }
            // The master's one endpoint, and those of regions.
            if file.path.contains("/endpoints/") || file.path.ends_with("master/src/service/groups.rs") {
                endpoints.extend(file.matched("Method"));
            }
        }
    }
    let handshake = tree.source("crates/rpc/src/server/handshake.rs");
    let preamble = handshake.is_some_and(|file| file.text.contains("b\"Regist\""));
    let table = tree.table("rpc_methods")?;
    let items = table.rows().map(|row| {
        let (service, method) = (row.get("service"), row.get("method"));
        let found = match row.get("transport") {
            "connection preamble" if preamble => Standing::There,
            _ if endpoints.contains(method_variant(service, method).as_str()) => Standing::There,
            _ => direct.get(&(service, method_name(method).as_str())).copied().unwrap_or(Standing::Missing),
        };
        Item::new(row, service, method, found)
    });
    Ok(Surface {
        title: "RPC methods",
        rule: "A method counts when a server's implementation of its service's trait has it, or a region or the master answers it as an endpoint. \
               One that only answers with an error does not count; one that gives everybody the same answer (none, off, \
               empty) is there *in part*. \
               Every other method of a served service is answered with a `DoNotRetryIOException` that names it."
            .into(),
        items: items.collect(),
        listing: Listing::CoreAndCommon,
    })
}

struct Compiled {
    /// `hbase.pb.Message#number`, and `hbase.pb.Message` of messages.
    fields: BTreeSet<String>,
    /// `hbase.pb.Enum#VALUE#number`.
    values: BTreeSet<String>,
}

/// Where HBase has the messages of its REST gateway; here they are the package `hbase.rest`.
const REST_MESSAGES: &str = "org.apache.hadoop.hbase.rest.protobuf.generated.";

fn compile(tree: &Tree) -> anyhow::Result<Compiled> {
    let dir = tree.root.join("crates/proto/proto");
    let mut files = Vec::new();
    for folder in [dir.clone(), dir.join("rest")] {
        for entry in std::fs::read_dir(&folder)? {
            files.push(entry?.path());
        }
    }
    files.retain(|path| path.extension().is_some_and(|e| e == "proto"));
    files.sort();
    let set = protox::compile(&files, [&dir])?;
    let mut compiled = Compiled { fields: BTreeSet::new(), values: BTreeSet::new() };
    for file in &set.file {
        file.message_type.iter().for_each(|message| add_message(file.package(), message, &mut compiled));
        file.enum_type.iter().for_each(|e| add_enum(file.package(), e, &mut compiled));
    }
    Ok(compiled)
}

fn add_message(scope: &str, message: &DescriptorProto, out: &mut Compiled) {
    let name = format!("{scope}.{}", message.name());
    message.field.iter().for_each(|field| {
        out.fields.insert(format!("{name}#{}", field.number()));
    });
    message.nested_type.iter().for_each(|nested| add_message(&name, nested, out));
    message.enum_type.iter().for_each(|e| add_enum(&name, e, out));
    out.fields.insert(name);
}

fn add_enum(scope: &str, message: &prost_types::EnumDescriptorProto, out: &mut Compiled) {
    for value in &message.value {
        out.values.insert(format!("{scope}.{}#{}#{}", message.name(), value.name(), value.number()));
    }
}

/// Messages and their fields.
pub fn messages(tree: &Tree) -> anyhow::Result<Surface> {
    let compiled = compile(tree)?;
    let table = tree.table("protobuf_messages")?;
    let items = table.rows().map(|row| {
        let (message, number) = (row.get("message"), row.get("field_number"));
        // Older twins of a message are kept apart by their note.
        let ours = !row.get("note").starts_with("older");
        let message = message.replacen(REST_MESSAGES, "hbase.rest.", 1);
        let key = if number.is_empty() { message.clone() } else { format!("{message}#{number}") };
        let standing = if ours && compiled.fields.contains(&key) { Standing::There } else { Standing::Missing };
        Item::new(row, message.rsplit_once('.').map_or(&*message, |(_, name)| name), row.get("field_name"), standing)
    });
    Ok(Surface {
        title: "Message fields",
        rule: "A field counts when the `.proto` files have it under its number; `crates/proto/tests/inventory.rs` also holds name, \
               type and label. That a field can be read does not say that it is heeded: that is what the other tables are \
               for. Left out: the older form of messages that coprocessor endpoints of old clients used."
            .into(),
        items: items.collect(),
        listing: Listing::None,
    })
}

/// Values of enums.
pub fn enums(tree: &Tree) -> anyhow::Result<Surface> {
    let compiled = compile(tree)?;
    let table = tree.table("protobuf_enums")?;
    let items = table.rows().map(|row| {
        let (name, value) = (row.get("enum"), row.get("value_name"));
        let ours = !row.get("note").starts_with("older");
        let key = format!("{name}#{value}#{}", row.get("number"));
        let standing = if ours && compiled.values.contains(&key) { Standing::There } else { Standing::Missing };
        Item::new(row, name, value, standing)
    });
    Ok(Surface { title: "Enum values", rule: "As for fields.".into(), items: items.collect(), listing: Listing::None })
}

/// Classes that clients know and HBase's servers never send.
const NEVER_SENT: &str = "tests/inventory/covered/exceptions_never_sent.txt";

/// Exception classes that cross the wire.
pub fn exceptions(tree: &Tree) -> anyhow::Result<Surface> {
    let (mut class_of, mut thrown) = (BTreeMap::new(), BTreeSet::new());
    let mut constructors: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in tree.of_crate("rpc").filter(|s| s.path.ends_with("/exception/kind.rs")) {
        for line in source.text.lines() {
            if let Some((kind, rest)) = line.trim().split_once(" = \"")
                && let Some((class, _)) = rest.split_once('"')
            {
                class_of.insert(class, kind);
            }
        }
    }
    let table_file = |path: &str| path.starts_with("crates/rpc/src/exception/");
    for source in tree.of_crate("rpc").filter(|s| table_file(&s.path)) {
        for function in source.functions() {
            let kinds =
                function.body.match_indices("Kind::").map(|(at, found)| word_at(function.body, at + found.len()));
            constructors.entry(function.name).or_default().extend(kinds);
        }
    }
    // Constructors that are made of others.
    constructors.entry("unsupported").or_default().insert("DoNotRetry");
    // hfile and region have kinds of errors of their own; only these crates speak of exceptions.
    let speaks = |name: &str| matches!(name, "rpc" | "regionserver" | "master" | "leader" | "assembly" | "basalt");
    for source in tree.sources.iter().filter(|s| speaks(s.crate_name()) && !table_file(&s.path)) {
        let not_ours = |at: usize| source.text[..at].ends_with("Error") || source.text[..at].ends_with("Cell");
        for (at, found) in source.text.match_indices("Kind::") {
            if !not_ours(at) {
                thrown.insert(word_at(&source.text, at + found.len()));
            }
        }
        for (name, of) in &constructors {
            if source.text.contains(&format!("Exception::{name}(")) {
                thrown.extend(of);
            }
        }
    }
    let table = tree.table("exceptions")?;
    let mut never_sent = Reasons::read(tree, NEVER_SENT)?;
    let mut items = Vec::new();
    for row in table.rows().filter(|row| row.get("crosses_wire").starts_with("yes")) {
        let class = row.get("class");
        let is_made = class_of.get(class).is_some_and(|kind| thrown.contains(kind));
        if never_sent.take(class) {
            if is_made {
                bail!("{NEVER_SENT}: a server here makes a {class}: take the line out");
            }
            continue;
        }
        let standing = match class_of.get(class) {
            _ if is_made => Standing::There,
            Some(_) => Standing::Part,
            None => Standing::Missing,
        };
        let (package, name) = class.rsplit_once('.').unwrap_or(("", class));
        items.push(Item::new(row, package, name, standing));
    }
    never_sent.finish()?;
    Ok(Surface {
        title: "Exceptions",
        rule: format!(
            "Of the classes that cross the wire: there when `rpc::exception::Kind` has the class and a server makes one; *in part* \
             when the class and its retry flag are in the table and nothing makes one yet. Not counted: classes that clients know and \
             HBase's servers never send, which `{NEVER_SENT}` lists with where that is seen."
        ),
        items,
        listing: Listing::CoreAndCommon,
    })
}

/// Filters and comparators.
pub fn filters(tree: &Tree) -> anyhow::Result<Surface> {
    let decoder = tree.source("crates/convert/src/from_proto/filters.rs");
    let decoded: BTreeSet<&str> = decoder.map(|file| file.literals().into_iter().collect()).unwrap_or_default();
    let parses = tree.of_crate("filter").any(|s| s.path.contains("/parse") && s.text.contains("pub fn parse"));
    let table = tree.table("filters")?;
    let on_the_wire = |kind: &str| matches!(kind, "filter" | "comparator" | "list" | "wrapper");
    let counted = |row: &super::Row<'_>| {
        (on_the_wire(row.get("kind")) && row.get("class") != "ByteArrayComparable")
            || matches!(row.get("class"), "FilterWrapper" | "ParseFilter")
    };
    let items = table.rows().filter(counted).map(|row| {
        let class = row.get("class");
        let there = if class == "ParseFilter" { parses } else { decoded.contains(class) };
        Item::new(row, row.get("kind"), class, if there { Standing::There } else { Standing::Missing })
    });
    Ok(Surface {
        title: "Filters and comparators",
        rule: "There when the decoder of wire filters has the class; `crates/filter/tests/verdicts` holds what they do against \
               scans of the real HBase. `ParseFilter` is the language of filter strings. Abstract and internal classes of Java \
               are not counted. A filter class of the user's own cannot run here."
            .into(),
        items: items.collect(),
        listing: Listing::CoreAndCommon,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_counts_when_its_function_answers_what_was_asked() {
        let file = Source::new(
            "crates/x/src/service/methods.rs",
            "
impl XService for Handler {
    fn get(&self, call: Call) -> Answer { get::get(call) }
    rpc::answered_by! {
        balance(BalanceRequest) -> BalanceResponse = regions::balance;
        normalize(NormalizeRequest)
            -> NormalizeResponse = regions::normalize;
        exec(ExecRequest) -> ExecResponse = refuse;
    }
}
fn refuse(_: &Handler, _: &Call, r: pb::ExecRequest) -> Answer<pb::ExecResponse> { Err(no(r)) }",
        );
        let regions = Source::new(
            "crates/x/src/service/regions.rs",
            "fn balance(H { server }: &H, _: &Call, _: pb::Q) -> Answer<pb::R> { Ok(server.balance()) }
             fn normalize(_: &H, _: &Call, _: pb::Q) -> Answer<pb::R> { Ok(pb::R::default().into()) }",
        );
        let impls = file.impls("Service");
        assert_eq!(impls[0].0, "XService");
        let found = answered(impls[0].1, &file, &[&file, &regions]);
        let expected = [
            ("balance", Standing::There),
            ("exec", Standing::Missing),
            ("get", Standing::There),
            ("normalize", Standing::Part),
        ];
        assert_eq!(found, BTreeMap::from(expected));
    }
}
