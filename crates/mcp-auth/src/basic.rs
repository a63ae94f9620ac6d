//! Names and passwords.
//!
//! Why here: the oldest scheme, which every client and proxy can send.
//! Invariants: an unknown name costs the work of a known one; hashes are computed on a bounded number of threads, for a
//! bounded number of callers; what is remembered of a password is a MAC under a key of this process, for 60 seconds at
//! most and only with the table that it was right for. No password, hash or MAC is printed.
//! Spec: RFC 7617 2; RFC 9106 4

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use argon2::password_hash::phc::{Output, PasswordHash, Salt};
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use async_trait::async_trait;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderName;
use mcp_core::Principal;
use sha2::Sha256;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::credential::{Pair, READ};
use crate::{AuthError, AuthProvider, AuthRequest, BearerChallenge, Challenge, InvalidChallenge, InvalidOption};

/// Who may log in, and the hashes of their passwords.
#[derive(Default)]
pub struct BasicUsers {
    users: HashMap<Box<str>, (PasswordHash, Principal)>,
    cost: Option<Params>,
}

const PROVIDER: &str = "basic";
/// A pass over less is cheap to guess at (OWASP's least is 7 MiB, with five passes).
const MINIMUM_MEMORY: u32 = 7 * 1024;
/// So that a stray zero in a hash does not take the machine's memory.
const MAXIMUM_MEMORY: u32 = 1024 * 1024;
const MAXIMUM_PASSES: u32 = 16;
const REMEMBERED: Duration = Duration::from_secs(60);
const MAXIMUM_REMEMBERED: usize = 1024;

impl BasicUsers {
    /// An empty table, with which nobody is let in.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets in `name` with the password that `hash` was made of, as `principal`.
    ///
    /// `hash` is a PHC string, `$argon2id$v=19$m=..,t=..,p=..$salt$hash`, such as [`Self::hash`] makes, with 7 MiB to
    /// 1 GiB of memory and up to 16 passes. All hashes of a table have the same costs, so that names cannot be told
    /// apart by them.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] for another form or other costs, a name that is empty, holds a colon or was given before, and a
    /// principal that expires: no clock is read here.
    pub fn and(mut self, name: &str, hash: &str, principal: Principal) -> Result<Self, InvalidOption> {
        if name.is_empty() || name.contains(':') || name.chars().any(char::is_control) {
            return Err(InvalidOption::new(PROVIDER, "name", "is empty or holds a colon or a control character"));
        }
        if principal.expires_at().is_some() {
            return Err(InvalidOption::new(PROVIDER, "principal", "must not expire"));
        }
        let (hash, cost) =
            parse(hash).ok_or(InvalidOption::new(PROVIDER, "hash", "is no argon2id hash within bounds"))?;
        if self.cost.get_or_insert_with(|| cost.clone()) != &cost {
            return Err(InvalidOption::new(PROVIDER, "hash", "has other costs than those before"));
        }
        if self.users.insert(name.into(), (hash, principal)).is_some() {
            return Err(InvalidOption::new(PROVIDER, "name", "was given before"));
        }
        Ok(self)
    }

    /// The hash to store of `password`, with a random salt, 19 MiB and two passes. Takes some tens of milliseconds.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] for an empty password or one over 1024 bytes, and if the system has no randomness.
    pub fn hash(password: &str) -> Result<String, InvalidOption> {
        hash_with(&Params::default(), password)
    }
}

impl fmt::Debug for BasicUsers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BasicUsers").field("users", &self.users.len()).finish_non_exhaustive()
    }
}

/// Lets in who presents a known name with its password, as `Authorization: Basic`.
///
/// Two hashes are computed at a time, on tokio's blocking threads, and 64 callers wait for a turn; beyond that callers are
/// answered with 503. A right password is remembered for up to 60 seconds, so that a session does not hash with every
/// request. Cheap to clone; clones share the table, so one of them stays behind to [replace](Self::replace) it.
///
/// ```
/// use mcp_auth::{Basic, BasicUsers};
/// use mcp_core::Principal;
///
/// # // Made by BasicUsers::hash("..."), which a test build would take a second for.
/// # let stored = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
/// let users = BasicUsers::new().and("ann", stored, Principal::new("basic", "", "ann"))?;
/// let provider = Basic::new(users)?;
/// # Ok::<(), mcp_auth::InvalidOption>(())
/// ```
#[derive(Debug, Clone)]
pub struct Basic {
    table: Arc<RwLock<Arc<Table>>>,
    pool: Arc<Pool>,
    challenge: BearerChallenge,
}

