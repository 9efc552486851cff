//! The key for encrypted passwords of TDS 5.0 clients: RSA with OAEP and SHA-1, the method that they support. It is
//! generated for the first such client and kept for the life of the process. It protects against eavesdroppers as well
//! as TLS does, but not against a man in the middle, since the key is not certified.

use rsa::pkcs1::{EncodeRsaPublicKey, LineEnding};
use rsa::rand_core::{OsRng, RngCore};
use rsa::{Oaep, RsaPrivateKey};
use sha1::Sha1;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

const BITS: usize = 2048;
pub const NONCE: usize = 32;

pub struct LoginKey {
    key: RsaPrivateKey,
    /// The public half in PKCS #1, as PEM.
    pub public: String,
}

impl LoginKey {
    /// Generates a key, which takes some time.
    pub fn generate() -> Result<LoginKey, rsa::Error> {
        let key = RsaPrivateKey::new(&mut OsRng, BITS)?;
        let public = key.to_public_key().to_pkcs1_pem(LineEnding::LF).map_err(rsa::Error::Pkcs1)?;
        Ok(LoginKey { key, public })
    }

    /// Decrypts a password that the client has encrypted together with `nonce`; None if it has not.
    pub fn decrypt(&self, nonce: &[u8], encrypted: &[u8]) -> Option<Vec<u8>> {
        let clear = self.key.decrypt_blinded(&mut OsRng, Oaep::new::<Sha1>(), encrypted).ok()?;
        clear.strip_prefix(nonce).map(<[u8]>::to_vec)
    }
}

pub type KeyError = Box<dyn std::error::Error + Send + Sync>;

/// The process's key, generated at its first use.
#[derive(Default)]
pub struct OwnKey(OnceCell<LoginKey>);

impl OwnKey {
    pub async fn get(&self) -> Result<&LoginKey, KeyError> {
        self.0.get_or_try_init(|| async { Ok(spawn_blocking(LoginKey::generate).await??) }).await
    }
}

pub fn nonce() -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    OsRng.fill_bytes(&mut nonce);
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_is_one_key() {
        let own = OwnKey::default();
        let (one, other) = tokio::join!(own.get(), own.get());
        assert!(std::ptr::eq(one.unwrap(), other.unwrap()));
    }

    #[test]
    fn only_what_stands_behind_the_nonce_is_a_password() {
        let key = LoginKey::generate().unwrap();
        assert!(key.public.starts_with("-----BEGIN RSA PUBLIC KEY-----\n"));
        let nonce = nonce();
        let encrypt =
            |clear: &[u8]| key.key.to_public_key().encrypt(&mut OsRng, Oaep::new::<Sha1>(), clear).unwrap();
        let password = [&nonce[..], b"secret"].concat();
        assert_eq!(key.decrypt(&nonce, &encrypt(&password)).as_deref(), Some(&b"secret"[..]));
        assert_eq!(key.decrypt(&[0; NONCE], &encrypt(&password)), None);
        assert_eq!(key.decrypt(&nonce, &encrypt(b"secret")), None);
        assert_eq!(key.decrypt(&nonce, b"garbage"), None);
        assert_eq!(key.decrypt(&nonce, &[]), None);
    }
}
