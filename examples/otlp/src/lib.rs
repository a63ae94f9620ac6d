//! A server whose requests go to a collector of OpenTelemetry, as parts of the traces that their callers began.
//!
//! Why here: the library makes spans and knows what trace a request belongs to; which system gets them, and how, is the
//! program's choice, and this is one.

use mcp_core::{RegistrationError, Server, Tool, TraceContext};
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Level, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;

/// The service, unless `OTEL_SERVICE_NAME` says otherwise.
const SERVICE: &str = "greeter";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    /// Who is greeted.
    name: String,
}

/// A server with one tool, whose requests are part of the traces that they name.
///
/// # Errors
/// None: the tool is valid.
pub fn server() -> Result<Server, RegistrationError> {
    let greet = Tool::plain("greet", |arguments: Greet| {
        // Whatever a handler traces is within the span of its call.
        tracing::info_span!("choose words").in_scope(|| format!("Hello, {}!", arguments.name))
    });
    Server::builder("greeter", "1.0.0").tool(greet.description("Greets somebody")).on_trace(join).build()
}

/// Makes the span of a request a child of its caller's.
fn join(span: &tracing::Span, trace: &TraceContext) {
    let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &Said(trace));
    // Refused where nothing sends spans to a collector.
    let _unheard = span.set_parent(parent);
}

/// What came with the request, wherever it stood, valid and bounded.
struct Said<'a>(&'a TraceContext);

impl Extractor for Said<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.0.traceparent(),
            "tracestate" => self.0.tracestate(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

/// Sends spans in batches, by protobuf over HTTP, from a thread of its own; the caller has to shut it down, which sends what is
/// left. Where to, how long to wait and what to sample say the standard variables: `OTEL_EXPORTER_OTLP_ENDPOINT` (default:
/// `http://localhost:4318`), `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`, `OTEL_TRACES_SAMPLER`,
/// `OTEL_BSP_SCHEDULE_DELAY` and their like. Default: a request is sampled if its caller's span is, and if it has none.
///
/// # Errors
/// An address that is none.
pub fn tracer_provider() -> Result<SdkTracerProvider, ExporterBuildError> {
    let exporter = SpanExporter::builder().with_http().build()?;
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name(SERVICE);
    }
    Ok(SdkTracerProvider::builder().with_resource(resource.build()).with_batch_exporter(exporter).build())
}

/// Hands the spans of the library and of this program to the collector, and warnings and errors to stderr.
pub fn subscriber(provider: &SdkTracerProvider) -> impl Subscriber + Send + Sync + use<> {
    // Not the exporter's own, which would beget more, and not the audit records: whom those may reach is another question.
    let sent = Targets::new().with_target("mcp_core", Level::INFO).with_target("otlp", Level::INFO);
    let collector =
        tracing_opentelemetry::layer().with_tracer(provider.tracer("mcp")).with_location(false).with_threads(false);
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let logged = Targets::new().with_default(Level::WARN);
    tracing_subscriber::registry().with(collector.with_filter(sent)).with(log.with_filter(logged))
}
