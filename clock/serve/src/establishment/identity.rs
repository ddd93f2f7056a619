//! The certificate and the private key that the server shows itself with, and the TLS that follows from them.
//!
//! TLS 1.3 alone, no session is resumed, no secret is ever written to a key log: each connection is one establishment
//! (RFC 8915, section 3), so tickets would serve no client and only keep secrets for longer.

use ffclock_nts::{CertificateTime, certificate_end};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, crypto};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the protocol inside TLS (RFC 8915, section 4).
pub(super) const ALPN: &[u8] = b"ntske/1";

/// No file of certificates or keys is longer.
const LONGEST_FILE: u64 = 1 << 20;
/// What the mode of a key's file may not have: any right for others, and writing for its group. A group that may read
/// is how a key is handed to a service.
const FORBIDDEN_MODE: u32 = 0o027;

/// Where the server's certificate and key are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityFiles {
    /// The chain in PEM, the server's own certificate first.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}

/// What the server shows itself with.
#[derive(Clone, Debug)]
pub struct ShownIdentity {
    /// The TLS that follows from certificate and key.
    pub tls: Arc<ServerConfig>,
    /// The end of the server's own certificate; `None` where its form is not understood.
    pub certificate_end: Option<CertificateTime>,
}

/// Why the server cannot show itself.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, io::Error),
    /// Others may read or write the key.
    #[error("{0} holds a private key and has mode {1:04o}: others must have no right to it (chmod 0640 or 0600)")]
    OpenToOthers(PathBuf, u32),
    /// The file is no certificate.
    #[error("{0} holds no certificate in PEM: {1}")]
    NoCertificate(PathBuf, pem::Error),
    /// The file is no key.
    #[error("{0} holds no private key in PEM: {1}")]
    NoKey(PathBuf, pem::Error),
    /// The pair does not fit together, or its algorithm is not supported.
    #[error("{0} and {1} cannot be used together: {2}")]
    Unusable(PathBuf, PathBuf, rustls::Error),
}

impl IdentityFiles {
    /// Reads both and makes the TLS of the server.
    ///
    /// # Errors
    /// As [`IdentityError`] says; nothing is changed then.
    pub fn read(&self) -> Result<ShownIdentity, IdentityError> {
        let chain = self.chain()?;
        let certificate_end = chain.first().and_then(|own| certificate_end(own));
        let key = self.private_key()?;
        let unusable = |error| IdentityError::Unusable(self.certificate.clone(), self.key.clone(), error);
        let provider = Arc::new(crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(ShownIdentity { tls: Arc::new(config), certificate_end })
    }

    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
        let (text, _) = read(&self.certificate)?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let chain = chain.and_then(|chain| if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) });
        chain.map_err(|error| IdentityError::NoCertificate(self.certificate.clone(), error))
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, IdentityError> {
        let (text, mode) = read(&self.key)?;
        if mode & FORBIDDEN_MODE != 0 {
            return Err(IdentityError::OpenToOthers(self.key.clone(), mode));
        }
        PrivateKeyDer::from_pem_slice(&text).map_err(|error| IdentityError::NoKey(self.key.clone(), error))
    }
}

/// The octets of a file, and the permissions of the very file that they were read from.
fn read(path: &Path) -> Result<(Vec<u8>, u32), IdentityError> {
    let attempt = || {
        let file = File::open(path)?;
        let mode = file.metadata()?.mode() & 0o7777;
        let mut text = Vec::new();
        file.take(LONGEST_FILE).read_to_end(&mut text)?;
        Ok((text, mode))
    };
    attempt().map_err(|error| IdentityError::Unreadable(path.to_owned(), error))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// A fresh certificate for `localhost` and its key, in files of their own.
    pub(crate) fn made_for(name: &str) -> (IdentityFiles, CertificateDer<'static>) {
        let directory = std::env::temp_dir().join(format!("ffclock-identity-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let files = IdentityFiles { certificate: directory.join("chain.pem"), key: directory.join("key.pem") };
        fs::write(&files.certificate, made.cert.pem()).unwrap();
        fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        fs::set_permissions(&files.key, fs::Permissions::from_mode(0o600)).unwrap();
        (files, made.cert.der().clone())
    }

    fn remove(files: &IdentityFiles) {
        fs::remove_dir_all(files.key.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_pair_that_fits_is_taken_and_nothing_of_a_session_is_kept() {
        let (files, _) = made_for("fits");
        let ShownIdentity { tls: config, certificate_end } = files.read().unwrap();
        assert!(certificate_end.is_some());
        assert_eq!(config.alpn_protocols, [ALPN.to_vec()]);
        assert_eq!(config.send_tls13_tickets, 0);
        assert_eq!(config.max_early_data_size, 0);
        assert!(!config.session_storage.can_cache());
        assert!(!config.key_log.will_log("CLIENT_RANDOM"));
        remove(&files);
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let (files, _) = made_for("mode");
        for (mode, is_fine) in [(0o600, true), (0o640, true), (0o400, true), (0o660, false), (0o604, false)] {
            fs::set_permissions(&files.key, fs::Permissions::from_mode(mode)).unwrap();
            let result = files.read();
            assert_eq!(result.is_ok(), is_fine, "{mode:o}");
            if let Err(error) = result {
                assert!(error.to_string().contains("others must have no right"), "{error}");
            }
        }
        remove(&files);
    }

    #[test]
    fn each_fault_names_its_file() {
        let (files, _) = made_for("fault");
        let (other, _) = made_for("fault-other");
        let fault = |certificate: &Path, key: &Path| {
            IdentityFiles { certificate: certificate.to_owned(), key: key.to_owned() }.read().unwrap_err().to_string()
        };
        let missing = Path::new("/nonexistent/file");
        assert!(fault(missing, &files.key).starts_with("cannot read /nonexistent/file"));
        assert!(fault(&files.certificate, missing).starts_with("cannot read /nonexistent/file"));
        assert!(fault(&files.key, &files.key).contains("holds no certificate"));
        let swapped = fault(&files.certificate, &other.key);
        assert!(swapped.contains("cannot be used together"), "{swapped}");
        fs::write(&files.key, "nonsense").unwrap();
        assert!(fault(&files.certificate, &files.key).contains("holds no private key"));
        remove(&files);
        remove(&other);
    }
}
