//! `google.protobuf.Any`, which procedures use for their state.

/// A serialized message and the name of its type.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Any {
    /// `type.googleapis.com/<full name>`.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The serialized message.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: bytes::Bytes,
}
