//! Who may connect: users with SCRAM, or whoever is on this machine.
//!
//! The users file has SCRAM verifiers as PostgreSQL's `pg_authid` has them: who reads it can check passwords, not log in. Channel binding is
//! never offered (decision 24).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{Sink, SinkExt};
use parking_lot::Mutex;
use pgwire::api::auth::sasl::SCRAM_SHA_256_METHOD;
use pgwire::api::auth::sasl::scram::gen_salted_password;
use pgwire::api::auth::{
    DefaultServerParameterProvider, LoginInfo, StartupHandler, finish_authentication, protocol_negotiation,
    save_startup_parameters_to_metadata,
};
use pgwire::api::{ClientInfo, PgWireConnectionState, PidSecretKeyGenerator};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::startup::Authentication;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};

use crate::session::{Session, Sessions};

const ITERATIONS: usize = 4096;
const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 18;
const METHOD: &str = "SCRAM-SHA-256";

/// What a password is checked with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Verifier {
    iterations: usize,
    salt: Vec<u8>,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

impl Verifier {
    fn of_password(password: &str) -> anyhow::Result<Verifier> {
        let salt = random::<SALT_BYTES>()?.to_vec();
        Ok(Verifier::of_salted(&gen_salted_password(password, &salt, ITERATIONS), salt))
    }

    fn of_salted(salted: &[u8], salt: Vec<u8>) -> Verifier {
        let stored_key = digest::digest(&digest::SHA256, &sign(salted, b"Client Key")).as_ref().to_vec();
        Verifier { iterations: ITERATIONS, salt, stored_key, server_key: sign(salted, b"Server Key") }
    }

    /// `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`.
    fn parse(text: &str) -> Option<Verifier> {
        let rest = text.strip_prefix(METHOD)?.strip_prefix('$')?;
        let (salted, keys) = rest.split_once('$')?;
        let (iterations, salt) = salted.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let decode = |text: &str| STANDARD.decode(text).ok();
        let key = |text: &str| decode(text).filter(|key| key.len() == digest::SHA256_OUTPUT_LEN);
        let (stored_key, server_key) = (key(stored_key)?, key(server_key)?);
        Some(Verifier { iterations: iterations.parse().ok()?, salt: decode(salt)?, stored_key, server_key })
    }

    fn to_text(&self) -> String {
        let [salt, stored, server] =
            [&self.salt, &self.stored_key, &self.server_key].map(|bytes| STANDARD.encode(bytes));
        format!("{METHOD}${}:{salt}${stored}:{server}", self.iterations)
    }
}

fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| anyhow::anyhow!("no random numbers"))?;
    Ok(bytes)
}

fn sign(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

/// The users of a file: `name:verifier`, one a line.
#[derive(Debug, Default, Clone)]
pub struct Users(BTreeMap<String, Verifier>);

impl Users {
    /// Reads a file's text. A line `name:salt:salted password`, as files had them before there were verifiers, is understood too.
    ///
    /// # Errors
    /// A line of another form.
    pub fn parse(text: &str) -> anyhow::Result<Users> {
        let mut users = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let current = || {
                let start = line.rfind(&format!(":{METHOD}$"))?;
                Some((line[..start].to_owned(), Verifier::parse(&line[start + 1..])?))
            };
            let salted = || {
                let mut fields = line.rsplitn(3, ':');
                let salted = STANDARD.decode(fields.next()?).ok()?;
                let salt = STANDARD.decode(fields.next()?).ok()?;
                Some((fields.next()?.to_owned(), Verifier::of_salted(&salted, salt)))
            };
            let Some((name, verifier)) = current().or_else(salted) else {
                anyhow::bail!("line {} is not name:{METHOD}$iterations:salt$StoredKey:ServerKey", at + 1);
            };
            users.insert(name, verifier);
        }
        Ok(Users(users))
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|(name, verifier)| format!("{name}:{}\n", verifier.to_text())).collect()
    }

    /// Adds a user, or gives it another password.
    ///
    /// # Errors
    /// A name with a line break in it; the machine has no random numbers.
    pub fn add(&mut self, name: &str, password: &str) -> anyhow::Result<()> {
        anyhow::ensure!(
            !name.is_empty() && !name.contains(['\n', '\r']) && !name.starts_with('#'),
            "{name:?} is no name"
        );
        self.0.insert(name.to_owned(), Verifier::of_password(password)?);
        Ok(())
    }
}

