//! What is said inside TLS: a request is read, and keys and cookies are granted (RFC 8915, section 4).

use super::connection::{Dialogue, DialogueStep};
use super::counts::Ending;
use super::table::Doorkeeper;
use crate::limit::{LimitOptions, LimitTime, RateTable};
use crate::policy::PolicyBoard;
use ffclock_nts::establishment::{Arrived, Grant, MessageReader, Request, RequestFault, response};
use ffclock_nts::{
    Aead, CookieKeys, EXPORTER_LABEL, Key, KeyDirection, LONGEST_COOKIE, NonceSource, SessionKeys, exporter_context,
};
use ffclock_sys::{mono_now, random_nonce};
use ffclock_units::Span;
use rustls::ServerConnection;
use std::net::IpAddr;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Cookies of one establishment (RFC 8915, section 4.1.6).
const COOKIES: usize = 8;
/// The memory of the rate limit of one thread: 8192 addresses.
const TABLE_BYTES: usize = 64 * 1024;

/// What is granted, and to whom.
#[derive(Clone, Debug)]
pub struct KeyGrants {
    /// Who is served, and the keys that seal cookies.
    pub board: Arc<PolicyBoard>,
    /// The host that answers NTP, where it is another one.
    pub host: Option<String>,
    /// The port of NTP, where it is not the usual one.
    pub port: Option<u16>,
    /// The mean time between two establishments of one address, and how many it may begin at once.
    pub interval: (Span, u32),
}

/// Lets clients in, for one thread.
pub(super) struct GrantingDoor {
    grants: Arc<KeyGrants>,
    limit: LimitOptions,
    table: RateTable,
}

impl GrantingDoor {
    pub(super) fn new(grants: Arc<KeyGrants>) -> Self {
        let (interval, burst) = grants.interval;
        let limit = LimitOptions::new(interval.as_seconds(), burst);
        GrantingDoor { grants, limit, table: RateTable::new(TABLE_BYTES) }
    }
}

impl Doorkeeper for GrantingDoor {
    type Dialogue = GrantingDialogue;

    fn let_in(&mut self, from: IpAddr) -> Result<GrantingDialogue, Ending> {
        if !self.grants.board.read().access.is_served(from) {
            return Err(Ending::Denied);
        }
        let now = LimitTime::from_seconds(mono_now().since_origin().as_seconds());
        if !self.table.admit(from, now, &self.limit) {
            return Err(Ending::Limited);
        }
        Ok(GrantingDialogue { reader: MessageReader::default(), grants: Arc::clone(&self.grants) })
    }
}

/// The dialogue with one client.
pub(super) struct GrantingDialogue {
    reader: MessageReader,
    grants: Arc<KeyGrants>,
}

impl Dialogue for GrantingDialogue {
    fn take(&mut self, octets: &[u8], tls: &ServerConnection) -> DialogueStep {
        let answer = match self.reader.take(octets) {
            Arrived::More => return DialogueStep::More,
            Arrived::TooLong => Err(RequestFault::BadRequest),
            Arrived::Whole => self.answer(tls),
        };
        match answer {
            Ok((octets, ending)) => DialogueStep::Answer(octets, ending),
            Err(fault) => DialogueStep::Answer(fault.answer(), Ending::Refused),
        }
    }
}

impl GrantingDialogue {
    fn answer(&self, tls: &ServerConnection) -> Result<(Vec<u8>, Ending), RequestFault> {
        let request = Request::read(self.reader.octets())?;
        let Some(aead) = request.aead.filter(|_| request.speaks_ntp) else {
            return Ok((response(&request, &Grant::default()), Ending::NothingInCommon));
        };
        let session = session_of(tls, aead).ok_or(RequestFault::Internal)?;
        let keys = self.grants.board.read().cookies.clone().ok_or(RequestFault::Internal)?;
        let cookies = cookies(&keys, &session).ok_or(RequestFault::Internal)?;
        let grant = Grant { cookies: &cookies, server: self.grants.host.as_deref(), port: self.grants.port };
        Ok((response(&request, &grant), Ending::Established))
    }
}

/// The keys that follow from a TLS connection (RFC 8915, section 5.1).
fn session_of(tls: &ServerConnection, aead: Aead) -> Option<SessionKeys> {
    let key = |direction| {
        let octets = Zeroizing::new([0; 32]);
        let context = exporter_context(aead, direction);
        let mut octets = octets;
        let room = octets.get_mut(..aead.key_bytes())?;
        tls.export_keying_material(room, EXPORTER_LABEL, Some(&context)).ok().and_then(|octets| Key::new(aead, octets))
    };
    Some(SessionKeys {
        client_to_server: key(KeyDirection::ClientToServer)?,
        server_to_client: key(KeyDirection::ServerToClient)?,
    })
}

fn cookies(keys: &CookieKeys, session: &SessionKeys) -> Option<Vec<Vec<u8>>> {
    let mut nonces = random_nonces().ok()?;
    let sealed = |_| {
        let mut room = [0; LONGEST_COOKIE];
        let length = keys.seal(session, nonces.take(), &mut room).ok()?;
        Some(room[..length].to_vec())
    };
    (0..COOKIES).map(sealed).collect()
}

/// Nonces that no other source gives.
///
/// # Errors
/// There are no random numbers.
pub(crate) fn random_nonces() -> std::io::Result<NonceSource> {
    let seed = u128::from(random_nonce()?) << 64 | u128::from(random_nonce()?);
    Ok(NonceSource::new(seed.to_ne_bytes()))
}
