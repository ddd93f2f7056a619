//! NTS as the server serves it: the keys of the cookies and their rotation, and the threads that establish keys.
//!
//! The keys follow from one secret and the date, so there is nothing to hand from thread to thread: the main thread
//! looks at the date and puts a new number on the board, and each thread derives nothing but takes what is there. A
//! thread that is a moment late still opens the cookies of one that is not.

mod options;

pub use options::{NtpHost, NtsConfig};

use crate::cookie_secret::{self, SecretError};
use crate::establishment::{
    Ending, EstablishmentLimits, EstablishmentPlan, EstablishmentServer, IdentityError, IdentityFiles, KeyGrants,
    ShownIdentity, listen,
};
use crate::policy::{Policy, PolicyBoard};
use ffclock_control::serve::NtsReport;
use ffclock_nts::{CertificateTime, CookieKeys, SECRET_BYTES};
use ffclock_service::Switchable;
use ffclock_sys::system_utc_now;
use ffclock_units::Span;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The port of NTP, which clients take without being asked to.
const NTP_PORT: u16 = 123;

/// Why NTS cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum NtsError {
    /// Only one of the two files is named.
    #[error("both `certificate` and `key` are needed")]
    HalfIdentity,
    /// The certificate or its key.
    #[error("{0}")]
    Identity(#[from] IdentityError),
    /// The secret of the cookies.
    #[error("{0}")]
    Secret(#[from] SecretError),
    /// A socket or a thread.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl NtsConfig {
    /// Where certificate and key are; `None` where NTS is not served.
    ///
    /// # Errors
    /// One of them is missing.
    pub fn identity(&self) -> Result<Option<IdentityFiles>, NtsError> {
        match (&self.certificate, &self.key) {
            (Switchable::On(certificate), Switchable::On(key)) => {
                Ok(Some(IdentityFiles { certificate: certificate.as_path().to_owned(), key: key.as_path().to_owned() }))
            }
            (Switchable::Off, Switchable::Off) => Ok(None),
            _ => Err(NtsError::HalfIdentity),
        }
    }

    /// Whether certificate and key can be used, for `--check-config`.
    ///
    /// # Errors
    /// As [`NtsError`] says.
    pub fn check(&self) -> Result<(), NtsError> {
        match self.identity()? {
            Some(identity) => Ok(identity.read().map(drop)?),
            None => Ok(()),
        }
    }

    fn plan(&self) -> EstablishmentPlan {
        let limits = EstablishmentLimits {
            connections: self.connections as usize,
            per_address: self.connections_per_address as usize,
            patience: self.patience,
        };
        EstablishmentPlan {
            threads: NonZeroUsize::new(self.establishing_threads as usize).unwrap_or(NonZeroUsize::MIN),
            limits,
        }
    }

    /// The keys of cookies that are in use at this time of the system clock. A clock that is set takes cookies their
    /// keys: clients then establish keys again.
    fn keys(&self, secret: &[u8; SECRET_BYTES]) -> Arc<CookieKeys> {
        let old = u16::try_from(self.old_keys).unwrap_or(u16::MAX);
        Arc::new(CookieKeys::new(*secret, number_at(system_utc_now().since_origin(), self.rotation), old))
    }
}

/// The number of the key that seals cookies at a time since 1970.
fn number_at(time: Span, rotation: Span) -> u32 {
    let number = time.as_nanos().max(0) / rotation.as_nanos().max(1);
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// All that takes a right which the server gives up before it serves.
pub(crate) struct NtsParts {
    identity: ShownIdentity,
    secret: Zeroizing<[u8; SECRET_BYTES]>,
    listeners: Vec<TcpListener>,
}

impl NtsParts {
    /// Reads certificate, key and secret and opens the sockets; `None` where NTS is not served.
    ///
    /// # Errors
    /// As [`NtsError`] says.
    pub(crate) fn open(config: &NtsConfig) -> Result<Option<Self>, NtsError> {
        let Some(identity) = config.identity()? else { return Ok(None) };
        let identity = identity.read()?;
        let secret = Zeroizing::new(cookie_secret::load_or_make(config.cookies.as_path())?);
        let listeners = listen(config.listen.as_slice())?;
        for listener in &listeners {
            let address = listener.local_addr()?;
            tracing::info!(%address, "establishing keys for NTS");
        }
        Ok(Some(NtsParts { identity, secret, listeners }))
    }

    /// The keys of cookies that are in use now.
    pub(crate) fn keys(&self, config: &NtsConfig) -> Arc<CookieKeys> {
        config.keys(&self.secret)
    }
}

/// What NTS is served beside.
pub(crate) struct NtsPlace {
    /// Where the keys are put for all threads.
    pub(crate) board: Arc<PolicyBoard>,
    /// The port that NTP is answered on.
    pub(crate) ntp_port: Option<u16>,
}

/// The port to name to clients of a server that answers on these addresses: the usual one where it has that, and none
/// of loopback where it has others.
pub(crate) fn port_for_clients(listen: &[SocketAddr]) -> Option<u16> {
    let reachable: Vec<u16> = listen.iter().filter(|one| !one.ip().is_loopback()).map(SocketAddr::port).collect();
    let has_usual = reachable.contains(&NTP_PORT);
    let first = reachable.first().copied().or_else(|| listen.first().map(SocketAddr::port));
    if has_usual { Some(NTP_PORT) } else { first }
}

/// NTS while the server runs.
pub(crate) struct NtsService {
    config: NtsConfig,
    secret: Zeroizing<[u8; SECRET_BYTES]>,
    listen: Vec<String>,
    certificate_end: Option<CertificateTime>,
    server: EstablishmentServer,
}

impl NtsService {
    /// Starts to establish keys. Their cookies are sealed by the keys on the board.
    ///
    /// # Errors
    /// A thread that does not start.
    pub(crate) fn start(parts: NtsParts, config: NtsConfig, place: &NtsPlace) -> Result<Self, NtsError> {
        let NtsParts { identity: ShownIdentity { tls, certificate_end }, secret, listeners } = parts;
        let grants = KeyGrants {
            board: Arc::clone(&place.board),
            host: config.ntp_host.name().map(str::to_owned),
            port: config.ntp_host.port(place.ntp_port).filter(|port| *port != NTP_PORT),
            interval: (config.establish_interval, config.establish_burst),
        };
        let server = EstablishmentServer::start(&listeners, config.plan(), (tls, grants))?;
        let named = |listener: &TcpListener| Some(listener.local_addr().ok()?.to_string());
        let listen = listeners.iter().filter_map(named).collect();
        Ok(NtsService { config, secret, listen, certificate_end, server })
    }

    /// Puts the next key on the board where it is time for it.
    pub(crate) fn rotate(&self, board: &PolicyBoard) {
        let number = number_at(system_utc_now().since_origin(), self.config.rotation);
        let present = board.read().cookies.as_ref().map(|keys| keys.newest());
        if present != Some(number) {
            let keys = self.config.keys(&self.secret);
            board.change(|policy| Policy { cookies: Some(keys), ..policy.clone() });
            tracing::debug!(number, "another key seals cookies");
        }
    }

    /// Shows the certificate that is in the files now, and keeps as many old keys as stated now. The rest stays as it
    /// is: with another rotation the keys would have other numbers, so that no cookie in use could be opened.
    ///
    /// # Errors
    /// The files cannot be used, or no longer ask for NTS; nothing is changed then.
    pub(crate) fn reload(&mut self, config: &NtsConfig, board: &PolicyBoard) -> Result<(), NtsError> {
        let identity = config.identity()?.ok_or(NtsError::HalfIdentity)?;
        let ShownIdentity { tls, certificate_end } = identity.read()?;
        self.server.show(tls);
        self.certificate_end = certificate_end;
        let renewed = NtsConfig {
            certificate: config.certificate.clone(),
            key: config.key.clone(),
            old_keys: config.old_keys,
            ..self.config.clone()
        };
        if renewed != *config {
            tracing::warn!("`[nts]`: all but certificate, key and old_keys takes a restart");
        }
        self.config = renewed;
        let keys = self.config.keys(&self.secret);
        board.change(|policy| Policy { cookies: Some(keys), ..policy.clone() });
        Ok(())
    }

    /// Its part of the status.
    pub(crate) fn report(&self, policy: &Policy) -> NtsReport {
        let count = |ending: Ending| (ending.name().to_owned(), self.server.counts().of(ending));
        NtsReport {
            listen: self.listen.clone(),
            cookie_key: policy.cookies.as_ref().map(|keys| keys.newest()),
            rotation_s: self.config.rotation.as_seconds(),
            old_keys: self.config.old_keys,
            certificate_end: self.certificate_end.map(|end| end.to_string()),
            certificate_end_unix_s: self.certificate_end.map(|end| end.unix_seconds),
            establishments: Ending::ALL.into_iter().map(count).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_the_key_follows_the_date() {
        let day = Span::from_secs(86_400);
        assert_eq!(number_at(Span::ZERO, day), 0);
        assert_eq!(number_at(Span::from_secs(20_000 * 86_400 - 1), day), 19_999);
        assert_eq!(number_at(Span::from_secs(20_000 * 86_400), day), 20_000);
        assert_eq!(number_at(-Span::from_secs(5), day), 0);
        assert_eq!(number_at(Span::from_secs(i64::MAX / 4), Span::from_secs(1)), u32::MAX);
    }

    #[test]
    fn clients_are_sent_to_a_port_that_they_reach() {
        let port = |listen: &[&str]| {
            port_for_clients(&listen.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>())
        };
        assert_eq!(port(&["127.0.0.1:11123", "0.0.0.0:123", "[::]:123"]), Some(123));
        assert_eq!(port(&["192.0.2.1:4123", "192.0.2.1:123"]), Some(123));
        assert_eq!(port(&["127.0.0.1:123", "192.0.2.1:4123"]), Some(4123));
        assert_eq!(port(&["127.0.0.1:11123", "[::1]:11124"]), Some(11123));
        assert_eq!(port(&[]), None);
    }

    #[test]
    fn half_an_identity_is_refused() {
        let mut config = NtsConfig::default();
        assert!(config.identity().unwrap().is_none());
        config.set("certificate", "/etc/ssl/chain.pem").unwrap();
        assert!(matches!(config.identity(), Err(NtsError::HalfIdentity)));
        config.set("key", "/etc/ssl/key.pem").unwrap();
        assert!(config.identity().unwrap().is_some());
    }
}