/// An exchange of RFC 5802, after the server's first message.
struct Exchange {
    /// The client's header about channel binding, which its last message repeats.
    header: String,
    client_first: String,
    server_first: String,
    nonce: String,
    /// Nobody's, where there is no such user: the exchange fails at its end, as with a wrong password.
    verifier: Verifier,
    is_known: bool,
}

impl Exchange {
    fn begin(verifier: Option<&Verifier>, message: &[u8], server_nonce: &str) -> Option<Exchange> {
        let text = std::str::from_utf8(message).ok()?;
        let mut fields = text.splitn(3, ',');
        let (binding, identity, bare) = (fields.next()?, fields.next()?, fields.next()?);
        // "n": none; "y": the client could, and sees that this server does not offer it.
        if !matches!(binding, "n" | "y") {
            return None;
        }
        let client_nonce = bare.split(',').find_map(|field| field.strip_prefix("r="))?;
        let is_known = verifier.is_some();
        let verifier = verifier.cloned().unwrap_or_else(|| Verifier {
            iterations: ITERATIONS,
            salt: digest::digest(&digest::SHA256, bare.as_bytes()).as_ref()[..SALT_BYTES].to_vec(),
            stored_key: vec![0; digest::SHA256_OUTPUT_LEN],
            server_key: vec![0; digest::SHA256_OUTPUT_LEN],
        });
        let nonce = format!("{client_nonce}{server_nonce}");
        let server_first = format!("r={nonce},s={},i={}", STANDARD.encode(&verifier.salt), verifier.iterations);
        let header = format!("{binding},{identity},");
        Some(Exchange { header, client_first: bare.to_owned(), server_first, nonce, verifier, is_known })
    }

    /// The server's last message; none where the proof is wrong.
    fn end(&self, message: &[u8]) -> Option<String> {
        let text = std::str::from_utf8(message).ok()?;
        let (without_proof, proof) = text.rsplit_once(",p=")?;
        let mut fields = without_proof.split(',');
        let binding = fields.next()?.strip_prefix("c=")?;
        let nonce = fields.next()?.strip_prefix("r=")?;
        if STANDARD.decode(binding).ok()? != self.header.as_bytes() || nonce != self.nonce {
            return None;
        }
        let signed = format!("{},{},{without_proof}", self.client_first, self.server_first);
        let signature = sign(&self.verifier.stored_key, signed.as_bytes());
        let proof = STANDARD.decode(proof).ok().filter(|proof| proof.len() == signature.len())?;
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        let hashed = digest::digest(&digest::SHA256, &client_key);
        // In constant time: however many bytes are right, all are looked at.
        let differences = hashed.as_ref().iter().zip(&self.verifier.stored_key).fold(0, |all, (a, b)| all | (a ^ b));
        let is_right = differences == 0;
        let answer = || format!("v={}", STANDARD.encode(sign(&self.verifier.server_key, signed.as_bytes())));
        (is_right && self.is_known).then(answer)
    }
}

fn parameters() -> DefaultServerParameterProvider {
    let mut parameters = DefaultServerParameterProvider::default();
    parameters.server_version = crate::server::VERSION.to_owned();
    parameters.is_superuser = false;
    parameters
}

fn fatal(state: &str, text: impl Into<String>) -> PgWireError {
    PgWireError::UserError(Box::new(ErrorInfo::new("FATAL".into(), state.into(), text.into())))
}

/// The start of one connection.
pub struct Startup {
    users: Option<Arc<Users>>,
    must_be_secure: bool,
    sessions: Arc<Sessions>,
    session: Arc<Session>,
    exchange: Mutex<Option<Exchange>>,
}

impl Startup {
    /// With SCRAM where there are users, else with trust on this machine.
    pub fn new(
        users: Option<Arc<Users>>,
        must_be_secure: bool,
        sessions: Arc<Sessions>,
        session: Arc<Session>,
    ) -> Startup {
        Startup { users, must_be_secure, sessions, session, exchange: Mutex::new(None) }
    }

    async fn let_in<C>(&self, client: &mut C) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let (pid, key) = self.sessions.generate(client);
        client.set_pid_and_secret_key(pid, key);
        self.sessions.add(client, &self.session);
        finish_authentication(client, &parameters()).await
    }
}

