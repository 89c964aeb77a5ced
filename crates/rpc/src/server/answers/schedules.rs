//! All interleavings of those who answer and the connection that sends.

use super::*;
use crate::Reply;
use base::sync::atomic::{AtomicBool, Ordering::SeqCst};
use base::sync::{explore, thread};
use std::task::Wake;

struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

/// Two threads answer, one call each is dropped; the connection sleeps whenever there is nothing to take.
#[test]
fn every_answer_wakes_a_connection_that_sleeps() {
    explore(|| {
        let inbox = Inbox::new(Arc::default(), None, super::super::capped_ledger(u64::MAX), usize::MAX);
        let answering: Vec<_> = (0..2_u32)
            .map(|thread_number| {
                let responders: Vec<_> = (0..2).map(|n| inbox.responder(thread_number * 2 + n, 0, 10)).collect();
                thread::spawn(move || {
                    for responder in responders {
                        if responder.id % 2 == 0 {
                            responder.answer(Ok(Reply::default()));
                        }
                    }
                })
            })
            .collect();
        let mut got = Vec::new();
        let bell = Arc::new(Bell(AtomicBool::new(false)));
        let waker = Waker::from(bell.clone());
        while got.len() < 4 {
            while inbox.poll_any(&mut Context::from_waker(&waker)).is_pending() {
                let mut turns = 0;
                while !bell.0.swap(false, SeqCst) {
                    thread::yield_now();
                    turns += 1;
                    assert!(turns < 10_000, "nobody wakes the connection");
                }
            }
            let mut taken = Vec::new();
            inbox.take(&mut taken);
            got.extend(taken.into_iter().map(|(id, result)| (id, result.is_ok())));
        }
        got.sort_unstable();
        assert_eq!(got, [(0, true), (1, false), (2, true), (3, false)]);
        answering.into_iter().for_each(|thread| thread.join().expect("answered"));
        assert_eq!(inbox.ledger.total_bytes(), 0);
    });
}

/// Takes half of what it is given, then nothing once, and from then on all.
#[derive(Debug, Default)]
struct Narrow(AtomicU64);

impl Sink for Narrow {
    fn try_write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.0.fetch_add(1, SeqCst) {
            1 => Err(io::ErrorKind::WouldBlock.into()),
            turn => {
                let len = pieces.iter().map(|piece| piece.len()).sum::<usize>();
                Ok(if turn == 0 { len.div_ceil(2) } else { len })
            }
        }
    }
}

/// One thread answers groups and sends, another answers and wakes; the connection comes and goes.
#[test]
fn every_answer_is_sent_through_a_parked_writer_or_by_the_task() {
    explore(|| {
        let inbox = Inbox::new(Arc::default(), None, super::super::capped_ledger(u64::MAX), usize::MAX);
        let conn = Arc::new(crate::ConnInfo {
            id: 1,
            peer: ([127, 0, 0, 1], 1).into(),
            user: Arc::from(""),
            service: proto::methods::Service::Client,
            codec: None,
            compressor: None,
            version: None,
            attributes: Vec::new(),
            load: std::sync::OnceLock::new(),
        });
        let socket: Arc<dyn Sink> = Arc::new(Narrow::default());
        let mut parked =
            ParkedWriter { output: Output::default(), in_flight: 4, has_sent: false, conn: conn.clone(), socket };
        let mut responders: Vec<_> = (0..4).map(|n| inbox.responder(n, 0, 10)).collect();
        let other = responders.pop();
        let last = responders.pop();
        let answering = [
            thread::spawn(move || {
                answer_together(|| responders.into_iter().for_each(|r| r.answer(Ok(Reply::default()))));
                answer_together(|| drop(last));
            }),
            thread::spawn(move || drop(other)),
        ];
        let bell = Arc::new(Bell(AtomicBool::new(false)));
        let waker = Waker::from(bell.clone());
        let mut answers = Vec::new();
        while parked.in_flight > 0 || !parked.output.is_empty() {
            inbox.take(&mut answers);
            for (id, result) in answers.drain(..) {
                parked.in_flight -= 1;
                parked.output.answer(id, result, &conn, &inbox.counters);
            }
            if !parked.output.is_empty() {
                parked.output.send(&*parked.socket, &inbox.counters).expect("it never breaks");
            }
            if !parked.output.is_empty() || parked.in_flight == 0 {
                continue;
            }
            inbox.park(parked);
            let mut turns = 0;
            while inbox.poll_any(&mut Context::from_waker(&waker)).is_pending() && !bell.0.swap(false, SeqCst) {
                thread::yield_now();
                turns += 1;
                let is_done = |parked: &ParkedWriter| parked.in_flight == 0 && parked.output.is_empty();
                if inbox.parked.lock().as_ref().is_some_and(is_done) {
                    break;
                }
                assert!(turns < 10_000, "nobody answers and nobody wakes the connection");
            }
            parked = inbox.unpark().expect("nobody else takes it");
        }
        answering.into_iter().for_each(|thread| thread.join().expect("answered"));
        assert_eq!(inbox.ledger.total_bytes(), 0);
    });
}

#[test]
fn an_answer_to_a_connection_that_ends_is_forgotten_once() {
    explore(|| {
        let inbox = Inbox::new(Arc::default(), None, super::super::capped_ledger(u64::MAX), usize::MAX);
        let responder = inbox.responder(1, 0, 10);
        let answering = thread::spawn(move || responder.answer(Ok(Reply::default())));
        inbox.close();
        answering.join().expect("answered");
        let mut left = Vec::new();
        inbox.take(&mut left);
        assert!(left.is_empty());
        assert_eq!(inbox.ledger.total_bytes(), 0);
    });
}
