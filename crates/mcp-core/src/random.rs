//! Ids that nobody can guess.
//!
//! Why here: sessions, elicitations and tasks are found by their id; whoever guesses one must not find anything.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// An id of 144 random bits as 24 letters, digits, `-` and `_`: for whatever a carrier or an extension finds by its id.
///
/// # Errors
/// When the operating system has no randomness to give.
pub fn id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 18];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