/// Users, and what is remembered of them: replaced together.
struct Table {
    users: HashMap<Box<str>, (PasswordHash, Principal)>,
    /// What an unknown name is held to: of the same cost, and nobody's.
    decoy: PasswordHash,
    key: Zeroizing<[u8; 32]>,
    remembered: Mutex<HashMap<[u8; 32], (Instant, Principal)>>,
}

#[derive(Debug)]
struct Pool {
    /// Who computes.
    turns: Arc<Semaphore>,
    /// Who computes or waits.
    places: Arc<Semaphore>,
}

impl Basic {
    /// Lets in whom `users` knows. Challenges name the realm `mcp`.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] if the system has no randomness.
    pub fn new(users: BasicUsers) -> Result<Self, InvalidOption> {
        Ok(Self {
            table: Arc::new(RwLock::new(Arc::new(Table::new(users)?))),
            pool: Arc::new(Pool { turns: Arc::new(Semaphore::new(2)), places: Arc::new(Semaphore::new(2 + 64)) }),
            challenge: BearerChallenge::default(),
        })
    }

    /// Replaces how many hashes are computed at a time (1 to 64; each takes the memory its costs say) and how many
    /// callers wait for a turn (up to 4096). Default: 2 and 64.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] outside those bounds.
    pub fn with_pool(mut self, computing: usize, waiting: usize) -> Result<Self, InvalidOption> {
        if !(1..=64).contains(&computing) || waiting > 4096 {
            return Err(InvalidOption::new(PROVIDER, "pool", "computes 1 to 64 hashes, for up to 4096 who wait"));
        }
        let (turns, places) = (Arc::new(Semaphore::new(computing)), Arc::new(Semaphore::new(computing + waiting)));
        self.pool = Arc::new(Pool { turns, places });
        Ok(self)
    }

    /// Replaces the realm that challenges name.
    ///
    /// # Errors
    ///
    /// As for [`BearerChallenge::new`].
    pub fn with_realm(mut self, realm: &str) -> Result<Self, InvalidChallenge> {
        self.challenge = BearerChallenge::new(realm)?;
        Ok(self)
    }

