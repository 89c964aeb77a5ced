//! What goes over the wire: methods, messages, exceptions, filters.

use std::collections::{BTreeMap, BTreeSet};

use prost_types::DescriptorProto;

use super::source::{Function, word_at};
use super::{Item, Listing, Standing, Surface, Tree};

/// The variant of `proto::methods::Method` for a method.
fn variant(service: &str, method: &str) -> String {
    let mut chars = method.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase()).into_iter();
    format!("{}{}", service.strip_suffix("Service").unwrap_or(service), first.chain(chars).collect::<String>())
}

/// What the arm of a method does with a call, as far as its text tells.
fn standing_of_arm(body: &str, functions: &BTreeMap<&str, Function<'_>>) -> Standing {
    let refuses = |text: &str| {
        let text = text.trim().trim_start_matches('{').trim_start().trim_start_matches("return ");
        let text = text.strip_prefix("Some(").unwrap_or(text);
        let text = text.strip_prefix("Err(").or_else(|| text.strip_prefix("Outcome::from(")).unwrap_or(text);
        text.starts_with("Exception::unsupported(") || text.starts_with("unsupported(")
    };
    if refuses(body) || matches!(body, "true" | "false") {
        return Standing::Missing;
    }
    let callee = body.trim_start_matches("Ok(").split('(').next().unwrap_or("").rsplit("::").next().unwrap_or("");
    if functions.get(callee.trim()).is_some_and(|function| refuses(function.body)) {
        return Standing::Missing;
    }
    // Always an error, whatever is asked.
    if body.contains("Err(") && !body.contains("Ok(") && !body.contains("reply(") {
        return Standing::Missing;
    }
    // Nothing that is asked and nothing that the server knows goes into the answer.
    let words: BTreeSet<&str> = body.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let asks = ["call", "self", "master", "switches", "server", "region_server", "own"]
        .iter()
        .any(|word| words.contains(word));
    if asks { Standing::There } else { Standing::Part }
}

/// Methods of every service.
pub fn rpc_methods(tree: &Tree) -> anyhow::Result<Surface> {
    let mut standing: BTreeMap<String, Standing> = BTreeMap::new();
    for krate in ["regionserver", "master", "basalt"] {
        let files: Vec<_> = tree.of_crate(krate).collect();
        let functions = files.iter().flat_map(|file| file.functions()).map(|f| (f.name, f)).collect();
        for arm in files.iter().flat_map(|file| file.arms("Method")) {
            let found = standing_of_arm(arm.body, &functions);
            for name in arm.variants {
                // A method may be named in several matches; one that answers it is enough.
                let entry = standing.entry(name.to_owned()).or_insert(found);
                if found == Standing::There || *entry == Standing::Missing {
                    *entry = found;
                }
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
            _ => standing.get(&variant(service, method)).copied().unwrap_or(Standing::Missing),
        };
        Item::new(row, service, method, found)
    });
    Ok(Surface {
        title: "RPC methods",
        rule: "A method counts when a `match` on `Method` in the servers has an arm for it that does something. An arm that \
               only answers with an error does not count; one that gives everybody the same answer (none, off, empty) is there \
               *in part*. \
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

fn compile(tree: &Tree) -> anyhow::Result<Compiled> {
    let dir = tree.root.join("crates/proto/proto");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&dir)? {
        files.push(entry?.path());
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
        // Messages of the REST gateway and older twins of a message are kept apart by their module.
        let ours = !row.get("note").starts_with("older") && row.get("module") != "hbase-rest";
        let key = if number.is_empty() { message.to_owned() } else { format!("{message}#{number}") };
        let standing = if ours && compiled.fields.contains(&key) { Standing::There } else { Standing::Missing };
        Item::new(row, message.rsplit_once('.').map_or(message, |(_, name)| name), row.get("field_name"), standing)
    });
    Ok(Surface {
        title: "Message fields",
        rule: "A field counts when the `.proto` files have it under its number; `crates/proto/tests/inventory.rs` also holds name, \
               type and label. That a field can be read does not say that it is heeded: that is what the other tables are \
               for. Left out: messages of the REST gateway, and the older form of messages that coprocessor endpoints of old \
               clients used."
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
    let speaks = |name: &str| matches!(name, "rpc" | "regionserver" | "master" | "basalt");
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
    let items = table.rows().filter(|row| row.get("crosses_wire").starts_with("yes")).map(|row| {
        let class = row.get("class");
        let standing = match class_of.get(class) {
            Some(kind) if thrown.contains(kind) => Standing::There,
            Some(_) => Standing::Part,
            None => Standing::Missing,
        };
        let (package, name) = class.rsplit_once('.').unwrap_or(("", class));
        Item::new(row, package, name, standing)
    });
    Ok(Surface {
        title: "Exceptions",
        rule: "Of the classes that cross the wire: there when `rpc::exception::Kind` has the class and a server makes one; *in part* \
               when the class and its retry flag are in the table and nothing makes one yet."
            .into(),
        items: items.collect(),
        listing: Listing::CoreAndCommon,
    })
}

/// Filters and comparators.
pub fn filters(tree: &Tree) -> anyhow::Result<Surface> {
    let decoder = tree.source("crates/rpc/src/from_proto/filters.rs");
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
    use super::super::source::Source;
    use super::*;

    #[test]
    fn an_arm_counts_when_it_answers_what_was_asked() {
        let none = BTreeMap::new();
        let of = |body: &str| standing_of_arm(body, &none);
        assert_eq!(of("get::get(&self.server, call)"), Standing::There);
        assert_eq!(of("{ let request: pb::X = call.decode()?; ready(Ok(answer(request))) }"), Standing::There);
        assert_eq!(of("Err(Exception::unsupported(call.method))"), Standing::Missing);
        assert_eq!(of("{ let r = call.decode()?; ready::<pb::Y>(Err(MasterError::new(kind, r))) }"), Standing::Missing);
        assert_eq!(of("true"), Standing::Missing);
        assert_eq!(of("ready(Ok(pb::NormalizeResponse { normalizer_ran: false }))"), Standing::Part);
        assert_eq!(of("Ok(Outcome::reply(&pb::GetSpaceQuotaSnapshotsResponse::default()))"), Standing::Part);
        assert_eq!(variant("MasterService", "getProcedureResult"), "MasterGetProcedureResult");
    }

    #[test]
    fn an_arm_that_calls_a_refusal_is_one() {
        let source = Source::new(
            "crates/x/src/y.rs",
            "fn no(call: &Call) -> Answer { Err(Exception::unsupported(call.method)) }",
        );
        let functions = source.functions().into_iter().map(|f| (f.name, f)).collect();
        assert_eq!(standing_of_arm("no(&call)", &functions), Standing::Missing);
    }
}
