//! Every event in every state, and random events against a model of their own.

use std::collections::{BTreeMap, BTreeSet};

use mcp_core::{AskedQuestion, Principal};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const THEN: u64 = 1_790_000_000_000;
const TTL: u64 = 1_000;
const LIMITS: AskLimits = AskLimits { keys: 8, memory_bytes: 64 };

fn record(state: TaskState) -> TaskRecord {
    TaskRecord {
        id: "task_1".into(),
        owner: Principal::new("test", "", "ann").key(),
        version: 4,
        created_at: THEN,
        updated_at: THEN + 10,
        ttl: TTL,
        poll_interval: 50,
        tool: "tool".into(),
        arguments: json!({ "text": "hello" }).into(),
        issued: vec!["name".into(), "size".into()],
        state,
    }
}

fn asked(keys: &[&str]) -> TaskEvent {
    let question = |key: &&str| AskedQuestion::new(*key, "elicitation/create", json!({ "message": key }).into());
    TaskEvent::Asks(Asked::new(json!({ "round": 1 }).into(), 1, keys.iter().map(question).collect()))
}

fn answered(answers: &[(&str, Value)]) -> TaskEvent {
    TaskEvent::Answered(answers.iter().map(|(key, answer)| ((*key).to_owned(), answer.clone().into())).collect())
}

fn parked() -> TaskState {
    let open = |key: &str| OpenQuestion {
        key: key.into(),
        asked_as: None,
        method: "elicitation/create".into(),
        params: RawJson::EMPTY_OBJECT,
    };
    let open = vec![open("name"), open("size")];
    TaskState::InputRequired(Box::new(Parked { memory: RawJson::EMPTY_OBJECT, open, answers: Vec::new() }))
}

fn states() -> [TaskState; 6] {
    [
        TaskState::Working,
        TaskState::Elsewhere { provider: "queue".into(), job: "7".into() },
        parked(),
        TaskState::Completed { result: json!({ "content": [] }).into(), is_error: false },
        TaskState::Failed { error: RpcError::internal() },
        TaskState::Cancelled,
    ]
}

fn events() -> [TaskEvent; 9] {
    [
        asked(&["name"]),
        answered(&[("name", json!(1))]),
        answered(&[("size", json!(2)), ("name", json!(1))]),
        TaskEvent::Finished { result: json!({ "content": [1] }).into(), is_error: true },
        TaskEvent::HandedOver { provider: "other".to_owned(), job: "8".to_owned() },
        TaskEvent::Failed(RpcError::invalid_params("wrong")),
        TaskEvent::Cancelled,
        TaskEvent::Expired,
        TaskEvent::Lost,
    ]
}

fn name(state: &TaskState) -> &'static str {
    match state {
        TaskState::Working => "working",
        TaskState::Elsewhere { .. } => "elsewhere",
        TaskState::InputRequired(_) => "input required",
        TaskState::Completed { .. } => "completed",
        TaskState::Failed { .. } => "failed",
        TaskState::Cancelled => "cancelled",
    }
}

#[test]
fn every_event_in_every_state_leads_where_it_should() {
    // The columns are `events`: asks, one answer, all answers, finished, handed over, failed, cancelled, expired, lost.
    let (asks, ends) = ("input required", ["completed", "elsewhere", "failed", "cancelled", "failed", "failed"]);
    let table = [
        ("working", asks, "working", "working"),
        ("elsewhere", asks, "elsewhere", "elsewhere"),
        ("input required", asks, "input required", "working"),
    ];
    for state in states() {
        let row = table.iter().find(|(from, ..)| *from == name(&state));
        for (column, event) in events().into_iter().enumerate() {
            let mut after = record(state.clone());
            let before = after.clone();
            let applied = after.apply(event.clone(), THEN + 20, Some(LIMITS));
            let case = format!("{event:?} while {}", name(&state));
            let Some((_, asks, one, all)) = row else {
                assert_eq!((applied, &after), (Err(Ended), &before), "{case}");
                continue;
            };
            let wanted = match column {
                0 => asks,
                1 => one,
                2 => all,
                other => &ends[other - 3],
            };
            assert_eq!(name(&after.state), *wanted, "{case}");
            let is_unasked = matches!(event, TaskEvent::Answered(_)) && name(&state) != "input required";
            match applied {
                Ok(Applied::Unchanged) => assert!(is_unasked && after == before, "{case}"),
                Ok(Applied::Changed | Applied::Resumed(_)) => {
                    assert!(!is_unasked, "{case}");
                    assert_eq!((after.version, after.updated_at), (before.version + 1, THEN + 20), "{case}");
                }
                Err(Ended) => panic!("{case}"),
            }
            if after.is_ended() {
                assert_eq!(
                    (after.arguments.as_str(), after.issued.len()),
                    ("{}", 0),
                    "{case} keeps what it needs no more"
                );
            } else {
                assert_eq!(after.arguments, before.arguments, "{case}");
            }
        }
    }
}

