//! `basalt admin drain-volume`: all files come off a volume that is to be taken out of `basalt.volumes`.

use std::time::{Duration, Instant};

use anyhow::bail;
use client::Connection;
use model::ServerName;
use proto::volumes::Volume;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Between two words about the progress.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// Has the server whose volume it is move its files, and waits for that if `waits`. Begun again, it goes on.
///
/// # Errors
/// No server has such a volume, it gets new files still, or files of it cannot be moved.
pub(super) async fn run(connection: &Connection, directory: &str, waits: bool) -> anyhow::Result<()> {
    let admin = connection.admin();
    let directory = if directory.len() > 1 { directory.trim_end_matches('/') } else { directory };
    let (server, before) = find(connection, directory).await?;
    admin.drain_volume(&server, directory).await?;
    if !waits {
        println!(
            "{} files are moved off {directory}; --wait waits for them, basalt volumes status says how far it is",
            before.files
        );
        return Ok(());
    }
    let (begun, mut said) = (Instant::now(), Instant::now());
    loop {
        let now = at(&admin.volumes(&server).await?.volumes, directory);
        let Some(now) = now else {
            bail!("{directory} is no longer in basalt.volumes: somebody took it out meanwhile")
        };
        // A server that was started again counts anew.
        let files = now.moved_files.saturating_sub(before.moved_files);
        let bytes = now.moved_bytes.saturating_sub(before.moved_bytes);
        let seconds = begun.elapsed().as_secs_f64();
        if !now.is_moving {
            match now.moving_ended {
                Some(why) => bail!("{} files are left on {directory}: {why}", now.files),
                // The server that was asked to move them has ended.
                None if now.files > 0 => bail!(
                    "{} files are left on {directory}, and {server} moves none of them: it was started again meanwhile. Run this command again",
                    now.files
                ),
                None => {
                    println!(
                        "no file is on {directory} any more, {files} files of {bytes} bytes were moved; {seconds:.1} s. Take it out of \
                         basalt.volumes and have the configuration read again (update_config)"
                    );
                    return Ok(());
                }
            }
        }
        if said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            println!("{files} files of {bytes} bytes were moved, {} are left, {seconds:.0} s", now.files);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The server that has the volume.
async fn find(connection: &Connection, directory: &str) -> anyhow::Result<(ServerName, Volume)> {
    let (admin, mut places) = (connection.admin(), Vec::new());
    for server in admin.servers().await? {
        let volumes = admin.volumes(&server).await?.volumes;
        if let Some(volume) = at(&volumes, directory) {
            return Ok((server, volume));
        }
        places.extend(volumes.into_iter().map(|volume| volume.directory));
    }
    match places.is_empty() {
        true => bail!("no server has volumes: basalt.volumes is not set"),
        false => bail!("no server has a volume {directory} (there are: {})", places.join(", ")),
    }
}

fn at(volumes: &[Volume], directory: &str) -> Option<Volume> {
    volumes.iter().find(|volume| volume.directory == directory).cloned()
}
