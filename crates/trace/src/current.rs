//! Where in a trace the work is that this thread does.

use crate::CallTrace;
use crate::span::{Place, Span};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::sync::Arc;

std::thread_local! {
    static CURRENT: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// The place of this thread's work; `None` when that is not traced.
#[inline]
pub fn current() -> Option<Place> {
    CURRENT.with_borrow(Clone::clone)
}

/// Begins a part of what this thread does, if that is traced.
#[inline]
pub fn begin(name: &'static str) -> Option<Span> {
    CURRENT.with_borrow(|place| place.as_ref().map(|place| place.begin(name)))
}

/// Until the guard is dropped this thread works on `trace`, if that is one.
#[inline]
pub fn enter(trace: Option<&Arc<CallTrace>>) -> Entered {
    Entered::at(trace.map(|trace| trace.place()))
}

/// As [`enter`], at a place.
#[inline]
pub fn enter_at(place: Option<Place>) -> Entered {
    Entered::at(place)
}

/// Does `work` at `place`, whichever threads that is on. Where there is none it costs nothing.
pub async fn within<F: Future>(place: Option<Place>, work: F) -> F::Output {
    let Some(place) = place else { return work.await };
    let mut work = std::pin::pin!(work);
    poll_fn(|context| {
        let _entered = Entered::at(Some(place.clone()));
        work.as_mut().poll(context)
    })
    .await
}

impl Span {
    /// Until the guard is dropped this thread works on this span: what begins is a part of it.
    pub fn enter(&self) -> Entered {
        Entered::at(Some(self.place.clone()))
    }
}

/// The thread's work is at a place. Guards are dropped in the reverse order.
#[must_use = "it holds until it is dropped"]
pub struct Entered {
    before: Option<Place>,
    /// Nothing to put back.
    is_nowhere: bool,
    /// It belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl Entered {
    #[inline]
    fn at(place: Option<Place>) -> Entered {
        let is_nowhere = place.is_none();
        let before = if is_nowhere { None } else { CURRENT.replace(place) };
        Entered { before, is_nowhere, thread: PhantomData }
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        if !self.is_nowhere {
            CURRENT.set(self.before.take());
        }
    }
}