#[test]
fn what_ends_a_task_from_outside_says_so() {
    for (event, text) in [
        (TaskEvent::Expired, "the task did not end within its lifetime"),
        (TaskEvent::Lost, "the server ended while the task ran"),
    ] {
        let mut record = record(TaskState::Working);
        record.apply(event, THEN, None).unwrap();
        let error = RpcError::new(ErrorCode::INTERNAL_ERROR, text);
        assert_eq!(record.state, TaskState::Failed { error });
    }
}

#[test]
fn a_call_that_asks_nothing_too_much_or_keeps_too_much_fails() {
    let many: Vec<String> = (0..7).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let large = TaskEvent::Asks(Asked::new(
        json!("x".repeat(LIMITS.memory_bytes)).into(),
        1,
        vec![AskedQuestion::new("q", "roots/list", RawJson::EMPTY_OBJECT)],
    ));
    for (event, text) in [
        (asked(&[]), "the tool waits for answers and asks nothing"),
        (asked(&many), "the tool asks more questions than a task may"),
        (large, "the tool keeps more between its questions than a task may"),
    ] {
        let mut record = record(TaskState::Working);
        assert_eq!(record.apply(event, THEN, Some(LIMITS)), Ok(Applied::Changed));
        let TaskState::Failed { error } = record.state else { panic!("{:?}", record.state) };
        assert_eq!(error.message, text);
    }
    let mut record = record(TaskState::Working);
    record.apply(asked(&many[..6]), THEN, Some(LIMITS)).unwrap();
    assert_eq!(
        name(&record.state),
        "input required",
        "two keys were issued before, so six are as many as there may be"
    );
}

#[test]
fn a_key_that_was_used_is_varied_and_its_answer_comes_under_the_key_of_the_handler() {
    let mut record = record(TaskState::Working);
    record.apply(asked(&["name", "new", "name"]), THEN, Some(LIMITS)).unwrap();
    let TaskState::InputRequired(parked) = &record.state else { panic!("{:?}", record.state) };
    let keys: Vec<_> = parked.open.iter().map(|open| (&*open.key, open.asked_as.as_deref())).collect();
    assert_eq!(keys, [("name#2", Some("name")), ("new", None), ("name#3", Some("name"))]);
    let answers = answered(&[("name", json!(0)), ("name#3", json!(3)), ("new", json!(1)), ("name#2", json!(2))]);
    let Ok(Applied::Resumed(parked)) = record.apply(answers, THEN, Some(LIMITS)) else { panic!("{:?}", record.state) };
    let given: Vec<_> = parked.answers.iter().map(|(key, answer)| (&**key, answer.as_str())).collect();
    assert_eq!(given, [("name", "3"), ("new", "1"), ("name", "2")]);
}

#[test]
fn a_task_expires_at_its_moment_and_is_forgotten_a_minute_later() {
    let mut over = record(TaskState::Working);
    assert!(!over.expire(THEN + TTL - 1) && !over.is_ended());
    assert!(over.expire(THEN + TTL) && over.is_ended());
    assert_eq!((over.version, over.updated_at), (5, THEN + TTL));
    assert!(!over.expire(THEN + TTL + 1), "an ended task does not expire");
    assert!(!over.is_forgettable(THEN + TTL + 59_999) && over.is_forgettable(THEN + TTL + 60_000));
    over.ttl = u64::MAX;
    assert!(!over.is_forgettable(u64::MAX - 1), "a lifetime without end has none");
}

#[test]
fn a_clock_that_went_back_does_not_turn_an_update_back() {
    let mut record = record(TaskState::Working);
    record.apply(asked(&["q"]), THEN - 5, Some(LIMITS)).unwrap();
    assert_eq!(record.updated_at, THEN + 10);
}

