//! Tools that ask the client something: its user by a form, its model, its folders.
//!
//! Why here: a handler asks in one way, whatever revision the client speaks; whether the question travels as a request
//! of its own or with a result that wants the call repeated is the engine's business.
//! Invariants: nothing before the last question of a tool has an effect, for the handler runs again with each answer.
//! Spec: 2026-07-28 basic/patterns/mrtr; 2025-11-25 client/elicitation, client/sampling, client/roots

use mcp_core::{Elicited, Form, FormSchema, HandlerError, ListRoots, NoArguments, RequestContext, Sample, Tool};
use mcp_wire::capability::ClientCapability;
use mcp_wire::types::{CreateMessageParams, CreateMessageResult, Root, SamplingMessage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The tools in the order in which they are listed.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::typed("test_sampling", sample).description("Asks the client's model."),
        Tool::typed("test_elicitation", elicit).description("Asks the user for a name and an address."),
        Tool::typed("test_elicitation_sep1034_defaults", elicit_with_defaults)
            .description("Asks the user with a form that is filled in already."),
        Tool::typed("test_elicitation_sep1330_enums", elicit_choices)
            .description("Asks the user to choose, in each of the five ways a form has."),
        Tool::typed("test_missing_capability", sample_capital)
            .needs(ClientCapability::Sampling)
            .description("Asks the client's model; refused at once for clients without one."),
        Tool::typed("test_streaming_elicitation", ask_name)
            .description("Asks the user's name in the middle of a call."),
        Tool::typed("test_input_required_result_elicitation", ask_name).description("Asks the user's name."),
        Tool::typed("test_input_required_result_sampling", sample_capital)
            .description("Asks the client's model for a capital."),
        Tool::typed("test_input_required_result_list_roots", list_roots)
            .description("Asks for the folders that the client works in."),
        Tool::typed("test_input_required_result_request_state", remember)
            .description("Remembers something while the user is asked."),
        Tool::typed("test_input_required_result_multiple_inputs", ask_everything)
            .description("Asks the user, the model and for the folders at once."),
        Tool::typed("test_input_required_result_multi_round", ask_twice)
            .description("Asks the user one thing, and then another."),
        Tool::typed("test_input_required_result_tampered_state", confirm)
            .description("Asks the user to confirm; what it remembers cannot be altered."),
        Tool::typed("test_input_required_result_capabilities", ask_what_is_possible)
            .description("Asks whatever the client can be asked."),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct SampleArguments {
    /// What the model is asked.
    prompt: String,
}

async fn sample(arguments: SampleArguments, context: RequestContext) -> Result<String, HandlerError> {
    let answer = context.ask("answer", question_to_model(arguments.prompt))?;
    Ok(format!("LLM response: {}", text_of(&answer)))
}

#[derive(Deserialize, JsonSchema)]
struct ElicitArguments {
    /// What the user reads above the form.
    message: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Account {
    /// Who you are.
    username: String,
    /// Where you can be written to.
    email: String,
}

async fn elicit(arguments: ElicitArguments, context: RequestContext) -> Result<String, HandlerError> {
    describe(&context.ask("account", Form::<Account>::new(arguments.message))?)
}

/// What a form comes with when it is the type's default.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Profile {
    name: String,
    age: u32,
    score: f64,
    status: Status,
    verified: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

impl Default for Profile {
    fn default() -> Self {
        Self { name: "John Doe".to_owned(), age: 30, score: 95.5, status: Status::Active, verified: true }
    }
}

async fn elicit_with_defaults(_: NoArguments, context: RequestContext) -> Result<String, HandlerError> {
    describe(&context.ask("profile", Form::<Profile>::new("Please check what is filled in."))?)
}

async fn elicit_choices(_: NoArguments, context: RequestContext) -> Result<String, HandlerError> {
    let schema = FormSchema::from_value(&json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": { "type": "string", "oneOf": [
                { "const": "value1", "title": "First choice" },
                { "const": "value2", "title": "Second choice" },
                { "const": "value3", "title": "Third choice" },
            ] },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option one", "Option two", "Option three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
            },
            "titledMulti": { "type": "array", "items": { "anyOf": [
                { "const": "value1", "title": "First choice" },
                { "const": "value2", "title": "Second choice" },
                { "const": "value3", "title": "Third choice" },
            ] } },
        },
    }))?;
    describe(&context.ask("choices", Form::<Map<String, Value>>::with_schema("Please choose.", schema))?)
}

#[derive(Deserialize, JsonSchema)]
struct Person {
    /// What you want to be called.
    name: String,
}

async fn ask_name(_: NoArguments, context: RequestContext) -> Result<String, HandlerError> {
    Ok(greeting(context.ask("user_name", name_form())?))
}

