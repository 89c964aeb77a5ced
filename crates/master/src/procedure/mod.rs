//! Procedures: work of several steps that goes on where it was after a crash. [`engine`] keeps and runs them; beside it
//! there is a file for each kind: what it is asked for ([`Master`]'s methods check and submit), what it does, and how
//! it is written.
//!
//! Always true:
//!  1. The rules of [`engine`].
//!  2. Steps that could not be repeated are avoided; the one point of no return (a split's or merge's write to
//!     hbase:meta) is a single atomic write that a later look at hbase:meta recognises.
//!
//! To add one: a type with [`engine::Procedure`] in a file of its own, whose `KIND` stands in [`KINDS`]. Records are
//! HBase's `Procedure` messages with its class names, numbers of steps and state messages. Follows: `procedure2`,
//! `master.procedure`.

pub(crate) mod ddl;
pub(crate) mod engine;
pub mod for_hbase;
pub(crate) mod namespace;
pub(crate) mod of_hbase;
pub(crate) mod operations;
pub(crate) mod peer;
pub(crate) mod region;
pub(crate) mod server;
pub(crate) mod snapshot;

pub use engine::Outcome;
pub use engine::store::ProcedureStoreError;

use crate::Result;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use convert::{from_proto, to_proto};
use model::{Nonce, RegionInfo, ServerName, TableName};
use proto::pb;
use std::sync::Arc;

/// What a step of the master's procedures is given.
pub(crate) type Context = engine::Context<Master>;
/// What a step of the master's procedures leads to.
pub(crate) type Next = engine::Next<Master>;
/// A procedure of the master.
pub(crate) type BoxedProcedure = engine::BoxedProcedure<Master>;
/// A procedure of the master as it is kept.
pub(crate) type Record = engine::Record<Master>;
/// A procedure of the master that an earlier run left unfinished.
pub(crate) type Unfinished = engine::Unfinished<Master>;
/// The engine of the master.
pub(crate) type Procedures = engine::Procedures<Master>;
/// A kind of the master's procedures.
pub(crate) type ProcedureKind = engine::ProcedureKind<Master>;

/// Every kind.
pub(crate) const KINDS: &[ProcedureKind] = &[
    ddl::create::KIND,
    ddl::delete::KIND,
    ddl::disable::KIND,
    ddl::enable::KIND,
    ddl::file_tracker::TABLE_KIND,
    ddl::file_tracker::FAMILY_KIND,
    ddl::modify::KIND,
    ddl::truncate::KIND,
    namespace::create::KIND,
    namespace::delete::KIND,
    namespace::modify::KIND,
    region::flush::KIND,
    region::merge::KIND,
    region::split::KIND,
    region::transit::KIND,
    region::truncate::KIND,
    server::crash::KIND,
    snapshot::clone::KIND,
    snapshot::restore::KIND,
    snapshot::take::KIND,
    peer::modify::ADD_KIND,
    peer::modify::REMOVE_KIND,
    peer::modify::UPDATE_KIND,
    peer::modify::ENABLE_KIND,
    peer::modify::DISABLE_KIND,
];

/// Reads a record of a procedure, as at a start; for fuzzers. Answers what the record is written as again.
///
/// # Errors
/// The bytes are no record.
#[cfg(feature = "fuzzing")]
pub fn read_record(bytes: &bytes::Bytes) -> Result<bytes::Bytes> {
    let message = proto::magic::decode::<pb::Procedure>(bytes).ok_or_else(|| engine::malformed("no magic"))?;
    let message = message.map_err(engine::malformed)?;
    // One of HBase's may be anything, too.
    drop(of_hbase::read(&[(message.proc_id, proto::Message::encode_to_vec(&message).into())].into(), true));
    Ok(proto::magic::encode(&Record::from_message(&message, KINDS)?.to_message()))
}

impl Context {
    /// HBase's next master is to go on with the last of these steps of its own.
    pub(crate) async fn found_at(&self, states: &[i32]) -> Result<()> {
        let (for_hbase, record) = (&self.env.for_hbase, self.env.procedures.record(self.id));
        for_hbase.at(record, states.to_vec(), None).await
    }

    /// HBase's next master is to begin anew with the last of these steps of its own, however far one of HBase's before was.
    pub(crate) async fn found_anew(&self, states: &[i32]) -> Result<()> {
        let (for_hbase, record) = (&self.env.for_hbase, self.env.procedures.record(self.id));
        for_hbase.anew(record, states.to_vec()).await
    }

    /// As [`Context::found_at`], with this data instead of the record's.
    pub(crate) async fn found_with(&self, states: &[i32], data: Vec<proto::Any>) -> Result<()> {
        let (for_hbase, record) = (&self.env.for_hbase, self.env.procedures.record(self.id));
        for_hbase.at(record, states.to_vec(), Some(data)).await
    }

    /// HBase's next master is to go on with the last of these steps when it has opened, closed or reopened the regions.
    pub(crate) async fn found_with_regions(
        &self,
        states: &[i32],
        regions: Vec<RegionInfo>,
        transition: pb::RegionTransitionType,
    ) -> Result<()> {
        let (for_hbase, record) = (&self.env.for_hbase, self.env.procedures.record(self.id));
        for_hbase.with_regions(record, states.to_vec(), None, regions, transition).await
    }

    /// HBase's next master is to find that it has failed, and to open these regions again.
    pub(crate) async fn found_rolled_back(&self, regions: Vec<RegionInfo>) -> Result<()> {
        let (for_hbase, record) = (&self.env.for_hbase, self.env.procedures.record(self.id));
        for_hbase.rolled_back(record, regions).await
    }
}

/// Who asks, and the nonce to recognise a repetition.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// User.
    pub user: String,
    /// Nonce; `None` when the client gave none.
    pub nonce: Option<Nonce>,
}

impl Caller {
    pub(crate) fn submission(&self, locks: Vec<(Resource, Mode)>) -> engine::Submission {
        engine::Submission { owner: self.user.clone(), nonce: self.nonce, locks }
    }
}

/// What DDL of a table holds.
pub(crate) fn table_locks(table: &TableName) -> Vec<(Resource, Mode)> {
    vec![
        (Resource::Namespace(table.namespace().to_owned()), Mode::Shared),
        (Resource::Table(table.clone()), Mode::Exclusive),
    ]
}

/// What DDL of a namespace holds.
pub(crate) fn namespace_locks(name: &str) -> Vec<(Resource, Mode)> {
    vec![(Resource::Namespace(name.to_owned()), Mode::Exclusive)]
}

/// What work on single regions holds.
pub(crate) fn region_locks(regions: &[RegionInfo]) -> Vec<(Resource, Mode)> {
    let table = |info: &RegionInfo| (Resource::Table(info.table.clone()), Mode::Shared);
    // A read replica comes and goes with its primary.
    let region = |info: &RegionInfo| (Resource::Region(Arc::clone(info.replica(0).encoded_name())), Mode::Exclusive);
    regions.iter().flat_map(|info| [table(info), region(info)]).collect()
}

/// What the handling of a crashed server holds.
pub(crate) fn server_locks(server: &ServerName) -> Vec<(Resource, Mode)> {
    vec![(Resource::Server(server.to_string()), Mode::Exclusive)]
}

fn infos_to_proto(regions: &[RegionInfo]) -> Vec<pb::RegionInfo> {
    regions.iter().map(to_proto::region_info).collect()
}

fn infos_from_proto(messages: &[pb::RegionInfo]) -> Result<Vec<RegionInfo>> {
    messages.iter().map(|message| Ok(from_proto::region_info(message)?)).collect()
}