/// What the record is to be, in other terms: sets and maps, and no record.
#[derive(Debug, Default)]
struct Model {
    ended: bool,
    version: u64,
    used: BTreeSet<String>,
    /// By the key of the client, that of the handler.
    open: BTreeMap<String, String>,
    answers: BTreeMap<String, String>,
}

impl Model {
    /// The change that is expected, and what the call is run again with.
    fn apply(&mut self, event: &TaskEvent) -> Result<(bool, Option<BTreeMap<String, String>>), Ended> {
        if self.ended {
            return Err(Ended);
        }
        let mut resumed = None;
        match event {
            TaskEvent::Asks(asked) => {
                let too_many = self.used.len() + asked.questions.len() > LIMITS.keys;
                if asked.questions.is_empty() || too_many || asked.memory.as_bytes().len() > LIMITS.memory_bytes {
                    self.ended = true;
                } else {
                    self.open.clear();
                    self.answers.clear();
                    for question in &asked.questions {
                        let varied = (2..).map(|number| format!("{}#{number}", question.key));
                        let mut keys = std::iter::once(question.key.clone()).chain(varied);
                        let key = keys.find(|key| !self.used.contains(key)).unwrap();
                        self.used.insert(key.clone());
                        self.open.insert(key, question.key.clone());
                    }
                }
            }
            TaskEvent::Answered(answers) => {
                let before = self.open.len();
                for (key, answer) in answers {
                    if let Some(asked_as) = self.open.remove(key) {
                        self.answers.insert(asked_as, answer.as_str().to_owned());
                    }
                }
                if self.open.len() == before {
                    return Ok((false, None));
                }
                resumed = self.open.is_empty().then(|| std::mem::take(&mut self.answers));
            }
            TaskEvent::HandedOver { .. } => self.open.clear(),
            TaskEvent::Finished { .. }
            | TaskEvent::Failed(_)
            | TaskEvent::Cancelled
            | TaskEvent::Expired
            | TaskEvent::Lost => self.ended = true,
        }
        self.version += 1;
        Ok((true, resumed))
    }
}

/// Few keys, so that they meet; some look like the variations of others.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("a#2"), Just("a#3"), Just("")].prop_map(ToOwned::to_owned)
}

fn event() -> impl Strategy<Value = TaskEvent> {
    let asks = (proptest::collection::vec(key(), 0..4), 0..80_usize).prop_map(|(keys, memory)| {
        let question = |key| AskedQuestion::new(key, "sampling/createMessage", RawJson::EMPTY_OBJECT);
        TaskEvent::Asks(Asked::new(json!("m".repeat(memory)).into(), 1, keys.into_iter().map(question).collect()))
    });
    let answers = proptest::collection::vec((key(), any::<u8>()), 0..5).prop_map(|answers| {
        TaskEvent::Answered(answers.into_iter().map(|(key, answer)| (key, json!(answer).into())).collect())
    });
    let finished = any::<bool>().prop_map(|is_error| TaskEvent::Finished { result: json!([]).into(), is_error });
    let others = prop_oneof![
        Just(TaskEvent::HandedOver { provider: "p".to_owned(), job: "j".to_owned() }),
        Just(TaskEvent::Failed(RpcError::internal())),
        Just(TaskEvent::Cancelled),
        Just(TaskEvent::Expired),
        Just(TaskEvent::Lost),
    ];
    prop_oneof![6 => asks, 8 => answers, 1 => finished, 1 => others]
}

fn raw() -> impl Strategy<Value = RawJson> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(".*", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    value.prop_map(RawJson::from)
}

fn text() -> impl Strategy<Value = Box<str>> {
    ".*".prop_map(|text: String| text.into())
}

