//! The table hbase:slowlog, which region servers write their slow and large calls to. Follows: `SlowLogMasterService`.

use crate::Result;
use crate::master::Master;
use crate::procedure::Caller;
use crate::procedure::ddl::create;
use model::{TableDescriptor, TableName};
use std::sync::Arc;

/// Makes the table where it is wanted and missing.
pub(crate) async fn bring_up(master: &Arc<Master>) -> Result<()> {
    if !master.keeps_slow_log || master.cluster.read().exists(&TableName::slowlog_table()) {
        return Ok(());
    }
    let caller = Caller { user: "basalt".into(), nonce: None };
    let id = create::submit(master, TableDescriptor::slowlog_table(), &[], &caller).await?;
    master.procedures.wait_for(id).await?;
    Ok(())
}
