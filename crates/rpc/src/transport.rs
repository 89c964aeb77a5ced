//! What carries a connection's bytes: a byte stream whose two directions are used apart.
//!
//! The server's and the client's ends know only [`Transport`]. TCP is one ([`tokio::net::TcpStream`]), and a pipe in memory ([`pipe`]), which
//! tests and simulations use; one that encrypts or wraps messages (TLS, SASL) is a third that needs nothing new from either end.
//!
//! Always true: bytes come out in the order in which they went in, each once; a peer that is gone shows as end of file to the reader and as an
//! error to the writer.

mod pipe;

use std::fmt::Debug;
use std::future::Future;
use std::io::{self, IoSlice};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

pub use pipe::{Pipe, pipe};

/// A connected byte stream.
pub trait Transport: AsyncRead + AsyncWrite + Unpin + Send + Sized + 'static {
    /// Its incoming direction.
    type Reader: AsyncRead + Unpin + Send + 'static;
    /// Its outgoing direction.
    type Writer: TransportWriter + AsyncWrite + Unpin;

    /// Its two directions.
    fn split(self) -> (Self::Reader, Self::Writer);

    /// The stream again; `None` when they are not of one stream.
    fn unsplit(reader: Self::Reader, writer: Self::Writer) -> Option<Self>;
}

/// The outgoing direction of a [`Transport`]. Any thread may write: whoever makes replies while the connection's task sleeps.
pub trait TransportWriter: Send + Sync + Debug + 'static {
    /// Writes as much as goes without waiting; how many bytes that was.
    ///
    /// # Errors
    /// `WouldBlock`: nothing goes now, see [`TransportWriter::writable`]. Others: the connection is broken.
    fn try_write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Waits until something can be written. May return too early.
    ///
    /// # Errors
    /// The connection is broken.
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;
}

impl Transport for TcpStream {
    type Reader = OwnedReadHalf;
    type Writer = OwnedWriteHalf;

    fn split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        self.into_split()
    }

    fn unsplit(reader: OwnedReadHalf, writer: OwnedWriteHalf) -> Option<TcpStream> {
        reader.reunite(writer).ok()
    }
}

impl TransportWriter for OwnedWriteHalf {
    fn try_write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_write_vectored(pieces)
    }

    async fn writable(&self) -> io::Result<()> {
        OwnedWriteHalf::writable(self).await
    }
}
