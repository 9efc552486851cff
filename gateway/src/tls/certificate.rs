//! Self-signed certificates, for servers without one.

use rcgen::{CertificateParams, DnType, KeyPair};
use std::time::{Duration, SystemTime};

/// A certificate for these host names and addresses and its key, both as PEM.
pub fn self_signed(names: Vec<String>, days: u32) -> Result<(String, String), rcgen::Error> {
    let common_name = names.first().cloned().unwrap_or_default();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    let now = SystemTime::now();
    // clocks of old hosts run behind
    params.not_before = (now - Duration::from_secs(86_400)).into();
    params.not_after = (now + Duration::from_secs(86_400 * u64::from(days))).into();
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}
