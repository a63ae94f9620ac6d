//! The contract of an [`AnswerRoute`].
//!
//! Why here: see the module above.

use mcp_wire::{RawJson, RequestId};

use super::{TestError, both, done, ensure, fresh, soon};
use crate::Principal;
use crate::store::{AnswerRoute, AnswerRouteError, Errand, ErrandKind, Recipient};

/// Holds a route to its contract. Leaves nothing behind. Nobody else may use the route meanwhile.
///
/// # Errors
/// The first promise that was not kept.
pub async fn check_answer_route(route: &dyn AnswerRoute) -> Result<(), TestError> {
    let (one, two, three) = (fresh()?, fresh()?, fresh()?);
    let stranger = Recipient::Process(fresh()?);
    match route.send(&stranger, &errand(&one, 0)?).await {
        // A route that cannot know who is there drops it.
        Ok(()) | Err(AnswerRouteError::NoProcess) => {}
        Err(error) => return Err(TestError::new(format!("an errand for nobody is {error}"))),
    }
    for process in [&one, &two, &three, &one] {
        done("join", route.join(process).await)?;
    }
    // Many wait for one process, in order; nobody else is brought any of them.
    let to_one = Recipient::Process(one.clone());
    let many = (1..=5).map(|number| errand(&two, number)).collect::<Result<Vec<_>, _>>()?;
    for errand in &many {
        done("send", route.send(&to_one, errand).await)?;
    }
    arrive(route, &one, &many).await?;
    let all = [errand(&one, 6)?, errand(&one, 7)?];
    for errand in &all {
        done("send", route.send(&Recipient::Everyone, errand).await)?;
    }
    arrive(route, &two, &all).await?;
    arrive(route, &three, &all).await?;
    // Whoever waits already is woken.
    let last = errand(&two, 8)?;
    let (arrived, sent) = both(arrive(route, &one, std::slice::from_ref(&last)), route.send(&to_one, &last)).await;
    done("send", sent)?;
    arrived?;
    // What waits for a process that leaves is gone, also for one that takes its name later.
    done("send", route.send(&to_one, &errand(&two, 9)?).await)?;
    done("leave", route.leave(&one).await)?;
    done("join", route.join(&one).await)?;
    let newest = errand(&two, 10)?;
    done("send", route.send(&to_one, &newest).await)?;
    arrive(route, &one, &[newest]).await?;
    for process in [&one, &two, &three] {
        done("leave", route.leave(process).await)?;
    }
    Ok(())
}

fn errand(from: &str, number: i64) -> Result<Errand, TestError> {
    let result = format!(r#"{{"n":{number},"x":123456789012345678901234567890}}"#);
    let kind = ErrandKind::Answered {
        request: RequestId::from(number),
        result: Some(done("an answer", RawJson::from_bytes(result.into()))?),
        error: None,
    };
    Ok(Errand::new(from, "session", Principal::anonymous().key(), kind))
}

/// These come, in this order, and nothing before or between them but what the process sent itself.
async fn arrive(route: &dyn AnswerRoute, process: &str, expected: &[Errand]) -> Result<(), TestError> {
    let arriving = async {
        let mut arrived = Vec::new();
        while arrived.len() < expected.len() {
            let received = done("receive", route.receive(process).await)?;
            ensure(!received.is_empty(), "a process that waits was woken for nothing")?;
            arrived.extend(received.into_iter().filter(|errand| errand.from != process));
        }
        Ok(arrived)
    };
    let arrived = soon("an errand", arriving).await?;
    ensure(arrived == expected, "errands came to the wrong process, changed, twice or out of order")
}
