//! One connection of the engine over lines in memory, on a paused clock: what a client on the other end sees.

#[cfg(test)]
mod batches;
#[cfg(test)]
mod client;
#[cfg(test)]
mod dirty;
#[cfg(test)]
mod end;
#[cfg(test)]
mod load;
#[cfg(test)]
mod order;
#[cfg(test)]
mod promises;
