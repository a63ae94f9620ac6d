//! What providers answer to every kind of credential, and what happens while those they ask misbehave.

#[cfg(test)]
mod introspection;
#[cfg(test)]
mod key_endpoint;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod support;
