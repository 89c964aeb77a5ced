//! A connection in memory: two ends, a bounded buffer in each direction.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Transport, TransportWriter};

/// Two ends of a connection; each direction holds at most `capacity_bytes` that were written and not yet read.
pub fn pipe(capacity_bytes: usize) -> (Pipe, Pipe) {
    let direction = || Arc::new(Direction { capacity_bytes, state: Mutex::default() });
    let (there, back) = (direction(), direction());
    let one = Pipe { reader: PipeReader(back.clone()), writer: PipeWriter(there.clone()) };
    (one, Pipe { reader: PipeReader(there), writer: PipeWriter(back) })
}

/// One direction.
#[derive(Debug)]
struct Direction {
    capacity_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bytes: VecDeque<u8>,
    /// No more is written: the writer is gone or has shut its direction down.
    written_out: bool,
    /// Nobody reads any more.
    abandoned: bool,
    reader: Option<Waker>,
    /// The connection's task and another thread may both wait to write.
    writers: Vec<Waker>,
}

impl Direction {
    fn write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.state.lock();
        if state.abandoned || state.written_out {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut room = self.capacity_bytes.saturating_sub(state.bytes.len());
        if room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let before = state.bytes.len();
        for piece in pieces {
            let taken = piece.len().min(room);
            state.bytes.extend(&piece[..taken]);
            room -= taken;
        }
        let written = state.bytes.len() - before;
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        Ok(written)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state.lock();
        if state.abandoned || state.written_out || state.bytes.len() < self.capacity_bytes {
            return Poll::Ready(Ok(()));
        }
        if !state.writers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.writers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn poll_read(&self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state.lock();
        if state.bytes.is_empty() {
            if state.written_out || into.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let (front, _) = state.bytes.as_slices();
        let taken = front.len().min(into.remaining());
        into.put_slice(&front[..taken]);
        state.bytes.drain(..taken);
        let writers = std::mem::take(&mut state.writers);
        drop(state);
        writers.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }

    /// The end of one side: the other learns of it.
    fn end(&self, by_reader: bool) {
        let mut state = self.state.lock();
        if by_reader {
            state.abandoned = true;
            state.bytes = VecDeque::new();
        } else {
            state.written_out = true;
        }
        let wakers: Vec<Waker> = state.reader.take().into_iter().chain(std::mem::take(&mut state.writers)).collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// One end of a connection in memory.
#[derive(Debug)]
pub struct Pipe {
    reader: PipeReader,
    writer: PipeWriter,
}

/// The incoming direction of a [`Pipe`].
#[derive(Debug)]
pub struct PipeReader(Arc<Direction>);

/// The outgoing direction of a [`Pipe`].
#[derive(Debug)]
pub struct PipeWriter(Arc<Direction>);

impl Drop for PipeReader {
    fn drop(&mut self) {
        self.0.end(true);
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        self.0.end(false);
    }
}

impl Transport for Pipe {
    type Reader = PipeReader;
    type Writer = PipeWriter;

    fn split(self) -> (PipeReader, PipeWriter) {
        (self.reader, self.writer)
    }

    fn unsplit(reader: PipeReader, writer: PipeWriter) -> Option<Pipe> {
        Some(Pipe { reader, writer })
    }
}

impl TransportWriter for PipeWriter {
    fn try_write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write(pieces)
    }

    async fn writable(&self) -> io::Result<()> {
        poll_fn(|cx| self.0.poll_writable(cx)).await
    }
}

impl AsyncRead for PipeReader {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.poll_read(cx, into)
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.reader.0.poll_read(cx, into)
    }
}

impl AsyncWrite for PipeWriter {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        std::task::ready!(self.0.poll_writable(cx))?;
        match self.0.write(&[IoSlice::new(bytes)]) {
            // Another thread was faster.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            written => Poll::Ready(written),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.end(false);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn bytes_come_out_as_they_went_in_though_the_buffer_is_small() {
        let (mut here, mut there) = pipe(7);
        let sent: Vec<u8> = (0..1000_u32).map(|n| n as u8).collect();
        let expected = sent.clone();
        let writing = tokio::spawn(async move {
            here.write_all(&sent).await.expect("taken");
            here.shutdown().await.expect("shut down");
            here
        });
        let mut got = Vec::new();
        there.read_to_end(&mut got).await.expect("read");
        assert_eq!(got, expected);
        drop(writing.await.expect("ran"));
    }

    #[tokio::test]
    async fn a_full_pipe_does_not_take_more_until_it_is_read() {
        let (here, mut there) = pipe(4);
        let (_reader, writer) = here.split();
        assert_eq!(writer.try_write(&[IoSlice::new(b"ab"), IoSlice::new(b"cdef")]).expect("taken"), 4);
        let full = writer.try_write(&[IoSlice::new(b"x")]).expect_err("full");
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        let mut two = [0; 2];
        let (writable, read) = tokio::join!(writer.writable(), there.read_exact(&mut two));
        writable.expect("open");
        read.expect("two");
        assert_eq!(&two, b"ab");
        assert_eq!(writer.try_write(&[IoSlice::new(b"xyz")]).expect("taken"), 2);
    }

    #[tokio::test]
    async fn a_peer_that_is_gone_is_noticed_in_both_directions() {
        let (here, there) = pipe(4);
        let (mut reader, writer) = here.split();
        drop(there);
        assert_eq!(writer.try_write(&[IoSlice::new(b"x")]).expect_err("gone").kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(reader.read(&mut [0; 1]).await.expect("end of file"), 0);
    }
}