async fn sample_capital(_: NoArguments, context: RequestContext) -> Result<String, HandlerError> {
    let answer = context.ask("capital_question", capital_question())?;
    Ok(format!("The model says: {}", text_of(&answer)))
}

async fn list_roots(_: NoArguments, context: RequestContext) -> Result<String, HandlerError> {
    Ok(folders(&context.ask("client_roots", ListRoots)?))
}

#[derive(Deserialize, JsonSchema)]
struct Consent {
    /// Whether to go on.
    ok: bool,
}

async fn remember(_: NoArguments, context: RequestContext) -> Result<String, HandlerError> {
    const NOTE: &str = "asked for consent";
    let came_back = context.note::<String>().is_some_and(|note| note == NOTE);
    context.keep_note(&NOTE)?;
    let consent = context.ask("consent", consent_form())?;
    if !came_back {
        return Err(HandlerError::tell("The answer came without what was remembered when it was asked for."));
    }
    Ok(format!("state-ok, {}", decision(consent)))
}

async fn confirm(_: NoArguments, context: RequestContext) -> Result<String, HandlerError> {
    Ok(decision(context.ask("consent", consent_form())?))
}

async fn ask_everything(_: NoArguments, context: RequestContext) -> Result<String, HandlerError> {
    let (name, capital, roots) = context.ask_all((
        ("user_name", name_form()),
        ("capital_question", capital_question()),
        ("client_roots", ListRoots),
    ))?;
    Ok(format!("{} The model says: {}. {}", greeting(name), text_of(&capital), folders(&roots)))
}

#[derive(Deserialize, JsonSchema)]
struct Favourite {
    /// The colour you like best.
    color: String,
}

async fn ask_twice(_: NoArguments, context: RequestContext) -> Result<String, HandlerError> {
    let Elicited::Accepted(person) = context.ask("user_name", name_form())? else {
        return Ok("Then we leave it there.".to_owned());
    };
    // What is asked second may depend on the first answer.
    let second = Form::<Favourite>::new(format!("Which colour do you like best, {}?", person.name));
    Ok(match context.ask("favourite", second)? {
        Elicited::Accepted(favourite) => format!("{} likes {}.", person.name, favourite.color),
        Elicited::Declined | Elicited::Cancelled => format!("{} keeps it secret.", person.name),
    })
}

async fn ask_what_is_possible(_: NoArguments, context: RequestContext) -> Result<String, HandlerError> {
    let can = |capability| context.client_supports(&capability);
    // All are asked before the first `?`, so that the client gets them in one round.
    let name = can(ClientCapability::ElicitationForm).then(|| context.ask("user_name", name_form()));
    let capital = can(ClientCapability::Sampling).then(|| context.ask("capital_question", capital_question()));
    let roots = can(ClientCapability::Roots).then(|| context.ask("client_roots", ListRoots));
    let told: Vec<String> = [
        name.transpose()?.map(greeting),
        capital.transpose()?.map(|answer| format!("The model says: {}.", text_of(&answer))),
        roots.transpose()?.map(|roots| folders(&roots)),
    ]
    .into_iter()
    .flatten()
    .collect();
    Ok(if told.is_empty() { "You can be asked nothing.".to_owned() } else { told.join(" ") })
}

fn name_form() -> Form<Person> {
    Form::new("What is your name?")
}

fn greeting(answer: Elicited<Person>) -> String {
    match answer.accepted() {
        Some(person) => format!("Hello, {}!", person.name),
        None => "Hello, whoever you are!".to_owned(),
    }
}

fn consent_form() -> Form<Consent> {
    Form::new("Shall I go on?")
}

fn decision(answer: Elicited<Consent>) -> String {
    let confirmed = answer.accepted().is_some_and(|consent| consent.ok);
    if confirmed { "confirmed" } else { "not confirmed" }.to_owned()
}

fn question_to_model(text: impl Into<String>) -> Sample {
    Sample(CreateMessageParams::new(vec![SamplingMessage::user_text(text)], 100))
}

fn capital_question() -> Sample {
    question_to_model("What is the capital of France?")
}

fn text_of(answer: &CreateMessageResult) -> &str {
    answer.text().unwrap_or("(no text)")
}

fn folders(roots: &[Root]) -> String {
    let listed: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
    format!("You work in: {}.", if listed.is_empty() { "nothing".to_owned() } else { listed.join(", ") })
}

fn describe<T: Serialize>(answer: &Elicited<T>) -> Result<String, HandlerError> {
    Ok(match answer {
        Elicited::Accepted(content) => {
            format!("Elicitation completed: action=accept, content={}", serde_json::to_string(content)?)
        }
        Elicited::Declined => "Elicitation completed: action=decline, content={}".to_owned(),
        Elicited::Cancelled => "Elicitation completed: action=cancel, content={}".to_owned(),
    })
}
