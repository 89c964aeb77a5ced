//! Between tasks, which must not block, and threads that read and write files: groups of things over a bounded channel, in both directions.
//!
//! Always true: at most [`WAITING_GROUPS`] groups of about [`GROUP_BYTES`] wait; whoever is ahead waits for the other.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A group is handed on when it has so many bytes.
const GROUP_BYTES: usize = 64 << 10;
/// Groups that wait for being taken.
const WAITING_GROUPS: usize = 4;

/// What a thread gets from a task; one at a time.
pub(super) struct Taken<T> {
    receive: mpsc::Receiver<Option<Vec<T>>>,
    group: std::vec::IntoIter<T>,
    is_whole: bool,
}

impl<T> Taken<T> {
    /// The next one; none at the end, and where the task gave up.
    pub fn next(&mut self) -> Option<T> {
        loop {
            if let Some(one) = self.group.next() {
                return Some(one);
            }
            match self.receive.blocking_recv() {
                Some(Some(group)) => self.group = group.into_iter(),
                Some(None) => {
                    self.is_whole = true;
                    return None;
                }
                None => return None,
            }
        }
    }

    /// Whether the task said that there is no more, rather than breaking off.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }
}

/// A task's end of a way to a thread.
pub(super) struct Giver<T> {
    send: mpsc::Sender<Option<Vec<T>>>,
    group: Vec<T>,
    bytes: usize,
}

impl<T> Giver<T> {
    /// Gives one of so many bytes; false where nobody takes any more.
    pub async fn give(&mut self, one: T, bytes: usize) -> bool {
        self.group.push(one);
        self.bytes += bytes;
        if self.bytes < GROUP_BYTES {
            return true;
        }
        self.bytes = 0;
        self.send.send(Some(std::mem::take(&mut self.group))).await.is_ok()
    }

    /// Gives what is left, and says that it was all.
    pub async fn finish(mut self) {
        // Where nobody takes any more, whoever did says why.
        if self.group.is_empty() || self.send.send(Some(std::mem::take(&mut self.group))).await.is_ok() {
            let _ = self.send.send(None).await;
        }
    }
}

/// Starts a thread that takes what a task gives.
pub(super) fn taking<T: Send + 'static, R: Send + 'static>(
    take: impl FnOnce(&mut Taken<T>) -> anyhow::Result<R> + Send + 'static,
) -> (Giver<T>, JoinHandle<anyhow::Result<R>>) {
    let (send, receive) = mpsc::channel(WAITING_GROUPS);
    let thread = tokio::task::spawn_blocking(move || {
        let mut taken = Taken { receive, group: Vec::new().into_iter(), is_whole: false };
        take(&mut taken)
    });
    (Giver { send, group: Vec::new(), bytes: 0 }, thread)
}

/// A thread's end of a way to a task.
pub(super) struct Bringer<T> {
    send: mpsc::Sender<Vec<T>>,
    group: Vec<T>,
    bytes: usize,
}

impl<T> Bringer<T> {
    /// Brings one of so many bytes; false where nobody wants any more.
    pub fn bring(&mut self, one: T, bytes: usize) -> bool {
        self.group.push(one);
        self.bytes += bytes;
        if self.bytes < GROUP_BYTES {
            return true;
        }
        self.flush()
    }

    /// Brings what waits for more; false where nobody wants any more.
    pub fn flush(&mut self) -> bool {
        self.bytes = 0;
        self.group.is_empty() || self.send.blocking_send(std::mem::take(&mut self.group)).is_ok()
    }
}

/// Starts a thread that brings things to a task. A group that is not full when it fails stays behind, unless it was flushed.
pub(super) fn bringing<T: Send + 'static, R: Send + 'static>(
    bring: impl FnOnce(&mut Bringer<T>) -> anyhow::Result<R> + Send + 'static,
) -> (mpsc::Receiver<Vec<T>>, JoinHandle<anyhow::Result<R>>) {
    let (send, receive) = mpsc::channel(WAITING_GROUPS);
    let thread = tokio::task::spawn_blocking(move || {
        let mut bringer = Bringer { send, group: Vec::new(), bytes: 0 };
        let brought = bring(&mut bringer)?;
        bringer.flush();
        Ok(brought)
    });
    (receive, thread)
}

/// What came of reading and of writing what was read: where both failed, why it could not be read. To be called when nothing is taken any more.
pub(super) async fn read_and_written<R>(
    reading: JoinHandle<anyhow::Result<R>>,
    written: anyhow::Result<()>,
) -> anyhow::Result<R> {
    let read =
        reading.await.map_err(|error| anyhow::anyhow!("a thread that read files ended by itself: {error}"))??;
    written.map(|()| read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everything_arrives_in_order_and_its_end_is_told_from_a_break() {
        for is_finished in [true, false] {
            let (mut giver, thread) = taking(|taken: &mut Taken<u32>| {
                let mut all = Vec::new();
                while let Some(one) = taken.next() {
                    all.push(one);
                }
                Ok((all, taken.is_whole()))
            });
            for i in 0..100 {
                assert!(giver.give(i, 20_000).await);
            }
            if is_finished {
                giver.finish().await
            } else {
                drop(giver)
            }
            let (all, is_whole) = thread.await.expect("no panic").expect("taken");
            assert_eq!(is_whole, is_finished);
            assert_eq!(all, (0..100).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn a_thread_that_fails_stops_the_task_and_keeps_its_error() {
        let (mut giver, thread) = taking(|taken: &mut Taken<u32>| {
            let first = taken.next();
            anyhow::bail!("met {first:?}") as anyhow::Result<()>
        });
        let mut given = 0;
        while giver.give(given, GROUP_BYTES).await {
            given += 1;
        }
        assert!(thread.await.expect("no panic").expect_err("failed").to_string().contains("met Some(0)"));
    }

    #[tokio::test]
    async fn full_groups_arrive_before_an_error_and_others_where_they_are_flushed() {
        for (is_flushed, wanted) in [(false, 9), (true, 10)] {
            let (mut receive, thread) = bringing(move |bringer: &mut Bringer<u32>| {
                assert!((0..10).all(|i| bringer.bring(i, 30_000)));
                assert!(!is_flushed || bringer.flush());
                anyhow::bail!("damaged") as anyhow::Result<()>
            });
            let mut all = Vec::new();
            while let Some(group) = receive.recv().await {
                all.extend(group);
            }
            assert_eq!(all, (0..wanted).collect::<Vec<_>>());
            assert!(thread.await.expect("no panic").is_err());
        }
    }
}
