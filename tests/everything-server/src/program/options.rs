//! Flags and environment: what can be said, and what cannot be said together.
//!
//! Why here: the one list of what an operator can set, which `--help` and `docs/running.md` show.
//! Invariants: whatever is wrong is told before anything is opened, with what would be right.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, ValueEnum};
use mcp_core::Server;
use mcp_http::server::{AllowedHosts, AllowedOrigins, HttpConfig, HttpService, TrustedProxies};
use tracing_subscriber::filter::Targets;

/// The sample server of a Model Context Protocol implementation: every feature once.
///
/// Each flag can also be given by the environment variable beside it; a flag outranks its variable, and in a variable that
/// takes several values a comma stands between them. The log goes to stderr. stdout has the protocol (--stdio) or one line
/// that says where the server listens.
///
/// SIGTERM and Ctrl-C end the server: it takes nothing new, and requests under way get their grace. A second signal cuts it
/// short. SIGHUP reads certificates, keys and the log's filter again. Exit status: 0 after an end in order, 1 when serving
/// failed, 2 when it was started wrongly.
#[derive(Clone, Debug, Parser)]
#[command(name = "everything-server", version, term_width = 110)]
pub(crate) struct Options {
    /// Address and port to listen on; port 0 picks one [default: 127.0.0.1:3000]
    #[arg(long, env = "EVERYTHING_HTTP", hide_env_values = true, value_name = "ADDRESS", value_parser = address, group = "carrier")]
    http: Option<SocketAddr>,

    /// Serve one client on stdin and stdout, until its input ends
    #[arg(long, env = "EVERYTHING_STDIO", hide_env_values = true, group = "carrier")]
    stdio: bool,

    /// Path of a unix socket to listen on, for this user alone
    #[arg(long, env = "EVERYTHING_UNIX", hide_env_values = true, value_name = "PATH", group = "carrier")]
    unix: Option<PathBuf>,

    /// Certificate chain (PEM): speak TLS
    #[arg(long, env = "EVERYTHING_TLS_CERT", hide_env_values = true, value_name = "FILE", requires = "tls_key")]
    pub(super) tls_cert: Option<PathBuf>,

    /// Its private key (PEM)
    #[arg(long, env = "EVERYTHING_TLS_KEY", hide_env_values = true, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,

    /// Name under which the server may be called, with or without a port; "any" for all. May be repeated. A public address
    /// needs it [default: the names of this machine]
    #[arg(long, env = "EVERYTHING_ALLOWED_HOSTS", hide_env_values = true, value_name = "HOST", value_delimiter = ',', action = ArgAction::Append)]
    allowed_host: Vec<String>,

    /// Origin whose pages may call, such as https://app.example; "any" for all, "none" for no page. May be repeated. A
    /// public address needs it [default: the origins of this machine]
    #[arg(long, env = "EVERYTHING_ALLOWED_ORIGINS", hide_env_values = true, value_name = "ORIGIN", value_delimiter = ',', action = ArgAction::Append)]
    allowed_origin: Vec<String>,

    /// What stands before /mcp where clients call, if a proxy takes it away: https://example.com/tools
    #[arg(long, env = "EVERYTHING_PUBLIC_URL", hide_env_values = true, value_name = "URL", value_parser = public_url)]
    public_url: Option<String>,

    /// Address or range of a proxy that is believed when it says for whom it asks; "unix" for whoever connects to the unix
    /// socket. May be repeated [default: none]
    #[arg(long, env = "EVERYTHING_TRUSTED_PROXIES", hide_env_values = true, value_name = "NETWORK", value_delimiter = ',', action = ArgAction::Append)]
    trusted_proxy: Vec<String>,