#[async_trait]
impl StartupHandler for Startup {
    async fn on_startup<C>(&self, client: &mut C, message: PgWireFrontendMessage) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        match message {
            PgWireFrontendMessage::Startup(startup) => {
                protocol_negotiation(client, &startup).await?;
                save_startup_parameters_to_metadata(client, &startup);
                if self.must_be_secure && !client.is_secure() {
                    let text = "this server wants TLS: connect with sslmode=require";
                    return Err(fatal("28000", text));
                }
                if self.users.is_none() {
                    if client.socket_addr().ip().to_canonical().is_loopback() {
                        return self.let_in(client).await;
                    }
                    let text = "there is no users file, so only this machine may connect: add users with \"basalt-sql user \
                                add\"";
                    return Err(fatal("28000", text));
                }
                client.set_state(PgWireConnectionState::AuthenticationInProgress);
                let methods = Authentication::SASL(vec![SCRAM_SHA_256_METHOD.to_owned()]);
                client.send(PgWireBackendMessage::Authentication(methods)).await?;
            }
            PgWireFrontendMessage::PasswordMessageFamily(message) => {
                let name = LoginInfo::from_client_info(client).user().unwrap_or_default().to_owned();
                let refused = || fatal("28P01", format!("password authentication failed for user \"{name}\""));
                let malformed = || fatal("08P01", "malformed SCRAM message");
                let begun = self.exchange.lock().take();
                let Some(exchange) = begun else {
                    let first = message.into_sasl_initial_response()?;
                    if first.auth_method != SCRAM_SHA_256_METHOD {
                        return Err(malformed());
                    }
                    let nonce = STANDARD.encode(random::<NONCE_BYTES>().map_err(|e| fatal("XX000", e.to_string()))?);
                    let verifier = self.users.as_ref().and_then(|users| users.0.get(&name));
                    let exchange = Exchange::begin(verifier, first.data.as_deref().unwrap_or_default(), &nonce);
                    let exchange = exchange.ok_or_else(malformed)?;
                    let answer = Authentication::SASLContinue(exchange.server_first.clone().into());
                    *self.exchange.lock() = Some(exchange);
                    client.send(PgWireBackendMessage::Authentication(answer)).await?;
                    return Ok(());
                };
                let last = message.into_sasl_response()?;
                let answer = exchange.end(&last.data).ok_or_else(refused)?;
                let answer = Authentication::SASLFinal(answer.into());
                client.send(PgWireBackendMessage::Authentication(answer)).await?;
                self.let_in(client).await?;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_file_is_read_as_it_was_written() {
        let mut users = Users::default();
        users.add("a:b", "secret").expect("random numbers");
        users.add("c", "other").expect("random numbers");
        let read = Users::parse(&format!("# users\n\n{}", users.to_text())).expect("our own text");
        assert_eq!(read.0, users.0);
        assert!(!users.to_text().contains("secret"));
        assert!(Users::parse("c").is_err() && Users::parse("c:!:?").is_err());
        assert!(users.add("", "x").is_err() && users.add("a\nb", "x").is_err());
    }

    #[test]
    fn a_file_of_salted_passwords_is_still_understood() {
        let salt = b"0123456789abcdef".to_vec();
        let salted = gen_salted_password("secret", &salt, ITERATIONS);
        let line = format!("me:{}:{}", STANDARD.encode(&salt), STANDARD.encode(&salted));
        let read = Users::parse(&line).expect("the form of before");
        assert_eq!(read.0["me"], Verifier::of_salted(&salted, salt));
    }

    /// The exchange of RFC 7677, section 3.
    #[test]
    fn an_exchange_is_that_of_the_standard() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("base64");
        let verifier = Verifier::of_salted(&gen_salted_password("pencil", &salt, ITERATIONS), salt);
        let read = Verifier::parse(&verifier.to_text());
        assert_eq!(read.as_ref(), Some(&verifier));
        let exchange =
            |verifier| Exchange::begin(verifier, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0");
        let last = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                     p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let begun = exchange(Some(&verifier)).expect("well formed");
        let first = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        assert_eq!(begun.server_first, first);
        let answer = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(begun.end(last).as_deref(), Some(answer));
        let wrong = String::from_utf8_lossy(last).replace("p=dH", "p=dI");
        assert_eq!(begun.end(wrong.as_bytes()), None);
        assert_eq!(exchange(None).expect("as if there were one").end(last), None);
        assert!(Exchange::begin(None, b"p=tls-server-end-point,,n=u,r=x", "y").is_none());
    }
}
