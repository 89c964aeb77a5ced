//! XML as JAXB writes it: the declaration, attributes in a given order, no white space between elements.

use crate::text::push_base64;
use std::fmt::Display;

/// What stands before the first element.
pub const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>";

/// Writes one document.
pub struct Writer {
    out: String,
    /// The start tag's `>` is still to come.
    open: bool,
}

impl Writer {
    /// A document that has its declaration.
    pub fn new() -> Writer {
        Writer { out: DECLARATION.to_owned(), open: false }
    }

    /// A part of a document, of about so many bytes.
    pub fn fragment(bytes: usize) -> Writer {
        Writer { out: String::with_capacity(bytes), open: false }
    }

    fn end_start_tag(&mut self) {
        if std::mem::take(&mut self.open) {
            self.out.push('>');
        }
    }

    /// An element with what `content` writes into it.
    pub fn element(&mut self, name: &str, content: impl FnOnce(&mut Writer)) {
        self.end_start_tag();
        self.out.push('<');
        self.out.push_str(name);
        self.open = true;
        content(self);
        if std::mem::take(&mut self.open) {
            self.out.push_str("/>");
        } else {
            self.out.push_str("</");
            self.out.push_str(name);
            self.out.push('>');
        }
    }

    /// What is XML already.
    pub fn raw(&mut self, xml: &str) {
        self.end_start_tag();
        self.out.push_str(xml);
    }

    /// An attribute of the element that was just begun.
    pub fn attribute(&mut self, name: &str, value: impl Display) {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        self.escape(&value.to_string(), true);
        self.out.push('"');
    }

    /// An attribute whose value is bytes in base64, which needs no escapes.
    pub fn base64_attribute(&mut self, name: &str, value: &[u8]) {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        push_base64(&mut self.out, value);
        self.out.push('"');
    }

    /// Bytes in base64 as text inside an element. No bytes at all end the start tag, too.
    pub fn base64(&mut self, bytes: &[u8]) {
        self.end_start_tag();
        push_base64(&mut self.out, bytes);
    }

    /// Text inside an element.
    pub fn text(&mut self, text: &str) {
        self.end_start_tag();
        self.escape(text, false);
    }

    fn escape(&mut self, text: &str, in_attribute: bool) {
        for c in text.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' if in_attribute => self.out.push_str("&quot;"),
                '\r' => self.out.push_str("&#13;"),
                '\n' if in_attribute => self.out.push_str("&#10;"),
                '\t' if in_attribute => self.out.push_str("&#9;"),
                // XML 1.0 has no place for other control characters.
                c if c < ' ' && !matches!(c, '\n' | '\t') => self.out.push('\u{fffd}'),
                c => self.out.push(c),
            }
        }
    }

    /// What was written.
    pub fn finish(self) -> String {
        self.out
    }
}

/// Most nodes of a document that is read.
const MAX_NODES: u32 = 4 << 20;

/// Reads a document whose root is `root`. Document type declarations are refused, so there are no entities to expand.
pub fn read<T>(
    body: &[u8],
    root: &str,
    take: impl FnOnce(roxmltree::Node<'_, '_>) -> Result<T, String>,
) -> Result<T, String> {
    let text = std::str::from_utf8(body).map_err(|error| format!("the XML is not UTF-8: {error}"))?;
    let options = roxmltree::ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(text, options).map_err(|error| format!("XML: {error}"))?;
    let element = document.root_element();
    if element.tag_name().name() != root {
        return Err(format!("XML: the root is {:?}, not {root:?}", element.tag_name().name()));
    }
    take(element)
}

/// The text of an element, all of it.
pub fn text_of(node: roxmltree::Node<'_, '_>) -> String {
    node.children().filter(roxmltree::Node::is_text).filter_map(|child| child.text()).collect()
}

/// An attribute that is a number.
pub fn number<T: std::str::FromStr>(node: roxmltree::Node<'_, '_>, name: &str) -> Result<Option<T>, String> {
    let Some(text) = node.attribute(name) else { return Ok(None) };
    text.trim().parse().map(Some).map_err(|_| format!("XML: {name}={text:?} is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_written_as_jaxb_writes_them() {
        let mut xml = Writer::new();
        xml.element("A", |xml| {
            xml.attribute("x", "1<\"&\n");
            xml.element("B", |_| ());
            xml.element("C", |xml| xml.text("a>b\r"));
        });
        let expected = "<A x=\"1&lt;&quot;&amp;&#10;\"><B/><C>a&gt;b&#13;</C></A>";
        assert_eq!(xml.finish(), format!("{DECLARATION}{expected}"));
    }

    #[test]
    fn a_document_with_entities_is_refused() {
        let bomb = b"<!DOCTYPE a [<!ENTITY b \"bb\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>";
        assert!(read(bomb, "a", |_| Ok(())).is_err());
        assert!(read(b"<a/>", "b", |_| Ok(())).is_err());
        assert!(read(b"<a>\xff</a>", "a", |_| Ok(())).is_err());
        assert_eq!(read(b"<a>x<![CDATA[y]]></a>", "a", |node| Ok(text_of(node))).as_deref(), Ok("xy"));
    }
}
