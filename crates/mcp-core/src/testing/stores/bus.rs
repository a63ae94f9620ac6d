//! The contract of a [`NoticeBus`].
//!
//! Why here: see the module above.

use std::collections::BTreeSet;

use super::{TestError, both, done, ensure, fresh, soon};
use crate::store::{ChangeRecord, NoticeBus};

/// How many resources change while nobody looks.
const FLOOD: usize = 5_000;

/// Holds a bus to its contract. Leaves nothing behind. A bus may lose changes when something fails; while nothing does, it
/// has to bring them.
///
/// # Errors
/// The first promise that was not kept.
pub async fn check_notice_bus(bus: &dyn NoticeBus) -> Result<(), TestError> {
    let (one, two, three) = (fresh()?, fresh()?, fresh()?);
    for process in [&one, &two, &three, &two] {
        done("join", bus.join(process).await)?;
    }
    let kinds = [
        ChangeRecord::Tools,
        ChangeRecord::Prompts,
        ChangeRecord::Resources,
        ChangeRecord::Resource("test://a?\u{2028}".to_owned()),
        ChangeRecord::Extension("notifications/x".to_owned()),
    ];
    done("publish", bus.publish(&one, &kinds[..2]).await)?;
    done("publish", bus.publish(&one, &kinds[2..]).await)?;
    for process in [&two, &three] {
        learns(bus, process, &one, &kinds).await?;
    }
    // Whoever waits already is woken.
    let (learned, published) =
        both(learns(bus, &two, &one, &[ChangeRecord::Tools]), bus.publish(&one, &[ChangeRecord::Tools])).await;
    done("publish", published)?;
    learned?;
    // However much changes while nobody looks, the newest change is not lost in it.
    for number in 0..FLOOD {
        let change = ChangeRecord::Resource(format!("test://{number}"));
        done("publish", bus.publish(&three, &[change]).await)?;
    }
    done("publish", bus.publish(&three, &[ChangeRecord::Prompts]).await)?;
    learns(bus, &one, &three, &[ChangeRecord::Prompts]).await?;
    for process in [&one, &two, &three] {
        done("leave", bus.leave(process).await)?;
    }
    Ok(())
}

/// The process is told of all of these, or that everything may have changed, and of nothing at `from` that did not.
async fn learns(bus: &dyn NoticeBus, process: &str, from: &str, expected: &[ChangeRecord]) -> Result<(), TestError> {
    let mut missing: BTreeSet<_> = expected.iter().collect();
    let learning = async {
        while !missing.is_empty() {
            let received = done("receive", bus.receive(process).await)?;
            ensure(!received.is_empty(), "a process that waits was woken for nothing")?;
            for notice in received.iter().filter(|notice| notice.from != process) {
                if notice.from == from && notice.change == ChangeRecord::Everything {
                    return Ok(());
                }
                missing.remove(&notice.change);
            }
        }
        Ok(())
    };
    soon("a change", learning).await
}
