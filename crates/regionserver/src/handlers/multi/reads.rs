//! Batches of gets.

use super::answer::{Answering, failed, finish, region_failed};
use super::{Action, Work};
use crate::errors::exception_of;
use crate::handlers::get::read_result;
use crate::server::RegionServer;
use base::ReadMode;
use model::Get;
use proto::pb;
use region::{Region, RegionError};
use rpc::Reply;
use rpc::exception::{Exception, Kind};

/// A batch of gets alone. `None` when one would have to read a file and may not, or when all together are too much.
///
/// # Errors
/// It ended at a pause point: nobody waits for the rest.
pub(super) fn gets(
    server: &RegionServer,
    work: &[Work],
    mut answering: Answering,
    mode: ReadMode<'_>,
) -> Result<Option<Reply>, Exception> {
    let mut regions = Vec::with_capacity(work.len());
    for (at, one) in work.iter().enumerate() {
        let since = answering.serialized_bytes();
        match one {
            Work::Failed(exception) => regions.push(region_failed(exception)),
            Work::Batch(region, actions) => {
                let mut result = pb::RegionActionResult::default();
                for (index, action) in actions {
                    let entry = match action {
                        Action::Get(get) => match one_get(region, get, &mut answering, *index, mode) {
                            Err(error) if error.is_would_block() => return Ok(None),
                            Err(error @ RegionError::Interrupted(_)) => return Err(exception_of(&error)),
                            Err(error) => failed(*index, &exception_of(&server.escalate_fatal(error))),
                            Ok(entry) => entry,
                        },
                        Action::Bad(exception) => failed(*index, exception),
                        Action::Write(_) | Action::Service(_) => continue,
                    };
                    result.result_or_exception.push(entry);
                }
                regions.push(result);
                answering.charge(at, since);
            }
            Work::Atomic { .. } => {}
        }
    }
    Ok(Some(finish(regions, None, answering)))
}

pub(super) fn one_get(
    region: &Region,
    get: &Get,
    answering: &mut Answering,
    index: u32,
    mode: ReadMode<'_>,
) -> Result<pb::ResultOrException, RegionError> {
    if answering.is_full() {
        return Ok(failed(index, &too_large(answering)));
    }
    let (result, cells) = read_result(region, get, answering.has_codec, mode)?;
    Ok(answering.result(index, result, cells))
}

pub(super) fn too_large(answering: &Answering) -> Exception {
    Exception::new(
        Kind::MultiActionResultTooLarge,
        format!("Max size exceeded CellSize: {} BlockSize: 0", answering.size()),
    )
}
