//! Several futures at once, in the task of whoever waits for them.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// What all of `futures` bring, in their order.
pub(crate) async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn outputs_are_in_the_futures_order() {
        let (later, now) = tokio::sync::oneshot::channel::<u32>();
        let mut later = Some(later);
        let futures: Vec<Pin<Box<dyn Future<Output = u32>>>> = vec![
            Box::pin(async { now.await.expect("sent") }),
            Box::pin(async move {
                tokio::task::yield_now().await;
                later.take().expect("once").send(1).expect("waited for");
                2
            }),
        ];
        assert_eq!(all(futures).await, [1, 2]);
        assert!(all(Vec::<Pin<Box<dyn Future<Output = u32>>>>::new()).await.is_empty());
    }
}
