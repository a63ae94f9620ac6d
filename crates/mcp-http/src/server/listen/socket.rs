//! Where a listener listens: at an address, or at a path.
//!
//! Why here: what follows sees bytes and, where there is one, the address of who sent them.
//! Invariants: a path that somebody listens at is not taken from them; a path that we made goes with us.

use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;

/// A bound socket.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixSocket),
}

/// The bytes of a connection. Behind a pointer, so that hyper is compiled once for all kinds.
pub(super) type Stream = Box<dyn ByteStream>;

pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

impl Socket {
    /// The next connection, and the address of its other end.
    pub(super) async fn accept(&self) -> io::Result<(Stream, Option<SocketAddr>)> {
        match self {
            Self::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                // Small frames go out at once; a failure costs speed only.
                let _ = stream.set_nodelay(true);
                Ok((Box::new(stream), Some(peer)))
            }
            #[cfg(unix)]
            Self::Unix(socket) => Ok((Box::new(socket.listener.accept().await?.0), None)),
        }
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(socket) => socket.local_addr(),
            #[cfg(unix)]
            Self::Unix(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "a path has no address")),
        }
    }
}

/// A socket at a path, which is removed with it.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The file that was made, to tell it from one that took its place.
    made: (u64, u64),
}

#[cfg(unix)]
impl UnixSocket {
    /// Listens at a path that only this user may open.
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path) => {
                std::fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            bound => bound?,
        };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, path: path.to_owned(), made: file_at(path)? })
    }
}

#[cfg(unix)]
impl Drop for UnixSocket {
    fn drop(&mut self) {
        if file_at(&self.path).is_ok_and(|file| file == self.made) {
            // Left behind, it is taken over by the next who binds.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether the path is a socket that nobody listens at any more.
#[cfg(unix)]
fn is_left_over(path: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        && std::fs::symlink_metadata(path).is_ok_and(|found| {
            use std::os::unix::fs::FileTypeExt as _;
            found.file_type().is_socket()
        })
}

/// The identity of the file at a path.
#[cfg(unix)]
fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn a_path_in_use_is_refused_a_path_left_over_is_taken_and_ours_goes_with_us() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        // A socket whose owner did not clean up.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let ours = UnixSocket::bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(UnixSocket::bind(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // Somebody else's file at the same path is not ours to remove.
        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        std::fs::write(&path, "a file").unwrap();
        assert_eq!(UnixSocket::bind(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(ours);
        assert!(path.exists());
        std::fs::remove_file(&path).unwrap();
        drop(UnixSocket::bind(&path).unwrap());
        assert!(!path.exists());
    }
}