    /// Replaces the whole table, in all clones, and forgets what was remembered: a password that is not in the new one is
    /// refused from the next request on.
    ///
    /// # Errors
    ///
    /// [`InvalidOption`] if the system has no randomness; the old table then stays.
    pub fn replace(&self, users: BasicUsers) -> Result<(), InvalidOption> {
        let table = Arc::new(Table::new(users)?);
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = table;
        Ok(())
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl AuthProvider for Basic {
    async fn authenticate(&self, request: AuthRequest<'_>) -> Result<Principal, AuthError> {
        let pair = Pair::read(request.headers())?;
        let table = self.table();
        if let Some(principal) = table.recall(&pair, Instant::now()) {
            return Ok(principal);
        }
        let principal = self.pool.run(move || table.verify(&pair).map(|principal| (table, pair, principal))).await??;
        let (table, pair, principal) = principal;
        table.remember(&pair, &principal, Instant::now());
        Ok(principal)
    }

    fn challenge(&self, error: &AuthError) -> Challenge {
        self.challenge.answer_in("Basic", r#", charset="UTF-8""#, error)
    }

    fn immediate(&self, request: &AuthRequest<'_>) -> Option<Result<Principal, AuthError>> {
        match Pair::read(request.headers()) {
            Ok(pair) => self.table().recall(&pair, Instant::now()).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    fn headers(&self) -> &[HeaderName] {
        &READ
    }
}

impl Pool {
    /// Runs `work` on a blocking thread. A caller who goes away leaves it running, and its place taken until it is done.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, AuthError> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| AuthError::Unavailable)?;
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| AuthError::Unavailable)?;
        #[expect(clippy::disallowed_methods, reason = "the pool itself: a permit bounds how many run")]
        let running = tokio::task::spawn_blocking(move || {
            let done = work();
            drop((place, turn));
            done
        });
        running.await.map_err(|_| AuthError::Unavailable)
    }
}

impl Table {
    fn new(users: BasicUsers) -> Result<Self, InvalidOption> {
        let cost = users.cost.unwrap_or_default();
        let mut random = Zeroizing::new([0; 80]);
        fill(&mut *random)?;
        let (key, rest) = random.split_at(32);
        let (salt, output) = rest.split_at(16);
        let mut table = Self {
            users: users.users,
            decoy: decoy(&cost, salt, output)?,
            key: Zeroizing::new([0; 32]),
            remembered: Mutex::default(),
        };
        table.key.copy_from_slice(key);
        Ok(table)
    }

    /// Computes one hash, whoever asks.
    fn verify(&self, pair: &Pair) -> Result<Principal, AuthError> {
        let user = self.users.get(pair.name());
        let hash = user.map_or(&self.decoy, |(hash, _)| hash);
        let right = Argon2::default().verify_password(pair.password().as_bytes(), hash).is_ok();
        user.filter(|_| right).map(|(_, principal)| principal.clone()).ok_or(AuthError::InvalidCredentials)
    }

    fn recall(&self, pair: &Pair, now: Instant) -> Option<Principal> {
        // A map tells by its timing how much of a MAC is right. Nobody without the key can make use of that.
        let remembered = self.remembered();
        let (until, principal) = remembered.get(&self.mac(pair)?)?;
        (now < *until).then(|| principal.clone())
    }

    /// Remembers nothing while full.
    fn remember(&self, pair: &Pair, principal: &Principal, now: Instant) {
        let Some(mac) = self.mac(pair) else { return };
        let mut remembered = self.remembered();
        if remembered.len() >= MAXIMUM_REMEMBERED {
            remembered.retain(|_, (until, _)| now < *until);
        }
        if remembered.len() < MAXIMUM_REMEMBERED {
            remembered.insert(mac, (now + REMEMBERED, principal.clone()));
        }
    }

    fn mac(&self, pair: &Pair) -> Option<[u8; 32]> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.key).ok()?;
        mac.update(&(pair.name().len() as u64).to_be_bytes());
        mac.update(pair.name().as_bytes());
        mac.update(pair.password().as_bytes());
        Some(mac.finalize().into_bytes().into())
    }

    fn remembered(&self) -> MutexGuard<'_, HashMap<[u8; 32], (Instant, Principal)>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Table").field("users", &self.users.len()).finish_non_exhaustive()
    }
}

/// A hash of the one kind that is accepted, and its costs.
fn parse(text: &str) -> Option<(PasswordHash, Params)> {
    let hash = PasswordHash::new(text).ok()?;
    let cost = Params::try_from(&hash).ok()?;
    let modern = hash.algorithm == Algorithm::Argon2id.ident() && hash.version == Some(Version::V0x13.into());
    let bounded = (MINIMUM_MEMORY..=MAXIMUM_MEMORY).contains(&cost.m_cost())
        && cost.t_cost() <= MAXIMUM_PASSES
        && cost.p_cost() <= 16;
    // Which of two values counts would be for others to find out.
    let mut named = HashSet::new();
    let once = hash.params.iter().all(|(name, _)| named.insert(name));
    let whole =
        hash.salt.as_ref().is_some_and(|salt| salt.len() >= 8) && hash.hash.is_some_and(|hash| hash.len() >= 16);
    (modern && bounded && once && whole).then_some((hash, cost))
}

fn hash_with(cost: &Params, password: &str) -> Result<String, InvalidOption> {
    if password.is_empty() || password.len() > 1024 {
        return Err(InvalidOption::new(PROVIDER, "password", "must have 1 to 1024 bytes"));
    }
    let mut salt = [0; 16];
    fill(&mut salt)?;
    let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, cost.clone());
    let hash = hasher.hash_password_with_salt(password.as_bytes(), &salt);
    hash.map(|hash| hash.to_string()).map_err(|_| InvalidOption::new(PROVIDER, "password", "cannot be hashed"))
}

/// Random bytes in the place of a hash: no password leads to them.
fn decoy(cost: &Params, salt: &[u8], output: &[u8]) -> Result<PasswordHash, InvalidOption> {
    let refused = InvalidOption::new(PROVIDER, "hash", "has costs that cannot be repeated");
    let output = output.get(..cost.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN)).unwrap_or(output);
    Ok(PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: cost.try_into().map_err(|_| refused)?,
        salt: Some(Salt::new(salt).map_err(|_| refused)?),
        hash: Some(Output::new(output).map_err(|_| refused)?),
    })
}