    /// The header that those proxies write
    #[arg(
        long,
        env = "EVERYTHING_PROXY_HEADER",
        hide_env_values = true,
        value_name = "HEADER",
        default_value = "x-forwarded-for"
    )]
    proxy_header: ProxyHeader,

    /// Requests under way at a time, of all callers
    #[arg(long, env = "EVERYTHING_MAX_IN_FLIGHT", hide_env_values = true, value_name = "N", default_value = "1024")]
    max_in_flight: NonZeroUsize,

    /// Seconds that requests under way get to finish after SIGTERM
    #[arg(long, env = "EVERYTHING_GRACE", hide_env_values = true, value_name = "SECONDS", default_value = "5")]
    grace: u32,

    /// Tools, resources or prompts on a page of a list
    #[arg(long, env = "EVERYTHING_PAGE_SIZE", hide_env_values = true, value_name = "N", default_value = "50", value_parser = page_size)]
    pub(crate) page_size: usize,

    /// Keys that seal what clients carry between two requests, one of 64 hexadecimal digits on a line: the first seals, all
    /// open. Copies of the server need the same [default: a key that ends with the process]
    #[arg(long, env = "EVERYTHING_STATE_KEY_FILE", hide_env_values = true, value_name = "FILE")]
    pub(super) state_key_file: Option<PathBuf>,

    /// How the log is written
    #[arg(long, env = "EVERYTHING_LOG_FORMAT", hide_env_values = true, value_name = "FORMAT", default_value = "text")]
    pub(super) log_format: LogFormat,

    /// What is logged: a level (error, warn, info, debug, trace, off), or levels by target such as info,mcp_core=debug
    #[arg(long, env = "RUST_LOG", hide_env_values = true, value_name = "FILTER", default_value = DEFAULT_FILTER, value_parser = filter)]
    pub(super) log_level: Filter,

    /// A file that says what is logged, instead; SIGHUP reads it again
    #[arg(long, env = "EVERYTHING_LOG_LEVEL_FILE", hide_env_values = true, value_name = "FILE")]
    pub(super) log_level_file: Option<PathBuf>,

    /// Ask the server at this address whether it lives, and exit with 0 if it does: for health checks of containers
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) probe: Option<SocketAddr>,
}

/// What goes wrong, and this program's own few words.
const DEFAULT_FILTER: &str = "warn,everything_server=info";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ProxyHeader {
    XForwardedFor,
    Forwarded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    Text,
    Json,
}

/// A filter, and how it was written.
#[derive(Clone, Debug)]
pub(super) struct Filter(pub(super) Targets);

/// What brings messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Http(SocketAddr),
    Stdio,
    Unix(PathBuf),
}

/// Why these options cannot stand together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong(String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

impl Options {
    pub(crate) fn carrier(&self) -> Carrier {
        match &self.unix {
            Some(path) => Carrier::Unix(path.clone()),
            None if self.stdio => Carrier::Stdio,
            None => Carrier::Http(self.http.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3000))),
        }
    }

    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace.into())
    }

    /// What no flag shows by itself.
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        self.hosts()?;
        self.origins()?;
        drop(self.proxies()?);
        match self.carrier() {
            Carrier::Http(address) if !address.ip().is_loopback() => {
                let lacking = [
                    ("--allowed-host", self.allowed_host.is_empty()),
                    ("--allowed-origin", self.allowed_origin.is_empty()),
                ];
                let lacking: Vec<_> = lacking.into_iter().filter_map(|(flag, lacks)| lacks.then_some(flag)).collect();
                if !lacking.is_empty() {
                    return Err(Wrong(format!(
                        "{address} can be reached from other machines: say who may call, with {}, or listen on 127.0.0.1",
                        lacking.join(" and ")
                    )));
                }
            }
            Carrier::Stdio if self.tls_cert.is_some() => {
                return Err(Wrong("--tls-cert is for --http and --unix: stdin and stdout need no TLS".to_owned()));
            }
            Carrier::Http(_) | Carrier::Stdio | Carrier::Unix(_) => {}
        }
        Ok(())
    }

    /// The endpoint, as these options want it.
    pub(crate) fn service(&self, server: &Server) -> Result<HttpService, Wrong> {
        // The pair of endpoints is for clients of the first revision.
        let mut config = HttpConfig::new(mcp_auth::Anonymous).sse_pair("/sse", "/messages").health();
        config = config.max_in_flight(self.max_in_flight.get()).trusted_proxies(self.proxies()?);
        if !self.allowed_host.is_empty() {
            config = config.allowed_hosts(self.hosts()?);
        }
        if !self.allowed_origin.is_empty() {
            config = config.allowed_origins(self.origins()?);
        }
        if let Some(url) = &self.public_url {
            config = config.public_prefix(url.clone());
        }
        Ok(HttpService::new(server.clone(), config))
    }

    fn hosts(&self) -> Result<AllowedHosts, Wrong> {
        self.allowed_host.iter().try_fold(AllowedHosts::none(), |hosts, host| match host.as_str() {
            "any" => Ok(AllowedHosts::any()),
            host => hosts.and(host).map_err(|error| Wrong(format!("--allowed-host: {error}"))),
        })
    }

    fn origins(&self) -> Result<AllowedOrigins, Wrong> {
        self.allowed_origin.iter().try_fold(AllowedOrigins::none(), |origins, origin| match origin.as_str() {
            "any" => Ok(AllowedOrigins::any()),
            "none" => Ok(origins),
            origin => origins.and(origin).map_err(|error| Wrong(format!("--allowed-origin: {error}"))),
        })
    }

    fn proxies(&self) -> Result<TrustedProxies, Wrong> {
        let networks = self.trusted_proxy.iter().filter(|network| *network != "unix");
        let mut proxies = TrustedProxies::at(networks).map_err(|error| Wrong(format!("--trusted-proxy: {error}")))?;
        if self.trusted_proxy.iter().any(|network| network == "unix") {
            proxies = proxies.and_peers_without_address();
        }
        Ok(if self.proxy_header == ProxyHeader::Forwarded { proxies.by_forwarded() } else { proxies })
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "an address and a port are needed, such as 127.0.0.1:3000 or [::1]:3000".to_owned())
}

