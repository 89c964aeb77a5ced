//! The catalog janitor: takes away regions that were split or merged, once nobody refers to their files.
//!
//! Always true: a file is archived only after every region that could refer to it was listed and does not; a list
//! that fails proves nothing, nor does a directory that is missing though hbase:meta has its region. Follows: `CatalogJanitor`, `GCRegionProcedure`, `GCMultipleMergedRegionsProcedure`.

use crate::cluster::RegionNode;
use crate::master::Master;
use crate::procedure::region_locks;
use crate::{Result, consistency, meta};
use model::RegionInfo;
use model::region_info::META_ENCODED_NAME;
use std::sync::Arc;

/// Cleans what can be cleaned; answers the number of regions taken away.
///
/// # Errors
/// What the volume or hbase:meta say; what was cleaned stays cleaned.
pub(crate) async fn run(master: &Arc<Master>) -> Result<u32> {
    let _one_at_a_time = master.janitor.lock().await;
    let empty_region_infos = empty_region_infos(master).await?;
    let report = consistency::CatalogReport { empty_region_infos, ..consistency::check(&master.cluster.read()) };
    *master.catalog_report.lock() = Some(Arc::new(report));
    let (parents, children): (Vec<RegionNode>, Vec<RegionNode>) = {
        let cluster = master.cluster.read();
        let of = |wanted: fn(&&RegionNode) -> bool| cluster.regions().filter(wanted).cloned().collect();
        (of(|node| node.info.split && node.info.offline), of(|node| !node.merge_parents.is_empty()))
    };
    let mut cleaned = 0;
    // These first: the row of a region that was merged and then split is all that tells of those that it came from.
    for child in children {
        cleaned += clean_merge_parents(master, &child).await?;
    }
    for parent in parents {
        cleaned += u32::from(clean_split_parent(master, &parent).await?);
    }
    Ok(cleaned)
}

/// Rows of hbase:meta that tell of no region. The server that has it looks at all of its rows, and answers with these alone. Follows:
/// `ReportMakingVisitor#metaTableConsistencyCheck`.
async fn empty_region_infos(master: &Master) -> Result<Vec<String>> {
    let host = master.servers.meta_host()?;
    let cells = host.scan(META_ENCODED_NAME, meta::empty_region_info_scan()).await?;
    let rows = meta::parse_meta(&cells).strange_rows;
    for row in &rows {
        tracing::warn!(
            row,
            "a row of hbase:meta has no region: its info:regioninfo is missing or cannot be read; the row is left alone"
        );
    }
    Ok(rows)
}

/// Whether one of `regions` has a file that refers to `parent`. A daughter that was split in its turn and cleaned
/// away has no directory, and no references. One that hbase:meta has must have its directory: without it, the parent's
/// files may be all that is left of its rows (HBase cleans the parent away).
async fn anyone_refers(master: &Master, regions: &[RegionInfo], parent: &RegionInfo) -> Result<bool> {
    let must_have_files = |info: &RegionInfo| {
        master.cluster.read().region(info.encoded_name()).is_some_and(|node| !(node.info.split && node.info.offline))
    };
    let regions: Vec<(RegionInfo, bool)> = regions.iter().map(|info| (info.clone(), must_have_files(info))).collect();
    let parent = Arc::clone(parent.encoded_name());
    master
        .files
        .run(move |volume| {
            for (info, must_have_files) in &regions {
                if *must_have_files && !volume.exists(&rootdir::region_dir(info))? {
                    tracing::warn!(
                        region = %info.name_string(),
                        parent = &*parent,
                        directory = %rootdir::region_dir(info),
                        "the directory of a region in hbase:meta is missing: the region that it came from is kept, for its files may be all that is left; \
                         bring the directory back, or see /hbck.jsp"
                    );
                    return Ok(true);
                }
                if rootdir::archive::refers_to(volume, info, Some(&parent))? {
                    return Ok(!base::inject!("master.janitor.references-overlooked"));
                }
            }
            Ok(false)
        })
        .await
}

async fn archive(master: &Master, info: &RegionInfo) -> Result<()> {
    let dir = rootdir::region_dir(info);
    master.files.run(move |volume| Ok(rootdir::archive_region_dir(volume, &dir)?)).await
}

async fn clean_split_parent(master: &Arc<Master>, parent: &RegionNode) -> Result<bool> {
    if parent.daughters.len() != 2 {
        return Ok(false);
    }
    let _locks = master.procedures.locks.lock(region_locks(std::slice::from_ref(&parent.info))).await;
    let names_nobody = |node: &RegionNode| node.merge_parents.is_empty();
    if !master.cluster.read().region(parent.info.encoded_name()).is_some_and(names_nobody)
        || anyone_refers(master, &parent.daughters, &parent.info).await?
    {
        return Ok(false);
    }
    archive(master, &parent.info).await?;
    master.catalog.write(vec![meta::delete_region(&parent.info, master.catalog.stamp())]).await?;
    master.cluster.write().remove_region(&parent.info);
    tracing::info!(region = %parent.info.name_string(), "a split region was archived");
    Ok(true)
}

async fn clean_merge_parents(master: &Arc<Master>, child: &RegionNode) -> Result<u32> {
    let _locks = master.procedures.locks.lock(region_locks(std::slice::from_ref(&child.info))).await;
    if master.cluster.read().region(child.info.encoded_name()).is_none() {
        return Ok(0);
    }
    for parent in &child.merge_parents {
        if anyone_refers(master, std::slice::from_ref(&child.info), parent).await? {
            return Ok(0);
        }
    }
    for parent in &child.merge_parents {
        archive(master, parent).await?;
    }
    let gone = meta::delete_merge_columns(&child.info, child.merge_parents.len(), master.catalog.delete_stamp());
    master.catalog.write(vec![gone]).await?;
    master.cluster.write().change_region(child.info.encoded_name(), |node| node.merge_parents.clear());
    Ok(u32::try_from(child.merge_parents.len()).unwrap_or(u32::MAX))
}
