//! Who may connect: users with SCRAM, or whoever is on this machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::Sink;
use pgwire::api::auth::noop::NoopStartupHandler;
use pgwire::api::auth::sasl::SASLAuthStartupHandler;
use pgwire::api::auth::sasl::scram::{ScramAuth, gen_salted_password};
use pgwire::api::auth::{AuthSource, DefaultServerParameterProvider, LoginInfo, Password, StartupHandler};
use pgwire::api::{ClientInfo, ConnectionManager};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use ring::rand::{SecureRandom, SystemRandom};

const ITERATIONS: usize = 4096;
const SALT_BYTES: usize = 16;

/// The users of a file: `name:salt:salted password`, both in base64, one a line. Who can read it can connect.
#[derive(Debug, Default, Clone)]
pub struct Users(BTreeMap<String, Secret>);

/// Salt and salted password.
type Secret = (Vec<u8>, Vec<u8>);

impl Users {
    /// Reads a file's text.
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
            let user = || -> Option<(String, Secret)> {
                let mut fields = line.rsplitn(3, ':');
                let salted = STANDARD.decode(fields.next()?).ok()?;
                let salt = STANDARD.decode(fields.next()?).ok()?;
                Some((fields.next()?.to_owned(), (salt, salted)))
            };
            let Some((name, secret)) = user() else { anyhow::bail!("line {} is not name:salt:password", at + 1) };
            users.insert(name, secret);
        }
        Ok(Users(users))
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        let line = |(name, (salt, salted)): (&String, &Secret)| {
            format!("{name}:{}:{}\n", STANDARD.encode(salt), STANDARD.encode(salted))
        };
        self.0.iter().map(line).collect()
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
        let mut salt = vec![0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt).map_err(|_| anyhow::anyhow!("no random numbers"))?;
        let salted = gen_salted_password(password, &salt, ITERATIONS);
        self.0.insert(name.to_owned(), (salt, salted));
        Ok(())
    }
}

#[async_trait]
impl AuthSource for Users {
    async fn get_password(&self, login: &LoginInfo) -> PgWireResult<Password> {
        let user = login.user().unwrap_or_default();
        match self.0.get(user) {
            Some((salt, salted)) => Ok(Password::new(Some(salt.clone()), salted.clone())),
            None => Err(PgWireError::InvalidPassword(user.to_owned())),
        }
    }
}

fn parameters() -> DefaultServerParameterProvider {
    let mut parameters = DefaultServerParameterProvider::default();
    parameters.server_version = crate::server::VERSION.to_owned();
    parameters.is_superuser = false;
    parameters
}

/// The start of one connection.
pub struct Startup {
    scram: Option<SASLAuthStartupHandler<DefaultServerParameterProvider>>,
    trust: Trust,
}

impl Startup {
    /// With SCRAM where there are users, else with trust on this machine.
    pub fn new(users: Option<Arc<Users>>, connections: Arc<ConnectionManager>) -> Startup {
        let scram = users.map(|users| {
            let mut scram = ScramAuth::new(users);
            scram.set_iterations(ITERATIONS);
            let handler = SASLAuthStartupHandler::new(Arc::new(parameters())).with_scram(scram);
            handler.with_connection_manager(Arc::clone(&connections))
        });
        Startup { scram, trust: Trust { connections } }
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
        if let Some(scram) = &self.scram {
            return scram.on_startup(client, message).await;
        }
        if !client.socket_addr().ip().to_canonical().is_loopback() {
            let text =
                "there is no users file, so only this machine may connect: add users with \"basalt-sql user add\"";
            return Err(PgWireError::UserError(Box::new(ErrorInfo::new("FATAL".into(), "28000".into(), text.into()))));
        }
        self.trust.on_startup(client, message).await
    }
}

struct Trust {
    connections: Arc<ConnectionManager>,
}

impl NoopStartupHandler for Trust {
    fn connection_manager(&self) -> Option<Arc<ConnectionManager>> {
        Some(Arc::clone(&self.connections))
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
}
