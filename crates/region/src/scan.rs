//! Reading: from runs of cells ([`source`]) over one family's merge ([`merge`], [`matcher`], [`store_scanner`]) to a
//! region's rows ([`region_scanner`]). A Get of a plain row takes a fast path ([`point`]).

mod backoff;
pub(crate) mod deletes;
mod get;
pub(crate) mod limits;
pub(crate) mod matcher;
pub(crate) mod merge;
pub(crate) mod open;
mod point;
pub(crate) mod region_scanner;
mod rewrite;
pub(crate) mod rows;
pub(crate) mod selection;
pub(crate) mod source;
pub(crate) mod store_scanner;
mod taking;
pub(crate) mod update_readers;
pub(crate) mod version_behavior;
mod walk;
