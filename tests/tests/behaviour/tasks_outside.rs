//! Tasks whose jobs run in a system outside: what their clients see of them, and when they are told.
//!
//! Spec: tasks extension draft; 2025-11-25 basic/utilities/tasks

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use mcp_core::{Form, HandlerError, NoArguments, RequestContext, Server, TaskOffer, Tool, ToolReply};
use mcp_tasks::{JobError, JobState, OpenQuestion, ProviderError, TaskProvider, Tasks};
use mcp_tests::{Lane, Profile, idle, lanes};
use mcp_wire::{ErrorCode, RawJson, RpcError};
use serde_json::{Value, json};

use crate::ask::Name;
use crate::tasks::{cancelled, created, id_of, outcome, state, tasking};

lanes! {
    everywhere {
        a_job_outside_is_a_task_here,
        whoever_listens_is_told_when_a_job_changes,
        a_notice_of_a_job_ends_the_tasks_of_all_its_owners,
        a_notice_that_leads_nowhere_says_so,
    }
    legacy "the extension has no request that waits" {
        whoever_waits_for_a_result_has_it_when_its_job_has,
    }
}

/// Jobs that stand where they are put, and what they were told. What is not there cannot be asked for.
#[derive(Clone, Default)]
struct Jobs(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    states: HashMap<String, JobState>,
    cancelled: Vec<String>,
    answers: Vec<(String, Value)>,
}

impl Jobs {
    fn put(&self, job: &str, state: JobState) {
        self.0.lock().unwrap().states.insert(job.to_owned(), state);
    }
}

#[async_trait]
impl TaskProvider for Jobs {
    async fn state(&self, job: &str) -> Result<JobState, ProviderError> {
        self.0.lock().unwrap().states.get(job).cloned().ok_or_else(|| ProviderError::new("the queue is down"))
    }

    async fn cancel(&self, job: &str) -> Result<(), ProviderError> {
        self.0.lock().unwrap().cancelled.push(job.to_owned());
        Ok(())
    }

    async fn update(&self, _job: &str, answers: Vec<(String, RawJson)>) -> Result<(), ProviderError> {
        let read = answers.into_iter().map(|(key, answer)| (key, answer.parse().unwrap()));
        self.0.lock().unwrap().answers.extend(read);
        Ok(())
    }
}