fn fill(bytes: &mut [u8]) -> Result<(), InvalidOption> {
    getrandom::fill(bytes)
        .map_err(|_| InvalidOption::new(PROVIDER, "salt", "needs randomness, and the system has none"))
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use http::header::AUTHORIZATION;
    use http::{HeaderMap, HeaderValue, Method, Uri};
    use proptest::prelude::*;

    use super::*;

    /// The cheapest that is accepted: tests hash without optimisation.
    fn cheap() -> Params {
        Params::new(MINIMUM_MEMORY, 1, 1, None).unwrap()
    }

    fn users(entries: &[(&str, &str)]) -> BasicUsers {
        entries.iter().fold(BasicUsers::new(), |users, (name, password)| {
            let hash = hash_with(&cheap(), password).unwrap();
            users.and(name, &hash, Principal::new("basic", "", name)).unwrap()
        })
    }

    fn headers(name: &str, password: &str) -> HeaderMap {
        let line = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::try_from(line).unwrap())])
    }

    fn immediate(provider: &Basic, headers: &HeaderMap) -> Option<Result<Principal, AuthError>> {
        let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
        provider.immediate(&AuthRequest::new(&method, &uri, headers))
    }

    async fn ask(provider: &Basic, headers: &HeaderMap) -> Result<String, AuthError> {
        let (method, uri) = (Method::POST, Uri::from_static("/mcp"));
        let answer = provider.authenticate(AuthRequest::new(&method, &uri, headers)).await;
        answer.map(|principal| principal.subject().to_owned())
    }

    #[tokio::test]
    async fn a_right_password_is_remembered_and_a_wrong_one_is_not() {
        let provider = Basic::new(users(&[("ann", "secret")])).unwrap();
        let (right, wrong) = (headers("ann", "secret"), headers("ann", "Secret"));
        assert!(immediate(&provider, &right).is_none());
        assert_eq!(ask(&provider, &right).await.unwrap(), "ann");
        assert_eq!(immediate(&provider, &right).unwrap().unwrap().subject(), "ann");
        assert_eq!(ask(&provider, &wrong).await, Err(AuthError::InvalidCredentials));
        assert!(immediate(&provider, &wrong).is_none());
        assert_eq!(ask(&provider, &headers("eve", "secret")).await, Err(AuthError::InvalidCredentials));
    }

    #[tokio::test]
    async fn what_is_remembered_goes_with_the_table_and_after_a_minute() {
        let keeper = Basic::new(users(&[("ann", "secret")])).unwrap();
        let (served, ann) = (keeper.clone(), headers("ann", "secret"));
        ask(&served, &ann).await.unwrap();
        let table = served.table();
        let pair = Pair::read(&ann).unwrap();
        assert!(table.recall(&pair, Instant::now() + REMEMBERED - Duration::from_secs(1)).is_some());
        assert!(table.recall(&pair, Instant::now() + REMEMBERED).is_none());
        keeper.replace(BasicUsers::new()).unwrap();
        assert!(immediate(&served, &ann).is_none());
        assert_eq!(ask(&served, &ann).await, Err(AuthError::InvalidCredentials));
    }

    #[test]
    fn an_unknown_name_is_held_to_a_hash_of_the_same_cost() {
        let (hash, cost) = parse(&hash_with(&cheap(), "secret").unwrap()).unwrap();
        let table = Table::new(users(&[("ann", "secret")])).unwrap();
        let (decoy, decoy_cost) = parse(&table.decoy.to_string()).unwrap();
        assert_eq!(decoy_cost, cost);
        let length = |hash: &PasswordHash| (hash.hash.unwrap().len(), hash.salt.as_ref().unwrap().len());
        assert_eq!(length(&decoy), length(&hash));
        let other = Table::new(BasicUsers::new()).unwrap();
        assert_ne!(other.decoy.hash, table.decoy.hash, "nobody's hash is guessed");
    }

    #[tokio::test]
    async fn callers_beyond_the_places_are_turned_away_and_do_not_wait() {
        let provider = Basic::new(users(&[("ann", "secret")])).and_then(|basic| basic.with_pool(1, 1)).unwrap();
        let turn = Arc::clone(&provider.pool.turns).acquire_owned().await.unwrap();
        let ann = headers("ann", "secret");
        let crowded = async {
            while provider.pool.places.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(ask(&provider, &ann).await, Err(AuthError::Unavailable));
            drop(turn);
        };
        let (first, second, ()) = tokio::join!(ask(&provider, &ann), ask(&provider, &ann), crowded);
        assert_eq!((first.unwrap(), second.unwrap()), ("ann".to_owned(), "ann".to_owned()));
    }

    #[test]
    fn unfit_options_are_refused_at_start() {
        let named = || Principal::new("basic", "", "ann");
        let good = decoy(&cheap(), &[1; 16], &[2; 32]).unwrap().to_string();
        let add = |name: &str, hash: &str| BasicUsers::new().and(name, hash, named());
        assert!(add("ann", &good).is_ok());
        for name in ["", "a:b", "a\nb"] {
            assert_eq!(add(name, &good).unwrap_err().option(), "name", "{name:?}");
        }
        for hash in [
            "",
            "secret",
            "$2b$10$abcdefghijklmnopqrstuuabcdefghijklmnopqrstuvwxyzabcde",
            &good.replace("argon2id", "argon2i"),
            &good.replace("argon2id", "argon2d"),
            &good.replace("v=19", "v=16"),
            &good.replace("$v=19", ""),
            &good.replace("m=7168", "m=7167"),
            &good.replace("m=7168", "m=1048577"),
            &good.replace("t=1", "t=17"),
            &good.replace("p=1", "p=17"),
            &good.replace("p=1", "p=2,p=1"),
            good.rsplit_once('$').unwrap().0,
        ] {
            assert_eq!(add("ann", hash).unwrap_err().option(), "hash", "{hash}");
        }
        let twice = add("ann", &good).and_then(|users| users.and("ann", &good, named()));
        assert_eq!(twice.unwrap_err().to_string(), "basic: name was given before");
        let mixed = add("ann", &good).and_then(|users| users.and("ben", &good.replace("t=1", "t=2"), named()));
        assert_eq!(mixed.unwrap_err().reason(), "has other costs than those before");
        let expiring = named().with_expiry(std::time::SystemTime::UNIX_EPOCH);
        assert_eq!(BasicUsers::new().and("ann", &good, expiring).unwrap_err().option(), "principal");
        for (computing, waiting) in [(0, 0), (65, 0), (1, 4097)] {
            let basic = Basic::new(BasicUsers::new()).unwrap();
            assert_eq!(basic.with_pool(computing, waiting).unwrap_err().option(), "pool");
        }
        assert_eq!(BasicUsers::hash("").unwrap_err().option(), "password");
        assert_eq!(BasicUsers::hash(&"a".repeat(1025)).unwrap_err().option(), "password");
    }

    #[test]
    fn debug_output_holds_no_hash_and_no_password() {
        let hash = decoy(&cheap(), &[1; 16], &[2; 32]).unwrap().to_string();
        let users = BasicUsers::new().and("ann", &hash, Principal::new("basic", "", "ann")).unwrap();
        let printed = format!("{users:?}") + &format!("{:?}", Basic::new(users).unwrap());
        let (_, output) = hash.rsplit_once('$').unwrap();
        assert!(
            printed.contains("users: 1") && !printed.contains("argon2id") && !printed.contains(output),
            "{printed}"
        );
    }

    #[test]
    fn a_challenge_names_the_scheme_the_realm_and_the_encoding() {
        let provider = Basic::new(BasicUsers::new()).unwrap().with_realm("docs").unwrap();
        let challenge = provider.challenge(&AuthError::InvalidCredentials);
        assert_eq!(challenge.www_authenticate.unwrap(), r#"Basic realm="docs", charset="UTF-8""#);
    }

    proptest! {
        #[test]
        fn no_text_panics_as_a_hash_and_what_is_taken_is_within_bounds(
            kind in "argon2(id|i|d)",
            memory in any::<u32>(),
            passes in 0_u32..40,
            rest in "[A-Za-z0-9+/$]{0,40}",
        ) {
            if let Some((_, cost)) = parse(&format!("${kind}$v=19$m={memory},t={passes},p=1${rest}")) {
                prop_assert_eq!(kind, "argon2id");
                prop_assert!((MINIMUM_MEMORY..=MAXIMUM_MEMORY).contains(&cost.m_cost()) && cost.t_cost() <= MAXIMUM_PASSES);
            }
        }
    }
}