fn page_size(text: &str) -> Result<usize, String> {
    let size = text.parse::<NonZeroU64>().ok().and_then(|size| usize::try_from(size.get()).ok());
    size.ok_or_else(|| "a number of entries is needed, such as 10".to_owned())
}

fn public_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let fits =
        rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(['?', '#', ' ', '@']));
    let right = "an address without query is needed, such as https://example.com/tools";
    if fits { Ok(text.to_owned()) } else { Err(right.to_owned()) }
}

/// Reads a filter; an empty one is the default.
pub(super) fn filter(text: &str) -> Result<Filter, String> {
    let text = text.trim();
    let wanted = if text.is_empty() { DEFAULT_FILTER } else { text };
    wanted
        .parse()
        .map(Filter)
        .map_err(|error| format!("a level or levels by target are needed, such as info,mcp_core=debug: {error}"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn options(arguments: &[&str]) -> Result<Options, clap::Error> {
        Options::try_parse_from(["everything-server"].iter().chain(arguments))
    }

    #[test]
    fn the_flags_fit_together() {
        Options::command().debug_assert();
    }

    #[test]
    fn without_flags_it_listens_on_loopback() {
        let carrier = |arguments: &[&str]| options(arguments).unwrap().carrier();
        assert_eq!(carrier(&[]), Carrier::Http(SocketAddr::from(([127, 0, 0, 1], 3000))));
        assert_eq!(carrier(&["--http", "[::1]:0"]), Carrier::Http("[::1]:0".parse().unwrap()));
        assert_eq!(carrier(&["--stdio"]), Carrier::Stdio);
        assert_eq!(carrier(&["--unix", "/run/s"]), Carrier::Unix("/run/s".into()));
        assert_eq!(options(&["--page-size", "10"]).unwrap().page_size, 10);
        assert_eq!(options(&[]).unwrap().page_size, mcp_core::Limits::default().page);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for bad in [
            &["--tcp"][..],
            &["--http"],
            &["--http", "localhost"],
            &["3000"],
            &["--page-size", "0"],
            &["--grace", "-1"],
            &["--max-in-flight", "0"],
            &["--stdio", "--http", "127.0.0.1:1"],
            &["--tls-cert", "a"],
            &["--tls-key", "a"],
            &["--log-level", "mcp_core=loud"],
            &["--log-format", "xml"],
            &["--public-url", "example.com"],
            &["--public-url", "https://example.com/?x"],
        ] {
            assert_eq!(options(bad).unwrap_err().exit_code(), 2, "{bad:?}");
        }
    }

    #[test]
    fn a_public_address_needs_to_know_who_may_call() {
        let check = |arguments: &[&str]| options(arguments).unwrap().check();
        let public = |more: &[&str]| check(&[&["--http", "0.0.0.0:0"], more].concat());
        assert!(public(&[]).unwrap_err().0.contains("--allowed-host and --allowed-origin"));
        assert!(public(&["--allowed-host", "a.example"]).unwrap_err().0.contains("with --allowed-origin,"));
        assert_eq!(public(&["--allowed-host", "a.example", "--allowed-origin", "none"]), Ok(()));
        assert_eq!(check(&["--http", "[::1]:0"]), Ok(()));
        for (flag, value) in
            [("--allowed-host", "a b"), ("--allowed-origin", "a.example"), ("--trusted-proxy", "10.0.0.0/99")]
        {
            assert!(check(&[flag, value]).unwrap_err().0.starts_with(flag), "{flag}");
        }
        assert_eq!(check(&["--trusted-proxy", "10.0.0.0/8,unix", "--trusted-proxy", "::1"]), Ok(()));
    }
}
