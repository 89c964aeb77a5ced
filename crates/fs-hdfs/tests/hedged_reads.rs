//! Reads that ask another DataNode when the first takes long, against DataNodes that do.
#![allow(clippy::disallowed_methods, reason = "it measures what late DataNodes cost, on threads of its own")]

use basalt_fs_hdfs::{HdfsVolume, Location, Settings};
use fs::{FilePath, HedgedReads, Volume};
use hdfs_native::fake_hdfs;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const BYTES: &[u8] = b"the bytes of a block";
/// After so long a DataNode is late.
const THRESHOLD: Duration = Duration::from_millis(50);
/// Longer than any test may take.
const LATE: Duration = Duration::from_secs(300);

/// A volume on DataNodes that answer after these times; the runtime that they live in goes last.
struct Place {
    volume: Arc<dyn Volume>,
    _datanodes: Runtime,
}

impl Place {
    fn new(delays: &[Duration], most_hedged_reads: u32) -> Place {
        let datanodes = Runtime::new().expect("threads");
        let url = datanodes.block_on(fake_hdfs(BYTES, delays));
        let setting = |key: &str, value: String| (format!("dfs.client.hedged.read.{key}"), value);
        let settings = Settings {
            // None that is there by chance.
            config_directory: Some("/nonexistent".to_owned()),
            overrides: vec![
                setting("threadpool.size", most_hedged_reads.to_string()),
                setting("threshold.millis", THRESHOLD.as_millis().to_string()),
            ],
            deadline: Duration::from_secs(60),
            unique: 1,
        };
        let location = Location::parse(&format!("{url}/root")).expect("a location");
        let volume = HdfsVolume::open(&location, &settings).expect("a volume");
        Place { volume: Arc::new(volume), _datanodes: datanodes }
    }

    /// Reads five bytes, and says how long that took.
    fn read(&self) -> Duration {
        let file = self.volume.open(&FilePath::new("file")).expect("opened");
        let (begun, mut bytes) = (Instant::now(), [0; 5]);
        file.read_exact_at(&mut bytes, 4).expect("read");
        assert_eq!(&bytes, b"bytes");
        begun.elapsed()
    }

    fn counts(&self) -> HedgedReads {
        self.volume.hedged_reads()
    }
}

#[test]
fn a_datanode_that_answers_late_is_not_waited_for_when_another_has_the_block() {
    let place = Place::new(&[LATE, Duration::ZERO], 2);
    let took = place.read();
    assert!(took >= THRESHOLD && took < Duration::from_secs(20), "{took:?}");
    assert_eq!(place.counts(), HedgedReads { asked: 1, won: 1, alone: 0 });
    // What lost gave its place back.
    (0..4).for_each(|_| _ = place.read());
    assert_eq!(place.counts(), HedgedReads { asked: 5, won: 5, alone: 0 });
}

#[test]
fn a_second_datanode_that_is_late_as_well_has_a_third_asked() {
    let place = Place::new(&[LATE, LATE, Duration::ZERO], 2);
    assert!(place.read() >= 2 * THRESHOLD);
    assert_eq!(place.counts(), HedgedReads { asked: 2, won: 1, alone: 0 });
}

#[test]
fn the_first_datanode_may_still_be_the_first_to_answer() {
    let place = Place::new(&[4 * THRESHOLD, LATE], 2);
    assert!(place.read() >= 4 * THRESHOLD);
    assert_eq!(place.counts(), HedgedReads { asked: 1, won: 0, alone: 0 });
}

#[test]
fn no_other_is_asked_in_time_and_none_where_that_is_off() {
    let place = Place::new(&[Duration::ZERO, LATE], 2);
    place.read();
    assert_eq!(place.counts(), HedgedReads::default());
    let place = Place::new(&[4 * THRESHOLD, Duration::ZERO], 0);
    assert!(place.read() >= 4 * THRESHOLD, "it waits");
    assert_eq!(place.counts(), HedgedReads::default());
}

/// Two reads at once where one request more may be under way.
#[test]
fn no_more_requests_are_under_way_than_there_may_be() {
    let late = 20 * THRESHOLD;
    let place = Place::new(&[late, late], 1);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!(place.read() >= late));
        }
    });
    let counts = place.counts();
    assert_eq!((counts.asked, counts.alone), (1, 1), "{counts:?}");
}
