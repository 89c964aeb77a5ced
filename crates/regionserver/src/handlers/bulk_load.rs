//! PrepareBulkLoad, BulkLoadHFile, CleanupBulkLoad. Follows: `RSRpcServices`, `SecureBulkLoadManager`.

use super::{RegionService, blocking, find_region, required};
use crate::bulk_load;
use crate::errors::exception_of;
use crate::server::RegionServer;
use crate::settings;
use fs::FilePath;
use proto::pb;
use region::{BulkLoad, BulkLoaded, LoadFile, Region, RegionError};
use rpc::Call;
use rpc::exception::{Exception, Kind};
use rpc::service::Answer;
use std::sync::Arc;

/// Makes a staging directory and names it.
pub(super) fn prepare(
    RegionService { server, .. }: &RegionService,
    call: &Call,
    request: pb::PrepareBulkLoadRequest,
) -> Answer<pb::PrepareBulkLoadResponse> {
    let region = find_region(server, &required(request.region, "PrepareBulkLoadRequest", "region")?)?;
    let (dir, bulk_token) = server.bulk_load_files.new_staging_dir(&call.user, &region.info().table, &server.env.rng);
    let server = server.clone();
    blocking(move || {
        server.env.volume.create_dir_all_durable(&dir).map_err(|e| Exception::io(e.to_string()))?;
        Ok(pb::PrepareBulkLoadResponse { bulk_token })
    })
}

/// Removes a staging directory; one that is gone was removed before. Not when the server is about to stop: the next one may have to finish
/// what it could not take back.
pub(super) fn cleanup(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::CleanupBulkLoadRequest,
) -> Answer<pb::CleanupBulkLoadResponse> {
    find_region(server, &required(request.region, "CleanupBulkLoadRequest", "region")?)?;
    if server.has_failed() {
        return Err(Exception::server_aborted(&server.name.to_string()));
    }
    let token = request.bulk_token;
    let dir = server
        .bulk_load_files
        .staging_dir(&token)
        .ok_or_else(|| Exception::io(format!("Failed to clean up {token}")))?;
    let server = server.clone();
    blocking(move || {
        server
            .env
            .volume
            .remove_dir_all(&dir)
            .map_err(|e| Exception::io(format!("Failed to clean up {token}: {e}")))?;
        Ok(pb::CleanupBulkLoadResponse {})
    })
}

/// Loads files. With a token, as HBase: whatever goes wrong with the files is "not loaded", and the client looks at the
/// regions again. Without one, it is an exception.
pub(super) fn load(
    RegionService { server, .. }: &RegionService,
    call: &Call,
    request: pb::BulkLoadHFileRequest,
) -> Answer<pb::BulkLoadHFileResponse> {
    let cluster_id = server.bulk_load_files.cluster_id.clone();
    if request.cluster_ids.contains(&cluster_id) {
        // It went around the clusters and is back.
        return Ok(pb::BulkLoadHFileResponse { loaded: true }.into());
    }
    let region = find_region(server, &request.region)?;
    let (server, user) = (server.clone(), call.user.clone());
    blocking(move || {
        server.space_quotas.check_bulk_load(&server, &region.info().table, &request.family_path)?;
        let has_token = request.bulk_token.is_some();
        let loaded = match load_files(&server, &region, request, cluster_id, &user) {
            Ok(loaded) => loaded,
            Err(exception) if has_token => {
                tracing::warn!(region = %region.name(), "a bulk load failed: {}", exception.message());
                false
            }
            Err(exception) => return Err(exception),
        };
        Ok(pb::BulkLoadHFileResponse { loaded })
    })
}

fn load_files(
    server: &RegionServer,
    region: &Arc<Region>,
    request: pb::BulkLoadHFileRequest,
    cluster_id: String,
    user: &str,
) -> Result<bool, Exception> {
    let files = &server.bulk_load_files;
    let allowed_dirs = server.settings().bulk_load_dirs.clone();
    let mut load_files = Vec::with_capacity(request.family_path.len());
    for path in request.family_path {
        let place = files.place(&path.path).ok_or_else(|| {
            Exception::new(Kind::FileNotFound, format!("{} is not a path of this machine", path.path))
        })?;
        if !bulk_load::is_allowed(&place, allowed_dirs.as_deref()) {
            return Err(Exception::do_not_retry(format!(
                "{} may not be loaded: it is in none of the directories that {} names",
                path.path,
                settings::BULK_LOAD_DIRS.key
            )));
        }
        load_files.push(LoadFile { family: path.family, name: path.path, place });
    }
    let staging = match &request.bulk_token {
        Some(token) => Some(
            files
                .staging_dir(token)
                .ok_or_else(|| Exception::do_not_retry(format!("{token} is no bulk token of this server")))?,
        ),
        None => None,
    };
    let mut cluster_ids = request.cluster_ids;
    cluster_ids.push(cluster_id);
    let own_dir = || files.new_staging_dir(user, &region.info().table, &server.env.rng).0;
    let load = BulkLoad {
        files: load_files,
        // A load with a token always gets an id.
        assign_seq_id: staging.is_some() || request.assign_seq_num.unwrap_or(false),
        staging: staging.clone().unwrap_or_else(own_dir),
        copy: request.copy_file.unwrap_or(false),
        cluster_ids,
        replicate: request.replicate.unwrap_or(true),
    };
    let outcome = region.bulk_load(&load).map_err(|error| server.escalate_fatal(error));
    if staging.is_none() && !server.has_failed() {
        remove_empty(server, &load.staging, &load);
    }
    match outcome {
        Ok(BulkLoaded::Loaded { files, needs_compaction }) => {
            tracing::info!(region = %region.name(), files = files.len(), "files were bulk-loaded");
            server.refresh_replicas(region);
            if needs_compaction && region.settings().compact_after_bulk_load {
                server.maintenance.consider_compaction(region.info().encoded_name());
            }
            Ok(true)
        }
        Ok(BulkLoaded::WrongRegion(names)) => {
            tracing::warn!(region = %region.name(), ?names, "files were not loaded: they do not fit, probably after a split");
            Ok(false)
        }
        Err(error) => Err(exception(&error)),
    }
}

/// Removes a staging directory of this call, unless a file stayed that could not be given back.
fn remove_empty(server: &RegionServer, dir: &FilePath, load: &BulkLoad) {
    let volume = &server.env.volume;
    let is_empty = |family: &LoadFile| {
        let dir = dir.join(String::from_utf8_lossy(&family.family));
        volume.list(&dir).is_ok_and(|entries| entries.is_empty()) || volume.exists(&dir).is_ok_and(|there| !there)
    };
    if load.files.iter().all(is_empty)
        && let Err(error) = volume.remove_dir_all(dir)
    {
        tracing::warn!(%error, "an empty staging directory stays");
    }
}

fn exception(error: &RegionError) -> Exception {
    match error {
        RegionError::Volume { source, .. } if source.is_not_found() => {
            Exception::new(Kind::FileNotFound, error.to_string())
        }
        other => exception_of(other),
    }
}
