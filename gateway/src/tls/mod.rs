//! TLS in the three ways of TDS: the whole connection from its first byte (TDS 8 strict, ASE), all of a 7.x
//! connection from PRELOGIN on, or the login of a 7.x client alone. MS-TDS 2.2.6.5, 3.3.5.2.

mod certificate;
mod login_key;
mod transport;
mod tunnel;

pub use certificate::self_signed;
pub use login_key::{nonce, KeyError, LoginKey, OwnKey};
pub use transport::Transport;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, SupportedProtocolVersion};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// The ALPN name of TDS 8 clients for their protocol inside TLS.
const ALPN: &[u8] = b"tds/8.0";

/// The gateway's settings of encryption.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    acceptors: ArcSwap<Acceptors>,
    /// Logins without TLS are refused.
    pub required: bool,
}

struct Acceptors {
    /// From the first byte on.
    strict: TlsAcceptor,
    /// Inside PRELOGIN packets. With TLS 1.3 the server would send more after the handshake, which these packets do not
    /// allow.
    tunnelled: TlsAcceptor,
}

/// The reason why TLS is not available.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{path}: {problem}")]
    File { path: String, problem: String },
    #[error("certificate and key: {0}")]
    Config(#[from] rustls::Error),
}

impl Tls {
    /// From PEM files: a certificate with its chain, and its key.
    pub fn load(certificate: PathBuf, key: PathBuf, required: bool) -> Result<Tls, TlsError> {
        let acceptors = ArcSwap::from_pointee(Acceptors::load(&certificate, &key)?);
        Ok(Tls { certificate, key, acceptors, required })
    }

    /// Reads the files again, for connections that begin later. After an error the previous ones remain in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.acceptors.store(Arc::new(Acceptors::load(&self.certificate, &self.key)?));
        Ok(())
    }

    fn acceptor(&self, in_packets: bool) -> TlsAcceptor {
        let acceptors = self.acceptors.load();
        if in_packets {
            acceptors.tunnelled.clone()
        } else {
            acceptors.strict.clone()
        }
    }
}

impl Acceptors {
    fn load(certificate: &Path, key: &Path) -> Result<Acceptors, TlsError> {
        let problem =
            |path: &Path, problem: String| TlsError::File { path: path.display().to_string(), problem };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)
            .map_err(|error| problem(certificate, error.to_string()))?
            .collect();
        let chain = chain.map_err(|error| problem(certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(problem(certificate, "holds no certificate".into()));
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| problem(key, error.to_string()))?;
        let mut strict = config(&[&rustls::version::TLS13, &rustls::version::TLS12], chain.clone(), &key)?;
        strict.alpn_protocols = vec![ALPN.to_vec()];
        let tunnelled = config(&[&rustls::version::TLS12], chain, &key)?;
        Ok(Acceptors {
            strict: TlsAcceptor::from(Arc::new(strict)),
            tunnelled: TlsAcceptor::from(Arc::new(tunnelled)),
        })
    }
}

fn config(
    versions: &[&'static SupportedProtocolVersion],
    chain: Vec<CertificateDer<'static>>,
    key: &PrivateKeyDer<'static>,
) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .with_no_client_auth()
        .with_single_cert(chain, key.clone_key())?;
    // connections are long-lived, and in a resumed handshake the client would send first
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}