fn state() -> impl Strategy<Value = TaskState> {
    let open = (text(), proptest::option::of(text()), text(), raw());
    let open = open.prop_map(|(key, asked_as, method, params)| OpenQuestion { key, asked_as, method, params });
    let parked = (raw(), proptest::collection::vec(open, 0..3), proptest::collection::vec((text(), raw()), 0..3))
        .prop_map(|(memory, open, answers)| TaskState::InputRequired(Box::new(Parked { memory, open, answers })));
    let failed = (any::<i32>(), ".*", proptest::option::of(raw())).prop_map(|(code, message, data)| {
        let mut error = RpcError::new(ErrorCode(code.into()), message);
        // Errors with `null` as their data and errors without data are one.
        error.data = data.filter(|data| *data != RawJson::NULL);
        TaskState::Failed { error }
    });
    prop_oneof![
        Just(TaskState::Working),
        (text(), text()).prop_map(|(provider, job)| TaskState::Elsewhere { provider, job }),
        parked,
        (raw(), any::<bool>()).prop_map(|(result, is_error)| TaskState::Completed { result, is_error }),
        failed,
        Just(TaskState::Cancelled),
    ]
}

proptest! {
    #[test]
    fn random_events_do_what_the_model_says(events in proptest::collection::vec((event(), 0..50_u64), 0..24)) {
        let mut record = record(TaskState::Working);
        record.issued.clear();
        let mut model = Model { version: record.version, ..Model::default() };
        let mut now = THEN;
        for (event, pause) in events {
            now += pause;
            let before = record.clone();
            let expected = model.apply(&event);
            let applied = record.apply(event, now, Some(LIMITS));
            match (&expected, &applied) {
                (Err(Ended), Err(Ended)) | (Ok((false, _)), Ok(Applied::Unchanged)) => prop_assert_eq!(&record, &before),
                (Ok((true, None)), Ok(Applied::Changed)) => {}
                (Ok((true, Some(answers))), Ok(Applied::Resumed(parked))) => {
                    let given: BTreeMap<_, _> = parked
                        .answers
                        .iter()
                        .map(|(key, answer)| (key.to_string(), answer.as_str().to_owned()))
                        .collect();
                    prop_assert_eq!(&given, answers);
                    prop_assert_eq!(&record.state, &TaskState::Working);
                }
                _ => prop_assert!(false, "{:?} instead of {:?}", applied, expected),
            }
            prop_assert_eq!(record.version, model.version);
            prop_assert_eq!(record.is_ended(), model.ended);
            prop_assert!(record.updated_at >= before.updated_at);
            let open: BTreeSet<_> = match &record.state {
                TaskState::InputRequired(parked) => parked.open.iter().map(|open| open.key.to_string()).collect(),
                _ => BTreeSet::new(),
            };
            if !model.ended {
                prop_assert_eq!(open, model.open.keys().cloned().collect::<BTreeSet<_>>());
                prop_assert_eq!(record.issued.iter().map(|key| key.to_string()).collect::<BTreeSet<_>>(), model.used.clone());
                prop_assert_eq!(record.issued.len(), model.used.len(), "a key was issued twice");
            }
        }
    }

    #[test]
    fn random_records_are_the_same_after_they_were_stored(
        state in state(),
        issued in proptest::collection::vec(text(), 0..3),
        (id, tool, arguments) in (".*", text(), raw()),
        (version, created_at, ttl) in any::<(u64, u64, u64)>(),
    ) {
        let id = TaskId::from(id);
        let record = TaskRecord { id, tool, arguments, issued, version, created_at, ttl, ..record(state) };
        let stored = serde_json::to_vec(&record).unwrap();
        prop_assert_eq!(&serde_json::from_slice::<TaskRecord>(&stored).unwrap(), &record);
        let stored = serde_json::to_value(&record).unwrap();
        let read: TaskRecord = serde_json::from_value(stored).unwrap();
        prop_assert_eq!((&read.id, &read.issued, read.version), (&record.id, &record.issued, record.version));
    }
}

#[test]
fn what_a_newer_version_adds_is_ignored_and_a_state_of_its_own_is_refused() {
    let mut stored = serde_json::to_value(record(TaskState::Working)).unwrap();
    stored["priority"] = json!(3);
    assert_eq!(serde_json::from_value::<TaskRecord>(stored.clone()).unwrap(), record(TaskState::Working));
    for wrong in [json!("paused"), json!({ "paused": {} }), json!(null)] {
        stored["state"] = wrong;
        serde_json::from_value::<TaskRecord>(stored.clone()).unwrap_err();
    }
    stored["state"] = json!("working");
    stored["owner"] = json!("ann");
    serde_json::from_value::<TaskRecord>(stored).unwrap_err();
}
