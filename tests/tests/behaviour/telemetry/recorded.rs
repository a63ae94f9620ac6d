//! A subscriber and a recorder that keep everything they are told, to be looked at and searched.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex};

use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

/// Names and values as text.
pub(crate) type Fields = BTreeMap<String, String>;

/// A span or an event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) name: String,
    pub(crate) target: String,
    /// Names of the spans around it, the innermost first.
    pub(crate) within: Vec<String>,
    pub(crate) fields: Fields,
    pub(crate) is_closed: bool,
}

impl Told {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

/// What was traced, spans first told first.
#[derive(Clone, Default)]
pub(crate) struct Traced {
    spans: Arc<Mutex<Vec<Told>>>,
    events: Arc<Mutex<Vec<Told>>>,
}

impl Traced {
    /// Listens on this thread to everything, until the guard is dropped.
    pub(crate) fn listen() -> (Self, DefaultGuard) {
        Self::listen_to(Targets::new().with_default(tracing::Level::TRACE))
    }

    pub(crate) fn listen_to(filter: Targets) -> (Self, DefaultGuard) {
        /// The only subscriber of a process is asked for all threads alike, so there are always two of them.
        static DEAF: LazyLock<Dispatch> =
            LazyLock::new(|| Dispatch::new(tracing_subscriber::registry().with(LevelFilter::OFF)));
        LazyLock::force(&DEAF);
        let traced = Self::default();
        let subscriber = tracing_subscriber::registry().with(traced.clone().with_filter(filter));
        (traced, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn spans(&self, name: &str) -> Vec<Told> {
        self.spans.lock().unwrap().iter().filter(|span| span.name == name).cloned().collect()
    }

    pub(crate) fn events(&self, target: &str) -> Vec<Told> {
        self.events.lock().unwrap().iter().filter(|event| event.target == target).cloned().collect()
    }

    /// Everything that was told, as one text.
    pub(crate) fn text(&self) -> String {
        format!("{:?}{:?}", self.spans.lock().unwrap(), self.events.lock().unwrap())
    }
}

/// Where a span is among the spans.
struct Place(usize);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Traced {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let mut told = Told {
            name: span.name().to_owned(),
            target: attributes.metadata().target().to_owned(),
            within: span.scope().skip(1).map(|span| span.name().to_owned()).collect(),
            ..Told::default()
        };
        attributes.record(&mut Values(&mut told.fields));
        let mut spans = self.spans.lock().unwrap();
        span.extensions_mut().insert(Place(spans.len()));
        spans.push(told);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let extensions = span.extensions();
        let place = extensions.get::<Place>().unwrap();
        values.record(&mut Values(&mut self.spans.lock().unwrap()[place.0].fields));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let scope = context.event_scope(event).into_iter().flatten();
        let mut told = Told {
            target: event.metadata().target().to_owned(),
            within: scope.map(|span| span.name().to_owned()).collect(),
            ..Told::default()
        };
        event.record(&mut Values(&mut told.fields));
        self.events.lock().unwrap().push(told);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        let extensions = span.extensions();
        let place = extensions.get::<Place>().unwrap();
        self.spans.lock().unwrap()[place.0].is_closed = true;
    }
}

struct Values<'a>(&'a mut Fields);

impl Visit for Values<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

/// What was counted, by name and labels: `name{label=value,..}`.
#[derive(Clone, Default)]
pub(crate) struct Counted(Arc<Mutex<BTreeMap<String, f64>>>);

impl Counted {
    pub(crate) fn value(&self, key: &str) -> f64 {
        self.0.lock().unwrap().get(key).copied().unwrap_or_default()
    }

    /// The keys that begin so, with what they have counted.
    pub(crate) fn of(&self, name: &str) -> Vec<(String, f64)> {
        let counted = self.0.lock().unwrap();
        counted.iter().filter(|(key, _)| key.starts_with(name)).map(|(key, value)| (key.clone(), *value)).collect()
    }

    fn one(&self, key: &Key) -> Arc<One> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let key = format!("{}{{{}}}", key.name(), labels.join(","));
        self.0.lock().unwrap().entry(key.clone()).or_default();
        Arc::new(One { all: self.clone(), key })
    }
}

struct One {
    all: Counted,
    key: String,
}

impl One {
    fn add(&self, value: f64) {
        *self.all.0.lock().unwrap().entry(self.key.clone()).or_default() += value;
    }
}

impl CounterFn for One {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }

    fn absolute(&self, _value: u64) {
        panic!("counters only rise");
    }
}

impl GaugeFn for One {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, _value: f64) {
        panic!("gauges go up and down");
    }
}

impl HistogramFn for One {
    /// The sum is kept.
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl metrics::Recorder for Counted {
    fn describe_counter(&self, _key: KeyName, _unit: Option<Unit>, _description: SharedString) {}

    fn describe_gauge(&self, _key: KeyName, _unit: Option<Unit>, _description: SharedString) {}

    fn describe_histogram(&self, _key: KeyName, _unit: Option<Unit>, _description: SharedString) {}

    fn register_counter(&self, key: &Key, _metadata: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.one(key))
    }

    fn register_gauge(&self, key: &Key, _metadata: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.one(key))
    }

    fn register_histogram(&self, key: &Key, _metadata: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.one(key))
    }
}
