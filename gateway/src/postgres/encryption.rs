//! TLS to PostgreSQL, by libpq's sslmode and sslrootcert (PostgreSQL: "SSL Support" in libpq's chapter).

use crate::stream::ServerStream;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_name, WebPkiServerVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// SSLRequest: its length and its code (PostgreSQL: "Message Formats").
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xD2, 0x16, 0x2F];

/// Whether connections to PostgreSQL are encrypted, and how the server is verified.
#[derive(Clone, Default)]
pub struct Encryption(Option<Wanted>);

#[derive(Clone)]
struct Wanted {
    connector: TlsConnector,
    /// Connections without TLS are refused.
    required: bool,
}

/// The reasons why there is no such encryption.
#[derive(Debug, thiserror::Error)]
pub enum EncryptionError {
    #[error("sslmode={0} is none of disable, allow, prefer, require, verify-ca, verify-full")]
    Mode(String),
    #[error("sslmode={0} needs a certificate to trust: name its file by sslrootcert")]
    NoRoot(String),
    #[error("sslrootcert={path}: {problem}")]
    Root { path: String, problem: String },
    #[error("TLS to PostgreSQL: {0}")]
    Config(#[from] Error),
}

impl Encryption {
    /// From libpq's settings. With a root the certificate is checked from `require` on, as in libpq.
    pub fn new(mode: &str, root: Option<&Path>) -> Result<Encryption, EncryptionError> {
        let check = match (mode, root) {
            ("disable" | "allow", _) => return Ok(Encryption(None)),
            ("prefer", _) | ("require", None) => Check::Nothing,
            ("require" | "verify-ca", Some(root)) => Check::Chain(roots(root)?),
            ("verify-full", Some(root)) => Check::ChainAndName(roots(root)?),
            ("verify-ca" | "verify-full", None) => return Err(EncryptionError::NoRoot(mode.to_owned())),
            _ => return Err(EncryptionError::Mode(mode.to_owned())),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Arc::new(Verifier::new(check, provider.clone())?);
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Encryption(Some(Wanted { connector, required: mode != "prefer" })))
    }

    /// Begins a connection: inside TLS if requested and available in PostgreSQL.
    pub async fn begin(&self, mut stream: TcpStream, host: &str) -> io::Result<Box<dyn ServerStream>> {
        let Some(Wanted { connector, required }) = &self.0 else { return Ok(Box::new(stream)) };
        stream.write_all(&SSL_REQUEST).await?;
        // only one byte: further plaintext bytes could come from an attacker
        match stream.read_u8().await? {
            b'S' => {}
            b'N' if !required => return Ok(Box::new(stream)),
            b'N' => return Err(io::Error::other("PostgreSQL has no TLS, which sslmode demands")),
            _ => return Err(io::Error::other("PostgreSQL does not know what TLS is")),
        }
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let encrypted = connector.connect(name, stream).await;
        let encrypted = encrypted.map_err(|error| io::Error::new(error.kind(), format!("TLS: {error}")))?;
        Ok(Box::new(encrypted))
    }
}

/// TLS to a server whose certificate is not checked.
pub fn unverified(versions: &[&'static SupportedProtocolVersion]) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        Verifier { provider: provider.clone(), chain: None, trusted: Vec::new(), checks_name: false };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match &self.0 {
            None => "none",
            Some(Wanted { required: false, .. }) => "preferred",
            Some(_) => "required",
        };
        write!(f, "Encryption({word})")
    }
}

fn roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, EncryptionError> {
    let problem = |problem: String| EncryptionError::Root { path: path.display().to_string(), problem };
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| problem(error.to_string()))?.collect();
    let found = found.map_err(|error| problem(error.to_string()))?;
    if found.is_empty() {
        return Err(problem("holds no certificate".into()));
    }
    Ok(found)
}

/// The verification of PostgreSQL's certificate, and the roots for it.
enum Check {
    Nothing,
    Chain(Vec<CertificateDer<'static>>),
    ChainAndName(Vec<CertificateDer<'static>>),
}

#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// None: any certificate is accepted.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates that are themselves trusted.
    trusted: Vec<CertificateDer<'static>>,
    checks_name: bool,
}

impl Verifier {
    fn new(check: Check, provider: Arc<CryptoProvider>) -> Result<Verifier, EncryptionError> {
        let (trusted, checks_name) = match check {
            Check::Nothing => {
                return Ok(Verifier { provider, chain: None, trusted: Vec::new(), checks_name: false })
            }
            Check::Chain(roots) => (roots, false),
            Check::ChainAndName(roots) => (roots, true),
        };
        let mut store = RootCertStore::empty();
        for root in &trusted {
            store.add(root.clone())?;
        }
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        Ok(Verifier { provider, chain: Some(chain), trusted, checks_name })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            // a self-signed certificate is marked as an authority, which webpki refuses for a server; dates are checked
            // before
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.trusted.iter().any(|trusted| trusted == end_entity) =>
            {
                if self.checks_name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
