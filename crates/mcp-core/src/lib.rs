//! Skeleton.

mod principal;

pub use principal::{OwnerKey, Principal};