/// A server whose tools hand their calls over to the job of their name; they are to be asked for once an hour.
fn server(jobs: &Jobs, names: &[&'static str]) -> (Server, Tasks) {
    let tasks = Tasks::builder().provider("jobs", jobs.clone()).build();
    let mut builder = Server::builder("s", "1").extension(tasks.clone());
    for name in names.iter().copied() {
        let tool = Tool::typed(name, move |_: NoArguments, _: RequestContext| async move {
            Err::<String, _>(HandlerError::elsewhere("jobs", name))
        });
        let offer = TaskOffer::required().poll_interval(Duration::from_secs(3_600));
        builder = builder.tool(tool.task(if name == "second" { offer.at_once() } else { offer }));
        jobs.put(name, JobState::Working);
    }
    (builder.build().unwrap(), tasks)
}

fn done(job: &str) -> JobState {
    JobState::Completed(ToolReply::text(format!("{job} is done")))
}

fn who() -> JobState {
    JobState::InputRequired(vec![OpenQuestion::new("who", &Form::<Name>::new("Who?")).unwrap()])
}

async fn a_job_outside_is_a_task_here(lane: Lane) {
    let jobs = Jobs::default();
    let (server, _tasks) = server(&jobs, &["first", "second", "lost"]);
    let client = lane.host(&server).connect_as(tasking(lane)).await;
    let first = created(&client, "first", json!({})).await;
    let second = created(&client, "second", json!({})).await;
    let lost = created(&client, "lost", json!({})).await;
    idle().await;
    jobs.0.lock().unwrap().states.remove("lost");
    assert_eq!(state(&client, id_of(&first)).await["status"], "working");
    let failing = client.request("tasks/get", json!({ "taskId": id_of(&lost) })).await;
    assert_eq!(failing.code(), -32603);
    assert!(!failing.text.contains("queue"), "the cause stays here");
    cancelled(&client, id_of(&second)).await;
    assert_eq!(jobs.0.lock().unwrap().cancelled, ["second"]);
    assert_eq!(state(&client, id_of(&second)).await["status"], "cancelled");
    jobs.put("first", done("first"));
    jobs.put("second", done("second"));
    let (status, result) = outcome(&client, id_of(&first)).await;
    assert_eq!((status.as_str(), &result["content"][0]["text"]), ("completed", &json!("first is done")));
    assert_eq!(state(&client, id_of(&second)).await["status"], "cancelled");
}

async fn whoever_listens_is_told_when_a_job_changes(lane: Lane) {
    let jobs = Jobs::default();
    let (server, tasks) = server(&jobs, &["first"]);
    let client = lane.host(&server).connect_as(tasking(lane)).await;
    let task = created(&client, "first", json!({})).await;
    idle().await;
    let answer = json!({ "action": "accept", "content": { "name": "Ann" } });
    if lane.is_modern() {
        let filter = json!({ "taskIds": [id_of(&task)] });
        let mut listening = client.start("subscriptions/listen", json!({ "notifications": filter }));
        assert_eq!(listening.notification().await["params"]["notifications"], filter);
        jobs.put("first", who());
        tasks.job_changed("jobs", "first", &server).await.unwrap();
        let told = listening.notification().await;
        assert_eq!((&told["params"]["taskId"], &told["params"]["status"]), (&task["taskId"], &json!("input_required")));
        assert_eq!(told["params"]["inputRequests"]["who"]["params"]["message"], "Who?");
        let wrong = json!({ "taskId": id_of(&task), "inputResponses": { "who": { "action": "accept", "content": {} } } });
        assert_eq!(client.request("tasks/update", wrong).await.code(), -32602);
        assert!(jobs.0.lock().unwrap().answers.is_empty(), "a job gets nothing that does not fit");
        let right = json!({ "taskId": id_of(&task), "inputResponses": { "who": answer } });
        assert!(client.request("tasks/update", right).await.result().is_object());
        jobs.put("first", done("first"));
        tasks.job_changed("jobs", "first", &server).await.unwrap();
        let told = listening.notification().await;
        assert_eq!(told["params"]["status"], "completed");
        assert_eq!(told["params"]["result"]["content"][0]["text"], "first is done");
        tasks.job_changed("jobs", "first", &server).await.unwrap();
        listening.is_quiet().await;
    } else {
        jobs.put("first", who());
        tasks.job_changed("jobs", "first", &server).await.unwrap();
        let mut told = client.unsolicited().await;
        // It may have been told before that the job works; the newest state is what counts.
        if told["params"]["status"] == "working" {
            told = client.unsolicited().await;
        }
        assert_eq!((&told["params"]["taskId"], &told["params"]["status"]), (&task["taskId"], &json!("input_required")));
        let mut waiting = client.start("tasks/result", json!({ "taskId": id_of(&task) }));
        let question = waiting.server_request().await;
        assert_eq!(question["params"]["message"], "Who?");
        client.answer(&question, answer.clone()).await;
        while jobs.0.lock().unwrap().answers.is_empty() {
            tokio::task::yield_now().await;
        }
        jobs.put("first", done("first"));
        tasks.job_changed("jobs", "first", &server).await.unwrap();
        assert_eq!(waiting.reply().await.tool_text(), "first is done");
        assert_eq!(client.unsolicited().await["params"]["status"], "completed");
    }
    assert_eq!(jobs.0.lock().unwrap().answers, [("who".to_owned(), answer)]);
}

async fn a_notice_of_a_job_ends_the_tasks_of_all_its_owners(lane: Lane) {
    let jobs = Jobs::default();
    let (server, tasks) = server(&jobs, &["first", "other"]);
    let host = lane.host(&server);
    let ann = host.connect_as(tasking(lane)).await;
    let bob = host.connect_as(Profile { name: "bob", ..tasking(lane) }).await;
    let (of_ann, of_bob) = (created(&ann, "first", json!({})).await, created(&bob, "first", json!({})).await);
    let other = created(&ann, "other", json!({})).await;
    idle().await;
    let error = RpcError::new(ErrorCode(-32_050), "the machine burned");
    jobs.put("first", JobState::Failed(error));
    tasks.job_changed("jobs", "first", &server).await.unwrap();
    // What ended is kept here: the job system may forget it.
    jobs.0.lock().unwrap().states.remove("first");
    assert_eq!(state(&ann, id_of(&of_ann)).await["status"], "failed");
    assert_eq!(state(&bob, id_of(&of_bob)).await["status"], "failed");
    assert_eq!(state(&ann, id_of(&other)).await["status"], "working");
    let stranger = bob.request("tasks/get", json!({ "taskId": id_of(&of_ann) })).await;
    assert_eq!(stranger.code(), -32602, "a job in common is no way to the task of somebody else");
}

async fn a_notice_that_leads_nowhere_says_so(lane: Lane) {
    let jobs = Jobs::default();
    let (server, tasks) = server(&jobs, &["first"]);
    let client = lane.host(&server).connect_as(tasking(lane)).await;
    let task = created(&client, "first", json!({})).await;
    idle().await;
    assert!(tasks.job_changed("jobs", "nobody's", &server).await.is_ok(), "nobody has a task there");
    assert!(tasks.job_changed("elsewhere", "first", &server).await.is_ok());
    jobs.0.lock().unwrap().states.remove("first");
    let error = tasks.job_changed("jobs", "first", &server).await.unwrap_err();
    assert!(matches!(error, JobError::Provider(_)), "{error:?}");
    jobs.put("first", done("first"));
    assert_eq!(state(&client, id_of(&task)).await["status"], "completed", "nothing was lost");
}

async fn whoever_waits_for_a_result_has_it_when_its_job_has(lane: Lane) {
    let jobs = Jobs::default();
    let (server, tasks) = server(&jobs, &["first"]);
    let client = lane.host(&server).connect_as(tasking(lane)).await;
    let task = created(&client, "first", json!({})).await;
    let waiting = client.start("tasks/result", json!({ "taskId": id_of(&task) }));
    idle().await;
    let begun = tokio::time::Instant::now();
    jobs.put("first", done("first"));
    tasks.job_changed("jobs", "first", &server).await.unwrap();
    assert_eq!(waiting.reply().await.tool_text(), "first is done");
    assert!(begun.elapsed() < Duration::from_secs(60), "the next look would have come after an hour");
}
