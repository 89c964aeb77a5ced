//! Gets that a read replica may answer: the primary alone is asked first, after a short while all replicas are, and the first answer counts.
//! Follows: `ConnectionUtils#timelineConsistentRead`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use model::Get;
use proto::methods::Method;
use proto::pb;

use super::Table;
use super::call::row_of;
use crate::channel::Request;
use crate::locator::{Located, Side};
use crate::{Error, Result, Row};

type Answer<'a> = Pin<Box<dyn Future<Output = Result<Row>> + Send + 'a>>;

impl Table {
    pub(super) async fn get_from_any_replica(&self, get: &Get) -> Result<Row> {
        let from_primary = Get { timeline: false, ..get.clone() };
        let mut primary: Answer<'_> = Box::pin(self.get_from_primary(&from_primary));
        let alone = self.cluster.options.primary_get_timeout;
        match tokio::time::timeout(alone, &mut primary).await {
            Ok(Ok(row)) => return Ok(row),
            Ok(Err(e)) if !e.is_exhausted() => return Err(e),
            // What has ended is not to be polled again: its error stands for it.
            Ok(Err(e)) => primary = Box::pin(std::future::ready(Err(e))),
            Err(_) => {}
        }
        let (ended, located) = beside(&mut primary, self.cluster.locate(&self.cache, &get.row, Side::Current)).await;
        match ended {
            Some(Ok(row)) => return Ok(row),
            Some(Err(e)) if !e.is_exhausted() => return Err(e),
            Some(Err(e)) => primary = Box::pin(std::future::ready(Err(e))),
            None => {}
        }
        let Some(Ok(located)) = located else { return primary.await };
        let replicas = self.cluster.replicas_of(&located);
        if replicas.is_empty() {
            return primary.await;
        }
        self.cluster.counters.replica_reads.add(1);
        let mut asked: Vec<Answer<'_>> = vec![primary];
        asked.extend(replicas.into_iter().map(|replica| -> Answer<'_> { Box::pin(self.get_from(get, replica)) }));
        let (at, row) = first_of(asked).await?;
        if at > 0 {
            self.cluster.counters.replica_reads_won.add(1);
        }
        Ok(row)
    }

    /// Reads one row from the read replica `replica_id` of its region, from nowhere else; 0 is the primary. Follows: `Query#setReplicaId`.
    ///
    /// # Errors
    /// The region has no such replica, as far as hbase:meta says; what the server refuses, or that it could not be reached in time.
    pub async fn get_from_replica(&self, get: &Get, replica_id: u32) -> Result<Row> {
        if replica_id == 0 {
            return self.get_from_primary(get).await;
        }
        let mut retry = self.cluster.retry(self.manner.reading());
        let mut known = self.cluster.locate(&self.cache, &get.row, Side::Current).await?;
        loop {
            let asked = async {
                let replica = self.cluster.locate_replica(&self.cache, &known, replica_id).await?;
                self.get_from(get, replica).await
            };
            let failed = match asked.await {
                Ok(row) => return Ok(row),
                Err(error) if error.may_pass() => error,
                Err(error) => return Err(error),
            };
            retry.pause(failed).await?;
            // hbase:meta may be on its way, too.
            match self.cluster.locate_anew(&self.cache, &get.row).await {
                Ok(located) => known = located,
                Err(error) if error.may_pass() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// One replica's answer, in one try: others are asked beside it.
    async fn get_from(&self, get: &Get, replica: Arc<Located>) -> Result<Row> {
        let message = pb::GetRequest { get: convert::to_proto::get(get), region: replica.specifier.clone() };
        let request = Request::new(Method::ClientGet, &message).timeout(self.manner.reading().rpc_timeout);
        let reply = self.start(&replica, request).await?.await?;
        let response: pb::GetResponse = reply.decode()?;
        response.result.map_or_else(|| Ok(Row::default()), |result| row_of(&result, &reply))
    }
}

/// What comes of `then` while `answer` goes on: that may be what `then` waits for, as a region that it is looking for itself. Where the answer comes
/// first, it is given, and `then` goes on only if it was an error.
async fn beside<T, U>(
    answer: &mut Pin<Box<dyn Future<Output = Result<T>> + Send + '_>>,
    then: impl Future<Output = U>,
) -> (Option<Result<T>>, Option<U>) {
    let mut then = std::pin::pin!(then);
    let mut ended = None;
    std::future::poll_fn(|context| {
        if ended.is_none()
            && let Poll::Ready(answer) = answer.as_mut().poll(context)
        {
            let is_row = answer.is_ok();
            ended = Some(answer);
            if is_row {
                return Poll::Ready((ended.take(), None));
            }
        }
        then.as_mut().poll(context).map(|done| (ended.take(), Some(done)))
    })
    .await
}

/// The first of the answers that is none but an error, and whose it is; the first one's error when all are errors. The others are dropped.
async fn first_of<T>(mut asked: Vec<Pin<Box<dyn Future<Output = Result<T>> + Send + '_>>>) -> Result<(usize, T)> {
    let mut failed: Vec<Option<Error>> = asked.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (at, answer) in asked.iter_mut().enumerate() {
            if failed[at].is_some() {
                continue;
            }
            match answer.as_mut().poll(context) {
                Poll::Ready(Ok(value)) => return Poll::Ready(Ok((at, value))),
                Poll::Ready(Err(e)) => failed[at] = Some(e),
                Poll::Pending => {}
            }
        }
        if failed.iter().any(Option::is_none) {
            return Poll::Pending;
        }
        let none = || Error::Request("no replica was asked".to_owned());
        Poll::Ready(Err(failed.iter_mut().find_map(Option::take).unwrap_or_else(none)))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(result: Result<u32>) -> Pin<Box<dyn Future<Output = Result<u32>> + Send>> {
        Box::pin(std::future::ready(result))
    }

    fn no(why: &str) -> Result<u32> {
        Err(Error::Request(why.to_owned()))
    }

    /// A get whose primary looks for its region, which the lookup of the replicas waits for, waited for ever.
    #[tokio::test]
    async fn a_lookup_of_replicas_does_not_stop_what_it_waits_for() {
        let (found, finding) = tokio::sync::oneshot::channel::<u32>();
        let mut primary: Pin<Box<dyn Future<Output = Result<u32>> + Send>> = Box::pin(async move {
            tokio::task::yield_now().await;
            found.send(3).expect("somebody waits");
            std::future::pending().await
        });
        let lookup = async { finding.await.expect("found") };
        assert!(matches!(beside(&mut primary, lookup).await, (None, Some(3))));
        let slow = || std::future::pending::<u32>();
        assert!(matches!(beside(&mut ready(Ok(5)), slow()).await, (Some(Ok(5)), None)), "its row is enough");
        let (ended, located) = beside(&mut ready(no("exhausted")), async { 4 }).await;
        assert!(matches!((ended, located), (Some(Err(_)), Some(4))), "the replicas are asked");
    }

    #[tokio::test]
    async fn the_first_answer_counts_and_errors_only_when_there_is_none() {
        let never = || -> Pin<Box<dyn Future<Output = Result<u32>> + Send>> { Box::pin(std::future::pending()) };
        assert_eq!(first_of(vec![never(), ready(no("x")), ready(Ok(7))]).await.ok(), Some((2, 7)));
        assert_eq!(first_of(vec![ready(Ok(1)), never()]).await.ok(), Some((0, 1)));
        let all = first_of(vec![ready(no("primary")), ready(no("replica"))]).await.expect_err("none answered");
        assert_eq!(all.to_string(), "primary");
    }
}
