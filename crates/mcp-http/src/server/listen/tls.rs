//! TLS for a listener: certificates that can be replaced while it serves.
//!
//! Why here: whoever has no proxy in front can still be called over a network.
//! Invariants: a connection keeps the certificate it began with; what cannot be read replaces nothing.

use std::fmt;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The certificate of a listener, for TLS 1.2 and 1.3. Clones share it: keep one to replace the certificate before it
/// expires. Connections that are open go on with the old one.
#[derive(Clone)]
pub struct Tls(Arc<ArcSwap<ServerConfig>>);

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The text holds no certificate.
    #[error("there is no certificate in the PEM text")]
    NoCertificate,
    /// The text is not PEM, or holds no private key.
    #[error("the PEM text cannot be read: {0}")]
    Pem(#[from] pem::Error),
    /// The key is of no supported kind, or does not belong to the certificate.
    #[error("the certificate cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

impl Tls {
    /// A certificate, followed by those that vouch for it, and its private key (PKCS#8, PKCS#1 or SEC1), both in PEM.
    /// Clients need no certificate.
    ///
    /// # Errors
    /// When either cannot be read, or they do not belong together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Ok(Self::from_config(read_pem(certificates, key)?))
    }

    /// A configuration of one's own, to ask clients for certificates or to choose by the name they call. The protocols
    /// that are offered (ALPN) are the listener's, whatever it says.
    #[must_use]
    pub fn from_config(config: ServerConfig) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(offering(config))))
    }

    /// As [`Self::from_pem`], for connections to come.
    ///
    /// # Errors
    /// As there; the certificate in use stays.
    pub fn replace_pem(&self, certificates: &[u8], key: &[u8]) -> Result<(), TlsError> {
        self.replace(read_pem(certificates, key)?);
        Ok(())
    }

    /// As [`Self::from_config`], for connections to come.
    pub fn replace(&self, config: ServerConfig) {
        self.0.store(Arc::new(offering(config)));
    }

    /// Makes a connection a secured one.
    pub(super) async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        TlsAcceptor::from(self.0.load_full()).accept(stream).await
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration holds the key.
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

fn read_pem(certificates: &[u8], key: &[u8]) -> Result<ServerConfig, TlsError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificates).collect::<Result<_, _>>()?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key)?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(config)
}

fn offering(mut config: ServerConfig) -> ServerConfig {
    config.alpn_protocols =
        if cfg!(feature = "http2") { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn what_cannot_be_used_is_refused_and_replaces_nothing() {
        let ((certificate, key), (_, foreign)) = (certificate(), certificate());
        let tls = Tls::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let before = tls.0.load_full();
        let refused =
            |certificate: &str, key: &str| tls.replace_pem(certificate.as_bytes(), key.as_bytes()).unwrap_err();
        assert!(matches!(refused("", &key), TlsError::NoCertificate));
        assert!(matches!(refused(&key, &key), TlsError::NoCertificate));
        assert!(matches!(refused(&certificate, ""), TlsError::Pem(pem::Error::NoItemsFound)));
        assert!(matches!(refused(&certificate, &foreign), TlsError::Unusable(_)));
        assert!(Arc::ptr_eq(&before, &tls.0.load_full()));
        tls.replace_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        assert!(!Arc::ptr_eq(&before, &tls.0.load_full()));
    }

    #[test]
    fn the_key_is_not_shown() {
        let (certificate, key) = certificate();
        let tls = Tls::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        assert_eq!(format!("{tls:?}"), "Tls { .. }");
    }
}
