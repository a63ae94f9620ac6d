//! What is read from files, at the start and again at SIGHUP: certificate, keys, the log's filter.
//!
//! Why here: what replaces what, and what is told of it, is decided once for all of them.
//! Invariants: what cannot be read replaces nothing, and its reason is logged; connections and calls under way go on.

use std::error::Error;
use std::fs;
use std::path::Path;

use mcp_core::{KeyRing, Server, StateKey};
use mcp_http::server::Tls;

use super::log::{self, FilterHandle};
use super::options::Options;

pub(crate) struct Reloadable {
    options: Options,
    server: Server,
    tls: Option<Tls>,
    filter: FilterHandle,
}

impl Reloadable {
    /// Reads what the options name for the first time.
    pub(crate) fn load(options: &Options, server: Server, filter: FilterHandle) -> Result<Self, Box<dyn Error>> {
        let tls = match certificate(options)? {
            Some((certificates, key)) => Some(Tls::from_pem(&certificates, &key)?),
            None => None,
        };
        if let Some(keys) = state_keys(options)? {
            server.rotate_state_keys(keys);
        }
        Ok(Self { options: options.clone(), server, tls, filter })
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn tls(&self) -> Option<Tls> {
        self.tls.clone()
    }

    /// Reads everything again. What fails stays as it was.
    pub(crate) fn reload(&self) {
        let parts = [
            ("the log's filter", self.reload_filter()),
            ("the certificate", self.reload_certificate()),
            ("the state keys", self.reload_keys()),
        ];
        for (what, outcome) in parts {
            match outcome {
                Ok(true) => tracing::info!(what, "reloaded"),
                Ok(false) => {}
                Err(error) => tracing::error!(what, %error, "not reloaded: it stays as it was"),
            }
        }
    }

    fn reload_filter(&self) -> Result<bool, Box<dyn Error>> {
        if self.options.log_level_file.is_none() {
            return Ok(false);
        }
        self.filter.reload(log::wanted(&self.options)?)?;
        Ok(true)
    }

    fn reload_certificate(&self) -> Result<bool, Box<dyn Error>> {
        let (Some(tls), Some((certificates, key))) = (&self.tls, certificate(&self.options)?) else { return Ok(false) };
        tls.replace_pem(&certificates, &key)?;
        Ok(true)
    }

    fn reload_keys(&self) -> Result<bool, Box<dyn Error>> {
        let Some(keys) = state_keys(&self.options)? else { return Ok(false) };
        self.server.rotate_state_keys(keys);
        Ok(true)
    }
}

/// A chain of certificates and its key, both in PEM.
type Pem = (Vec<u8>, Vec<u8>);

/// The certificate and its key.
fn certificate(options: &Options) -> Result<Option<Pem>, Box<dyn Error>> {
    match (&options.tls_cert, &options.tls_key) {
        (Some(certificate), Some(key)) => Ok(Some((read(certificate)?, read(key)?))),
        _ => Ok(None),
    }
}

fn state_keys(options: &Options) -> Result<Option<KeyRing>, Box<dyn Error>> {
    let Some(path) = &options.state_key_file else { return Ok(None) };
    let text = String::from_utf8(read(path)?).unwrap_or_default();
    let keys = key_ring(&text).ok_or_else(|| format!("{}: each line needs 64 hexadecimal digits", path.display()))?;
    Ok(Some(keys))
}

/// The first line seals, all open.
fn key_ring(text: &str) -> Option<KeyRing> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = KeyRing::new(key(lines.next()?)?);
    lines.try_fold(first, |ring, line| Some(ring.accepting(key(line)?)))
}

fn key(line: &str) -> Option<StateKey> {
    let digits: Option<Vec<u8>> = line.chars().map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
    let bytes: Vec<u8> = digits?.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte * 16 + digit)).collect();
    if line.len() != 64 {
        return None;
    }
    Some(StateKey::new(bytes.try_into().ok()?))
}

fn read(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_64_digits_each() {
        let (one, two) = ("0a".repeat(32), "B9".repeat(32));
        assert!(key_ring(&one).is_some() && key_ring(&format!("\n {one} \n{two}\n\n")).is_some());
        for bad in
            ["", "\n", "0a", &"0".repeat(63), &"0".repeat(66), &"g".repeat(64), &format!("{one}\nx"), &"é".repeat(32)]
        {
            assert!(key_ring(bad).is_none(), "{bad}");
        }
    }
}
