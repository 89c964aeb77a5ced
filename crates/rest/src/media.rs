//! Media types, and which of them a client wants. Follows: `Constants`, Jersey's choice between methods.

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// For people.
    Text,
    /// JAXB's XML.
    Xml,
    /// Jackson's JSON.
    Json,
    /// Protobuf under its old name.
    Protobuf,
    /// Protobuf under its newer name.
    ProtobufIetf,
    /// One value as it is.
    Binary,
}

/// What a model can be read and written as.
pub const MODELS: &[Media] = &[Media::Xml, Media::Json, Media::Protobuf, Media::ProtobufIetf];
/// The same, and text first: what most resources answer with.
pub const MODELS_OR_TEXT: &[Media] = &[Media::Text, Media::Xml, Media::Json, Media::Protobuf, Media::ProtobufIetf];
/// The same, or a value: what rows and scanners answer with.
pub const MODELS_OR_VALUE: &[Media] = &[Media::Xml, Media::Json, Media::Protobuf, Media::ProtobufIetf, Media::Binary];

impl Media {
    /// Its name in a header.
    pub fn name(self) -> &'static str {
        match self {
            Media::Text => "text/plain",
            Media::Xml => "text/xml",
            Media::Json => "application/json",
            Media::Protobuf => "application/x-protobuf",
            Media::ProtobufIetf => "application/protobuf",
            Media::Binary => "application/octet-stream",
        }
    }

    /// The type that a `Content-Type` names, its parameters apart.
    pub fn of(header: &str) -> Option<Media> {
        let name = header.split(';').next().unwrap_or_default().trim();
        let all = [Media::Text, Media::Xml, Media::Json, Media::Protobuf, Media::ProtobufIetf, Media::Binary];
        all.into_iter().find(|media| media.name().eq_ignore_ascii_case(name))
    }
}

/// One wish of an `Accept` header.
struct Wish<'a> {
    name: &'a str,
    quality: f32,
}

impl Wish<'_> {
    fn parse(text: &str) -> Wish<'_> {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let quality = parts.find_map(|part| part.strip_prefix("q=")).and_then(|q| q.trim().parse().ok());
        Wish { name, quality: quality.unwrap_or(1.0) }
    }

    /// How exactly it names `media`; `None` when it does not.
    fn exactness(&self, media: Media) -> Option<u8> {
        if self.name.eq_ignore_ascii_case(media.name()) {
            return Some(2);
        }
        let (kind, any) = self.name.split_once('/')?;
        let of_kind = media.name().split('/').next().is_some_and(|own| own.eq_ignore_ascii_case(kind));
        match (kind, any) {
            ("*", "*") => Some(0),
            (_, "*") if of_kind => Some(1),
            _ => None,
        }
    }
}

/// The best of `offered` (the server's favourite first) for an `Accept` header; `None` when it takes none of them.
pub fn choose(accept: Option<&str>, offered: &[Media]) -> Option<Media> {
    let accept = accept.map(str::trim).filter(|accept| !accept.is_empty());
    let Some(accept) = accept else { return offered.first().copied() };
    // What programs say: one type, and no other is wanted.
    if let Some(only) = offered.iter().find(|media| media.name() == accept) {
        return Some(*only);
    }
    let wishes: Vec<Wish<'_>> = accept.split(',').map(|wish| Wish::parse(wish.trim())).collect();
    let mut best: Option<(f32, u8, Media)> = None;
    for media in offered {
        let own = wishes.iter().filter_map(|wish| Some((wish.quality, wish.exactness(*media)?)));
        // The most exact wish says how much a type is wanted.
        let Some((quality, exactness)) = own.max_by(|a, b| a.1.cmp(&b.1)) else { continue };
        let better = best.is_none_or(|(q, e, _)| (quality, exactness) > (q, e));
        if quality > 0.0 && better {
            best = Some((quality, exactness, *media));
        }
    }
    best.map(|(_, _, media)| media)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_wish_wins_over_the_servers_order() {
        assert_eq!(choose(None, MODELS_OR_TEXT), Some(Media::Text));
        assert_eq!(choose(Some("*/*"), MODELS_OR_VALUE), Some(Media::Xml));
        assert_eq!(choose(Some("application/json"), MODELS_OR_TEXT), Some(Media::Json));
        assert_eq!(choose(Some("text/xml;q=0.5, application/protobuf"), MODELS), Some(Media::ProtobufIetf));
        assert_eq!(choose(Some("text/html, */*;q=0.8"), MODELS_OR_TEXT), Some(Media::Text));
        assert_eq!(choose(Some("application/*, text/xml;q=0.9"), MODELS), Some(Media::Json));
        assert_eq!(choose(Some("text/xml, */*"), MODELS_OR_VALUE), Some(Media::Xml));
        assert_eq!(choose(Some("image/png"), MODELS), None);
        assert_eq!(choose(Some("text/xml;q=0"), &[Media::Xml]), None);
    }

    #[test]
    fn content_types_are_known_without_their_parameters() {
        assert_eq!(Media::of("text/xml; charset=UTF-8"), Some(Media::Xml));
        assert_eq!(Media::of("APPLICATION/JSON"), Some(Media::Json));
        assert_eq!(Media::of("application/xml"), None);
    }
}
